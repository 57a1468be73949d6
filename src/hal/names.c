/* Texts for the public enumerations of kiln/device.h, and their inverses. Each is one table. */
#include "kiln/unstable/names.h"
#include "kiln/device.h"
#include "kiln/unstable/probe.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

static const struct {
    kiln_language language;
    const char *name, *ending, *other_ending;
} languages[] = {
#define KN_LANGUAGE(id, name, ending, other, ...) {KILN_LANG_##id, name, ending, other},
#define KN_LANGUAGE_INTERNAL(id, name, ending, form) {KILN_LANG_##id, name, ending, NULL},
#include "base/languages.def"
};

#define LANGUAGE_ROWS (sizeof(languages) / sizeof(languages[0]))

static bool has_ending(const char *path, const char *ending)
{
    return ending != NULL && kn_text_ends(path, ending);
}

const char *kiln_language_name(kiln_language language)
{
    switch (language) { /* no default: a language without a row does not compile */
    case KILN_LANG_NONE:
        return "none";
#define KN_LANGUAGE(id, name, ...)                                                                 \
    case KILN_LANG_##id:                                                                           \
        return name;
#define KN_LANGUAGE_INTERNAL(id, name, ...) KN_LANGUAGE(id, name, __VA_ARGS__)
#include "base/languages.def"
    }
    return "unknown";
}

kiln_language kiln_language_parse(const char *name)
{
    for (size_t i = 0; name != NULL && i < LANGUAGE_ROWS; i++) {
        if (strcmp(languages[i].name, name) == 0) {
            return languages[i].language;
        }
    }
    return KILN_LANG_NONE;
}

kiln_language kiln_language_of_path(const char *path)
{
    for (size_t i = 0; path != NULL && i < LANGUAGE_ROWS; i++) {
        if (has_ending(path, languages[i].ending) || has_ending(path, languages[i].other_ending)) {
            return languages[i].language;
        }
    }
    return KILN_LANG_NONE;
}

const char *kiln_device_class_name(kiln_device_class device_class)
{
    switch (device_class) {
    case KILN_DEVICE_DISCRETE:
        return "discrete";
    case KILN_DEVICE_INTEGRATED:
        return "integrated";
    case KILN_DEVICE_VIRTUAL:
        return "virtual";
    case KILN_DEVICE_SOFTWARE:
        return "software";
    }
    return "unknown";
}

const char *kiln_probe_outcome_name(kiln_probe_outcome outcome)
{
    static const char *const names[] = {
#define OUTCOME_NAME(name, text) text,
        KILN_PROBE_MAP(OUTCOME_NAME)
#undef OUTCOME_NAME
    };
    size_t index = (size_t)outcome;
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : "unknown";
}
