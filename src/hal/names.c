/* Texts for the public enumerations of kiln/device.h, and their inverses. Each is one table. */
#include "kiln/device.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

typedef struct language_row {
    kiln_language language;
    const char *name;
    const char *suffix; /* of a file's name, or NULL */
} language_row;

static const language_row languages[] = {
    {KILN_LANG_C, "c", ".c"},
    {KILN_LANG_BUILTIN, "builtin", NULL},
    {KILN_LANG_OPENCL_C, "opencl-c", ".cl"},
    {KILN_LANG_CUDA, "cuda", ".cu"},
    {KILN_LANG_HIP, "hip", ".hip"},
    {KILN_LANG_GLSL, "glsl", ".comp"},
    {KILN_LANG_GLSL, "glsl", ".glsl"},
    {KILN_LANG_SPIRV, "spirv", ".spv"},
    {KILN_LANG_PTX, "ptx", ".ptx"},
    {KILN_LANG_CUBIN, "cubin", ".cubin"},
    {KILN_LANG_FATBIN, "fatbin", ".fatbin"},
    {KILN_LANG_FAKE, "fake", ".fake"},
};

#define LANGUAGE_ROWS (sizeof(languages) / sizeof(languages[0]))

const char *kiln_language_name(kiln_language language)
{
    for (size_t i = 0; i < LANGUAGE_ROWS; i++) {
        if (languages[i].language == language) {
            return languages[i].name;
        }
    }
    return language == KILN_LANG_NONE ? "none" : "unknown";
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
        if (languages[i].suffix != NULL && kn_text_ends(path, languages[i].suffix)) {
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
