/* See nvjitlink_options.h and nvjitlink_options.def. */
#include "apis/cuda/options/nvjitlink_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "apis/cuda/options/ptxas_options.h"
#include "base/text.h"
#include "compilers/variables.h"

typedef enum option_form { FLAG, VALUE, PTXAS } option_form;

#define KN_NVJITLINK_OPTION(name, form) {name, form},
static const struct {
    const char *name;
    option_form form;
} rows[] = {
#include "apis/cuda/options/nvjitlink_options.def"
};

static bool is_ptxas_option_known(const char *option)
{
    char *argv[] = {(char *)"ptxas", (char *)(uintptr_t)option, (char *)"x", NULL};
    kn_ptxas_line line;
    kn_ptxas_line_read(3, argv, &line);
    return line.bypass[0] == '\0' && line.input_at == 2 && line.output_at == 0 &&
           strstr(option, "line") == NULL;
}

static bool is_link_option_known(const char *option)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *rest = option + strlen(rows[i].name);
        if (!kn_text_starts(option, rows[i].name) || *rest != (rows[i].form == FLAG ? '\0' : '=')) {
            continue;
        }
        return rows[i].form != PTXAS || is_ptxas_option_known(rest + 1);
    }
    return false;
}

const char *kn_jitlink_options_reason(uint32_t count, const char *const *options)
{
    const char *reason = kn_variables_reason(KN_COMPILER_NVJITLINK);
    for (uint32_t i = 0; reason == NULL && i < count; i++) {
        reason = is_link_option_known(options[i])
                     ? NULL
                     : "nvJitLink: an option that kiln does not follow";
    }
    return reason;
}
