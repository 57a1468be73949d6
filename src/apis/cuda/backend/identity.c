/* What cuda's artifacts depend on besides source and options: NVRTC and its builtins by build id,
 * the architecture, and for what the driver's own compiler makes, the driver. */
#include <string.h>

#include "apis/cuda/backend/instance.h"
#include "apis/cuda/options/nvrtc_options.h"
#include "apis/cuda/options/nvrtc_process.h"
#include "base/stages.h"
#include "base/text.h"

static void identify_compiler(const kn_cuda *cuda, const kn_cuda_target *wanted,
                              const kiln_identity *identity)
{
    char text[32];
    identity->text(identity->sink, "nvrtc", cuda->toolkit.nvrtc.build_id);
    identity->text(identity->sink, "nvrtc-builtins", cuda->toolkit.builtins.build_id);
    identity->text(identity->sink, "nvjitlink", cuda->toolkit.nvjitlink.build_id);
    kn_text_put_number(text, sizeof(text), "", (uint64_t)cuda->toolkit.major);
    const size_t major = strlen(text);
    kn_text_put_number(text + major, sizeof(text) - major, ".", (uint64_t)cuda->toolkit.minor);
    identity->text(identity->sink, "nvrtc-version", text);
    kn_text_put_number(text, sizeof(text), wanted->exact ? "sm_" : "compute_",
                       (uint64_t)wanted->arch);
    const size_t arch = strlen(text);
    text[arch] = wanted->suffix;
    text[arch + 1] = '\0';
    identity->text(identity->sink, "arch", text);
}

kiln_status kn_cuda_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                             const kiln_identity *identity, kiln_diag *diag)
{
    const kn_cuda *cuda = (const kn_cuda *)instance;
    const kn_cuda_target *wanted = (const kn_cuda_target *)target->handle;
    char text[32];
    (void)diag;
    if (strcmp(stage->name, kn_stage_cuda_jit) != 0) {
        identify_compiler(cuda, wanted, identity);
        return KILN_OK;
    }
    kn_text_putf(text, sizeof(text), "sm_%d", wanted->arch);
    identity->text(identity->sink, "arch", text);
    kn_text_putf(text, sizeof(text), "%d", cuda->driver_version);
    identity->text(identity->sink, "driver-cuda", text);
    identity->text(identity->sink, "driver", cuda->driver_text);
    identity->text(identity->sink, "libcuda", cuda->driver_build_id);
    identity->env(identity->sink, "CUDA_FORCE_PTX_JIT");
    identity->env(identity->sink, "CUDA_DISABLE_PTX_JIT");
    return KILN_OK;
}

const char *kn_cuda_system_include_dir(void *instance, const kiln_target *target, size_t index)
{
    const kn_cuda *cuda = (const kn_cuda *)instance;
    (void)target;
    /* cccl first, as nvcc has it. */
    const char *const dirs[2] = {cuda->toolkit.include[1], cuda->toolkit.include[0]};
    size_t seen = 0;
    for (size_t i = 0; i < 2; i++) {
        if (dirs[i][0] != '\0' && seen++ == index) {
            return dirs[i];
        }
    }
    return NULL;
}

bool kn_cuda_ships_header(void *instance, const kiln_target *target, const char *name)
{
    (void)instance;
    (void)target;
    (void)name;
    return false; /* NVRTC has no header of its own; the toolkit's are files and are followed */
}

const char *kn_cuda_uncacheable_option(void *instance, const kiln_source *source)
{
    kn_nvrtc_option_facts facts;
    (void)instance;
    kn_nvrtc_options_read(source->options, source->option_count, &facts);
    return facts.reason != NULL ? facts.reason
                                : kn_nvrtc_process_reason(source->options, source->option_count);
}

uint32_t kn_cuda_option_effects(void *instance, const kiln_source *source)
{
    kn_nvrtc_option_facts facts;
    (void)instance;
    kn_nvrtc_options_read(source->options, source->option_count, &facts);
    return (facts.not_beside ? KILN_OPTION_NOT_BESIDE : 0u) |
           (facts.names ? KILN_OPTION_NAMES : 0u);
}
