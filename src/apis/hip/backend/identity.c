/* What a code object depends on besides source and options: every library that takes part by build
 * id (the device libraries' bitcode is in libamd_comgr), the target, and the variables that the
 * compiler reads. */
#include <string.h>

#include "apis/hip/backend/instance.h"
#include "apis/hip/options/hiprtc_options.h"
#include "compilers/variables.h"
#include "sys/env.h"
#include "sys/file.h"

kiln_status kn_hip_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                            const kiln_identity *identity, kiln_diag *diag)
{
    kn_hip *hip = (kn_hip *)instance;
    const kn_hip_target *wanted = (const kn_hip_target *)target->handle;
    (void)stage;
    kn_mutex_lock(&hip->lock);
    kiln_status status = kn_hip_facts_get(hip, diag);
    if (status == KILN_OK) {
        identity->text(identity->sink, "libraries", hip->facts.modules);
        identity->text(identity->sink, "hiprtc-version", hip->facts.version);
        identity->text(identity->sink, "arch", wanted->name);
        const char *variable = NULL;
        for (size_t i = 0; (variable = kn_variables_keyed(KN_COMPILER_HIPRTC, i)) != NULL; i++) {
            identity->env(identity->sink, variable);
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

static void read_options(const kiln_source *source, kn_hiprtc_option_facts *out)
{
    const char *more = kn_env_get("HIPRTC_COMPILE_OPTIONS_APPEND");
    kn_hiprtc_options_read(source->options, source->option_count, out);
    if (more != NULL && more[0] != '\0') {
        kn_hiprtc_option_facts facts;
        kn_hiprtc_options_read_text(more, &facts);
        out->reason = out->reason != NULL ? out->reason : facts.reason;
        out->names = out->names || facts.names;
    }
}

const char *kn_hip_uncacheable_option(void *instance, const kiln_source *source)
{
    kn_hiprtc_option_facts facts;
    (void)instance;
    read_options(source, &facts);
    const char *variable = kn_variables_reason(KN_COMPILER_HIPRTC);
    const char *reason = facts.reason != NULL ? facts.reason : variable;
    return reason != NULL ? reason : find_current_header();
}

uint32_t kn_hip_option_effects(void *instance, const kiln_source *source)
{
    kn_hiprtc_option_facts facts;
    (void)instance;
    read_options(source, &facts);
    return facts.names ? KILN_OPTION_NAMES : 0u;
}

const kiln_include_rules kn_hip_include_rules = {
    .option_effects = kn_hip_option_effects,
};
