/* What a code object depends on besides source and options: every library that takes part by build
 * id (the device libraries' bitcode is in libamd_comgr), the target, and the variables that the
 * compiler reads. */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "backends/hip/instance.h"
#include "backends/hip/options.h"
#include "sys/env.h"
#include "sys/file.h"

/* hipRTC's own: options that it adds to those it is given. */
static const char more_options[] = "HIPRTC_COMPILE_OPTIONS_APPEND";

kiln_status kn_hip_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                            const kiln_identity *identity, kiln_diag *diag)
{
    static const char *const variables[] = {
        "ROCM_PATH",
        "HIP_PATH",
        "LLVM_PATH",
        "HIP_DEVICE_LIB_PATH",
        "GPU_ENABLE_WGP_MODE",
        "GPU_ENABLE_WAVE32_MODE",
        "HIPRTC_COMPILE_OPTIONS_APPEND",
    };
    kn_hip *hip = (kn_hip *)instance;
    const kn_hip_target *wanted = (const kn_hip_target *)target->handle;
    (void)stage;
    kn_mutex_lock(&hip->lock);
    kiln_status status = kn_hip_facts_get(hip, diag);
    if (status == KILN_OK) {
        identity->text(identity->sink, "libraries", hip->facts.modules);
        identity->text(identity->sink, "hiprtc-version", hip->facts.version);
        identity->text(identity->sink, "arch", wanted->name);
        for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
            identity->env(identity->sink, variables[i]);
        }
    }
    kn_mutex_unlock(&hip->lock);
    return status;
}

const char *kn_hip_system_include_dir(void *instance, const kiln_target *target, size_t index)
{
    (void)instance;
    (void)target;
    (void)index;
    return NULL; /* hipRTC searches some, which its release decides: a header there bypasses */
}

bool kn_hip_ships_header(void *instance, const kiln_target *target, const char *name)
{
    (void)instance;
    (void)target;
    (void)name;
    return false; /* its own is given to every compile, and is named by none */
}

/* hipRTC includes its own header by a bare name, which the compiler looks for in the current
 * directory first, and before that for a precompiled one next to it. */
static const char *find_current_header(void)
{
    static const char *const names[] = {"hiprtc_runtime.h", "hiprtc_runtime.h.pch",
                                        "hiprtc_runtime.h.gch"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        kn_file_facts facts;
        if (kn_file_stat(names[i], true, &facts, NULL) != KILN_MISS) {
            return "the current directory has a hiprtc_runtime.h, which hipRTC takes for its own";
        }
    }
    return NULL;
}

/* Read by LLVM and LLD inside hipRTC, some of them once in a process: they change the code or the
 * debug information, or write a file of their own. One that was ever seen counts from then on. */
static const char *find_llvm_variable(void)
{
    static const char *const variables[] = {"LLD_VERSION", "LLD_REPRODUCE",
                                            "LLVM_OVERRIDE_PRODUCER", "AS_SECURE_LOG_FILE",
                                            "AMD_COMGR_TIME_STATISTICS"};
    static atomic_bool seen;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (kn_env_get(variables[i]) != NULL) {
            atomic_store(&seen, true);
        }
    }
    return atomic_load(&seen) ? "a variable is set that LLVM or LLD in hipRTC reads" : NULL;
}

static void read_options(const kiln_source *source, kn_hip_option_facts *out)
{
    const char *more = kn_env_get(more_options);
    kn_hip_options_read(source->options, source->option_count, out);
    if (more != NULL && more[0] != '\0') {
        kn_hip_option_facts facts;
        kn_hip_options_read_text(more, &facts);
        out->reason = out->reason != NULL ? out->reason : facts.reason;
        out->names = out->names || facts.names;
    }
}

const char *kn_hip_uncacheable_option(void *instance, const kiln_source *source)
{
    kn_hip_option_facts facts;
    (void)instance;
    read_options(source, &facts);
    const char *variable = find_llvm_variable();
    const char *reason = facts.reason != NULL ? facts.reason : variable;
    return reason != NULL ? reason : find_current_header();
}

uint32_t kn_hip_option_effects(void *instance, const kiln_source *source)
{
    kn_hip_option_facts facts;
    (void)instance;
    read_options(source, &facts);
    return facts.names ? KILN_OPTION_NAMES : 0u;
}
