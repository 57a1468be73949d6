/* Any text as a list of remotes: refused or taken apart, in bounds either way. */
#include "fuzz/fuzz.h"
#include "store/remote/remote_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *list = malloc(size + 1);
    if (list == NULL) {
        return 0;
    }
    memcpy(list, data, size);
    list[size] = '\0';
    const char *rest = list, *text = NULL;
    size_t length = 0;
    while (kn_remote_url_next(&rest, &text, &length)) {
        kn_remote_url url;
        if (memmem(text, length, "token-file", 10) == NULL &&
            kn_remote_url_parse(text, length, &url, NULL) == KILN_OK) {
            if (url.server.host[0] == '\0' || strlen(url.shown) == 0) {
                abort();
            }
            kn_remote_url_deinit(&url);
        }
    }
    free(list);
    return 0;
}
