/* What cuda's artifacts depend on besides source and options: NVRTC and its builtins by build id,
 * the architecture, and for what the driver's own compiler makes, the driver. */
#include <string.h>

#include "backends/cuda/instance.h"
#include "base/text.h"

static void identify_compiler(const kn_cuda *cuda, const kn_cuda_target *wanted,
                              const kiln_identity *identity)
{
    char text[32];
    identity->text(identity->sink, "nvrtc", cuda->toolkit.nvrtc.build_id);
    identity->text(identity->sink, "nvrtc-builtins", cuda->toolkit.builtins.build_id);
    identity->text(identity->sink, "nvjitlink", cuda->toolkit.nvjitlink.build_id);
    kn_text_putf(text, sizeof(text), "%d.%d", cuda->toolkit.major, cuda->toolkit.minor);
    identity->text(identity->sink, "nvrtc-version", text);
    kn_text_putf(text, sizeof(text), "%s_%d%.1s", wanted->exact ? "sm" : "compute", wanted->arch,
                 wanted->suffix != '\0' ? &wanted->suffix : "");
    identity->text(identity->sink, "arch", text);
    identity->env(identity->sink, "NVRTC_PREPEND_FLAGS");
    identity->env(identity->sink, "NVRTC_APPEND_FLAGS");
    identity->env(identity->sink, "NVVM_IR_VER_CHK");
}

kiln_status kn_cuda_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                             const kiln_identity *identity, kiln_diag *diag)
{
    const kn_cuda *cuda = (const kn_cuda *)instance;
    const kn_cuda_target *wanted = (const kn_cuda_target *)target->handle;
    char text[32];
    (void)diag;
    if (strcmp(stage->name, "cuda.jit") != 0) {
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
    static const struct {
        const char *prefix, *reason;
    } rows[] = {
        {"-include", "-include names a file that kiln does not follow"},
        {"--pre-include", "--pre-include names a file that kiln does not follow"},
        {"-I", "an include folder in the options is not followed; give it as an include dir"},
        {"--include-path", "an include folder in the options is not followed"},
        {"-pch", "a precompiled header that kiln did not make"},
        {"--pch", "a precompiled header that kiln did not make"},
        {"-use-pch", "a precompiled header that kiln did not make"},
        {"--use-pch", "a precompiled header that kiln did not make"},
        {"-create-pch", "-create-pch writes a file that a hit would not write"},
        {"--create-pch", "--create-pch writes a file that a hit would not write"},
        {"-time", "-time writes a file that a hit would not write"},
        {"--time", "--time writes a file that a hit would not write"},
        {"--fdevice-time-trace", "a time trace is a file that a hit would not write"},
        {"-fdevice-time-trace", "a time trace is a file that a hit would not write"},
    };
    (void)instance;
    for (size_t i = 0; i < source->option_count; i++) {
        for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            if (kn_text_starts(source->options[i], rows[j].prefix)) {
                return rows[j].reason;
            }
        }
    }
    return NULL;
}
