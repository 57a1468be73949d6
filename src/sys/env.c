/* Environment variables; see env.h. A malformed value is never guessed at. */
#include "sys/env.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "sys/config.h"

/* As nanoseconds in 63 bits. */
#define MAX_SECONDS (INT64_MAX / 1000000000)

const char *kn_env_get(const char *name)
{
    const kn_config_row *row = NULL;
    const char *value = kn_env_shell(name);
    if (!kn_text_starts(name, "KILN_") || kn_config_find(name, &row) == NULL) {
        return value;
    }
    return value == NULL || row->locked ? row->value : value;
}

void kn_env_describe(const char *name, char *out, size_t size)
{
    const kn_config_row *row = NULL;
    const kn_config_file *file = kn_config_find(name, &row);
    if (file != NULL && (row->locked || kn_env_shell(name) == NULL)) {
        kn_text_putf(out, size, "%s:%u (%s)", file->path, row->line, name);
    } else {
        kn_text_putf(out, size, "environment variable %s", name);
    }
}

static const char *value_of(const char *name)
{
    const char *value = kn_env_get(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static kiln_status refuse_variable(const char *name, const char *value, const char *expected,
                                   kiln_diag *diag)
{
    char what[128];
    char fix[256];
    kn_env_describe(name, what, sizeof what);
    kn_text_putf(fix, sizeof fix, "set %s to %s, or unset it", name, expected);
    return kiln_diag_set(diag, KILN_E_INVALID, fix, what, "\"%s\" is not %s", value, expected);
}

kiln_status kn_env_bool(const char *name, bool *out, kiln_diag *diag)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = {{"1", true},  {"true", true},   {"yes", true}, {"on", true},
                 {"0", false}, {"false", false}, {"no", false}, {"off", false}};
    const char *value = value_of(name);

    if (value == NULL) {
        return KILN_OK;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(value, words[i].text) == 0) {
            *out = words[i].value;
            return KILN_OK;
        }
    }
    return refuse_variable(name, value, "1 or 0", diag);
}

kiln_status kn_env_size(const char *name, uint64_t *out, kiln_diag *diag)
{
    const char *value = value_of(name);
    if (value == NULL || kn_text_to_size(value, out)) {
        return KILN_OK;
    }
    return refuse_variable(name, value, "a number of bytes such as 500M or 2G", diag);
}

static bool to_seconds(const char *text, uint64_t *out_seconds)
{
    static const struct {
        char unit;
        uint64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    char digits[16];
    size_t length = strlen(text);
    if (length < 2 || length > sizeof digits) {
        return false;
    }
    kn_text_putf(digits, sizeof digits, "%.*s", (int)length - 1, text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        uint64_t number = 0;
        if (text[length - 1] == units[i].unit) {
            bool good = kn_text_to_u64(digits, &number) && number <= MAX_SECONDS / units[i].seconds;
            *out_seconds = good ? number * units[i].seconds : *out_seconds;
            return good;
        }
    }
    return false;
}

kiln_status kn_env_duration(const char *name, uint64_t *out_seconds, kiln_diag *diag)
{
    const char *value = value_of(name);
    if (value == NULL || to_seconds(value, out_seconds)) {
        return KILN_OK;
    }
    return refuse_variable(name, value, "a time such as 30d or 12h", diag);
}

kiln_status kn_env_u64(const char *name, uint64_t min, uint64_t max, uint64_t *out, kiln_diag *diag)
{
    const char *value = value_of(name);
    uint64_t number = 0;
    if (value == NULL) {
        return KILN_OK;
    }
    if (kn_text_to_u64(value, &number) && number >= min && number <= max) {
        *out = number;
        return KILN_OK;
    }
    char expected[96];
    if (max == UINT64_MAX) {
        kn_text_putf(expected, sizeof expected, "a whole number of at least %" PRIu64, min);
    } else {
        kn_text_putf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64, min,
                     max);
    }
    return refuse_variable(name, value, expected, diag);
}
