/* See nvrtc_process.h. */
#include "backends/cuda/nvrtc_process.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "sys/env.h"

/* Read by NVRTC, or by what it contains, when it is loaded. NVRTC_PREPEND_FLAGS and
 * NVRTC_APPEND_FLAGS are read in each compile and are the callers' affair. */
static const char *const load_variables[] = {
    "NV_NVVM_VERSION", "LLVM_OVERRIDE_PRODUCER", "NVVM_IR_VER_CHK",
    "NVRTCWIZ",        "CAN_FINALIZE_DEBUG",     "EDG_MODULES_PATH",
    "EDG_BASE",        "DUMP_KNOBS_TO_FILE",     "AS_SECURE_LOG_FILE",
};
static const char *const flag_variables[] = {"NVRTC_PREPEND_FLAGS", "NVRTC_APPEND_FLAGS"};

static atomic_bool loaded_with_variable;
static atomic_bool compiled_with_restrict;

static bool has_load_variable(void)
{
    for (size_t i = 0; i < sizeof(load_variables) / sizeof(load_variables[0]); i++) {
        if (kn_env_get(load_variables[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Wherever the word stands: "--restrict", "-restrict ", in a list of options. A compile that is
 * taken for one with the option costs hits, the opposite would cost a wrong entry. */
static bool has_restrict(const char *const *options, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (options[i] != NULL && strstr(options[i], "-restrict") != NULL) {
            return true;
        }
    }
    return false;
}

void kn_nvrtc_process_loading(void)
{
    if (has_load_variable()) {
        atomic_store(&loaded_with_variable, true);
    }
}

void kn_nvrtc_process_compiling(const char *const *options, size_t count)
{
    const char *variables[2] = {kn_env_get(flag_variables[0]), kn_env_get(flag_variables[1])};
    if (has_restrict(options, count) || has_restrict(variables, 2)) {
        atomic_store(&compiled_with_restrict, true);
    }
}

const char *kn_nvrtc_process_reason(const char *const *options, size_t count)
{
    if (atomic_load(&loaded_with_variable) || has_load_variable()) {
        return "NVRTC: a variable that it reads when it is loaded is set";
    }
    if (atomic_load(&compiled_with_restrict) && !has_restrict(options, count)) {
        return "NVRTC: this process has compiled with -restrict, which stays in force";
    }
    return NULL;
}
