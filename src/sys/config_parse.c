/* Reads the text of a configuration file; see config.h. Knows nothing of where it lies. */
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "sys/config.h"

typedef enum setting_place { PLACE_FILE, PLACE_LOCK, PLACE_SHELL } setting_place;

#define PREFIX "KILN_"
enum { PREFIX_LENGTH = 5, NAME_MAX_LENGTH = 32 };

static const struct {
    const char *variable;
    setting_place place;
} settings[KN_SETTINGS] = {
#define X(name, place) {PREFIX #name, PLACE_##place},
#include "sys/settings.def"
#undef X
};

const char *kn_setting_variable(size_t setting)
{
    return setting < KN_SETTINGS ? settings[setting].variable : NULL;
}

/* As a file calls it. */
static void lower_name(const char *variable, char out[NAME_MAX_LENGTH])
{
    size_t used = 0;
    for (const char *at = variable + PREFIX_LENGTH; *at != '\0' && used + 1 < NAME_MAX_LENGTH;
         at++) {
        out[used++] = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    }
    out[used] = '\0';
}

/* KN_SETTINGS: none; then `out_nearest` is what it may have meant, or "". */
static size_t find_setting(const char *name, char out_nearest[NAME_MAX_LENGTH])
{
    size_t least = strlen(name) / 3 + 1;
    out_nearest[0] = '\0';
    for (size_t i = 0; i < KN_SETTINGS; i++) {
        char own[NAME_MAX_LENGTH];
        lower_name(settings[i].variable, own);
        const size_t apart = kn_text_distance(name, own);
        if (apart == 0) {
            return i;
        }
        if (apart <= least && settings[i].place != PLACE_SHELL) {
            least = apart - 1;
            kn_text_put(out_nearest, NAME_MAX_LENGTH, own);
        }
    }
    return KN_SETTINGS;
}

static char *trim_text(char *text)
{
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) {
        text[--length] = '\0';
    }
    return text;
}

static bool has_controls(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 && *text != '\t') {
            return true;
        }
    }
    return false;
}

/* NULL, or why the line cannot be used; `room` holds that. */
static const char *take_setting(char *name, char *value, unsigned line, bool may_lock,
                                kn_config_file *file, char room[128])
{
    char nearest[NAME_MAX_LENGTH];
    const bool locks = strncmp(name, "lock", 4) == 0 && (name[4] == ' ' || name[4] == '\t');
    name = locks ? trim_text(name + 4) : name;
    const size_t setting = find_setting(name, nearest);
    if (setting == KN_SETTINGS) {
        kn_text_putf(room, 128, "there is no setting \"%.32s\"%s%s%s", name,
                     nearest[0] != '\0' ? " (did you mean " : "", nearest,
                     nearest[0] != '\0' ? "?)" : "");
        return room;
    }
    if (settings[setting].place == PLACE_SHELL) {
        kn_text_putf(room, 128, "%.32s is set in the environment alone (%s)", name,
                     settings[setting].variable);
        return room;
    }
    if (locks && !may_lock) {
        return "only " KN_CONFIG_SYSTEM " can lock a setting";
    }
    if (locks && settings[setting].place != PLACE_LOCK) {
        return "only trust, trusted_keys and remote can be locked";
    }
    file->rows[setting] = (kn_config_row){value, line, locks};
    return NULL;
}

static const char *take_line(char *text, unsigned line, bool may_lock, kn_config_file *file,
                             char room[128])
{
    text = trim_text(text);
    if (*text == '\0' || *text == '#') {
        return NULL;
    }
    char *equals = strchr(text, '=');
    if (equals == NULL) {
        return "it is not of the form name = value";
    }
    *equals = '\0';
    char *value = trim_text(equals + 1);
    return has_controls(value) ? "its value has control characters"
                               : take_setting(trim_text(text), value, line, may_lock, file, room);
}

void kn_config_parse(char *text, size_t length, bool may_lock, kn_config_file *out_file)
{
    unsigned line = 0;
    out_file->text = text;
    for (char *at = text; at < text + length;) {
        char room[128];
        char *end = memchr(at, '\n', (size_t)(text + length - at));
        end = end != NULL ? end : text + length;
        *end = '\0';
        line++;
        const char *why = strlen(at) == (size_t)(end - at)
                              ? take_line(at, line, may_lock, out_file, room)
                              : "it has a NUL";
        if (why != NULL && out_file->trouble[0] == '\0') {
            kn_text_putf(out_file->trouble, sizeof out_file->trouble, "line %u: %s", line, why);
        }
        at = end + 1;
    }
}
