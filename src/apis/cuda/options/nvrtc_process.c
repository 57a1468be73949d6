/* See nvrtc_process.h. */
#include "apis/cuda/options/nvrtc_process.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "compilers/variables.h"

static const char restricts[] = "-restrict";

static atomic_bool compiled_with_restrict;

/* Wherever the word stands: "--restrict", "-restrict ", in a list of options. A compile that is
 * taken for one with the option costs hits, the opposite would cost a wrong entry. */
static bool has_restrict(const char *const *options, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (options[i] != NULL && strstr(options[i], restricts) != NULL) {
            return true;
        }
    }
    return false;
}

void kn_nvrtc_process_loading(void)
{
    (void)kn_variables_reason(KN_COMPILER_NVRTC);
}

void kn_nvrtc_process_compiling(const char *const *options, size_t count)
{
    if (has_restrict(options, count) || kn_variables_hold_option(KN_COMPILER_NVRTC, restricts)) {
        atomic_store(&compiled_with_restrict, true);
    }
}

const char *kn_nvrtc_process_reason(const char *const *options, size_t count)
{
    const char *variable = kn_variables_reason(KN_COMPILER_NVRTC);
    if (variable != NULL) {
        return variable;
    }
    if (atomic_load(&compiled_with_restrict) && !has_restrict(options, count)) {
        return "NVRTC: this process has compiled with -restrict, which stays in force";
    }
    return NULL;
}
