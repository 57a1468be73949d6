/* Environment variables; see env.h. A malformed value is never guessed at. */
#include "sys/env.h"

#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "base/text.h"

const char *kn_env_get(const char *name)
{
    return getenv(name);
}

static const char *value_of(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static kiln_status malformed(const char *name, const char *value, const char *expected,
                             kiln_diag *diag)
{
    char what[128];
    char fix[256];
    kn_text_putf(what, sizeof what, "environment variable %s", name);
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
    return malformed(name, value, "1 or 0", diag);
}

kiln_status kn_env_size(const char *name, uint64_t *out, kiln_diag *diag)
{
    const char *value = value_of(name);
    if (value == NULL || kn_text_to_size(value, out)) {
        return KILN_OK;
    }
    return malformed(name, value, "a number of bytes such as 500M or 2G", diag);
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
    return malformed(name, value, expected, diag);
}
