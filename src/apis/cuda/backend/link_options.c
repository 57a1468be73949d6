/* What nvJitLink is given when it makes machine code of link-time optimised IR: NVRTC has only
 * parsed by then, so the options that steer the making of code have to be said again, in
 * nvJitLink's words (nvJitLink user guide, "nvJitLinkCreate"). */
#include <string.h>

#include "apis/cuda/backend/link_options.h"
#include "base/text.h"

/* Options that are true or false, and how nvJitLink spells them. */
enum { FTZ, PREC_DIV, PREC_SQRT, FMA, SWITCHES };

typedef enum option_kind { SWITCH, FAST, FLAG, VALUE, LIST } option_kind;

static const struct {
    const char *brief, *full;
    option_kind kind;
    int which; /* SWITCH */
    const char *link;
} rows[] = {
    {"-ftz", "--ftz", SWITCH, FTZ, "-ftz"},
    {"-prec-div", "--prec-div", SWITCH, PREC_DIV, "-prec-div"},
    {"-prec-sqrt", "--prec-sqrt", SWITCH, PREC_SQRT, "-prec-sqrt"},
    {"-fmad", "--fmad", SWITCH, FMA, "-fma"},
    {"-use_fast_math", "--use_fast_math", FAST, 0, NULL},
    {"-G", "--device-debug", FLAG, 0, "-g"},
    {"-lineinfo", "--generate-line-info", FLAG, 0, "-lineinfo"},
    {"-maxrregcount", "--maxrregcount", VALUE, 0, "-maxrregcount"},
    {"-Xptxas", "--ptxas-options", LIST, 0, "-Xptxas"},
};

static void add_link_option(kn_cuda_link_options *out, const char *name, const char *value,
                            size_t length)
{
    if (out->count == KN_CUDA_LINK_OPTIONS ||
        strlen(name) + length + 2 > sizeof(out->text[out->count])) {
        out->failed = true;
        return;
    }
    char *text = out->text[out->count];
    kn_text_putf(text, sizeof(out->text[0]), "%s%s%.*s", name, length > 0 ? "=" : "", (int)length,
                 value);
    for (uint32_t i = 0; i < out->count; i++) {
        if (strcmp(out->items[i], text) == 0) {
            return; /* nvJitLink takes none twice */
        }
    }
    out->items[out->count++] = text;
}

/* "-O1,-v" are two options of ptxas. */
static void add_list(kn_cuda_link_options *out, const char *name, const char *list)
{
    while (*list != '\0') {
        const size_t length = strcspn(list, ",");
        if (length > 0) {
            add_link_option(out, name, list, length);
        }
        list += length + (list[length] == ',');
    }
}

/* What follows the option's name: "=VALUE", or the next option; "" if nothing does, NULL if this is
 * another option. */
static const char *value_of(const kiln_source *source, size_t index, const char *name)
{
    const char *option = source->options[index];
    const size_t length = strlen(name);
    if (strncmp(option, name, length) != 0) {
        return NULL;
    }
    if (option[length] == '=') {
        return option + length + 1;
    }
    return option[length] != '\0'             ? NULL
           : index + 1 < source->option_count ? source->options[index + 1]
                                              : "";
}

static void take_link_option(kn_cuda_link_options *out, size_t row, const char *value,
                             int switches[SWITCHES])
{
    switch (rows[row].kind) {
    case SWITCH:
        switches[rows[row].which] = strcmp(value, "true") == 0;
        break;
    case FAST:
        switches[FTZ] = switches[FMA] = 1;
        switches[PREC_DIV] = switches[PREC_SQRT] = 0;
        break;
    case FLAG:
        add_link_option(out, rows[row].link, "", 0);
        break;
    case VALUE:
        add_link_option(out, rows[row].link, value, strlen(value));
        break;
    case LIST:
        add_list(out, rows[row].link, value);
        break;
    }
}

void kn_cuda_link_options_init(kn_cuda_link_options *out, const kiln_source *source,
                               const char *architecture, bool uncached)
{
    int switches[SWITCHES] = {-1, -1, -1, -1};
    memset(out, 0, sizeof(*out));
    add_link_option(out, "-lto", "", 0);
    add_link_option(out, "-arch", architecture, strlen(architecture));
    if (uncached) {
        add_link_option(out, "-no-cache", "", 0);
    }
    for (size_t i = 0; i < source->option_count; i++) {
        for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            const char *value = value_of(source, i, rows[j].brief);
            value = value != NULL ? value : value_of(source, i, rows[j].full);
            if (value != NULL) {
                take_link_option(out, j, value, switches);
            }
        }
    }
    for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
        if (rows[j].kind == SWITCH && switches[rows[j].which] >= 0) {
            add_link_option(out, rows[j].link, switches[rows[j].which] == 1 ? "1" : "0", 1);
        }
    }
}
