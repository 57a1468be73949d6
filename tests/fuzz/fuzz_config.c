/* Any bytes as a configuration file, the system's or the user's: values lie in the text, and a lock
 * is on what may be locked alone. */
#include "fuzz/fuzz.h"
#include "sys/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int system = 0; system < 2; system++) {
        kn_config_file file;
        memset(&file, 0, sizeof file);
        char *text = malloc(size + 1);
        if (text == NULL) {
            return 0;
        }
        if (size > 0) {
            memcpy(text, data, size);
        }
        text[size] = '\0';
        kn_config_parse(text, size, system != 0, &file);
        for (size_t i = 0; i < KN_SETTINGS; i++) {
            const kn_config_row *row = &file.rows[i];
            if (row->value != NULL &&
                (row->value < text || row->value + strlen(row->value) > text + size)) {
                abort();
            }
            if (row->locked && (!system || (i != KN_SETTING_TRUST && i != KN_SETTING_REMOTE &&
                                            i != KN_SETTING_TRUSTED_KEYS))) {
                abort();
            }
        }
        free(text);
    }
    return 0;
}
