/* Where CUDA lies on Windows, by NVIDIA's documentation: the driver's name, and the toolkit's
 * (nvrtc64_130_0.dll, nvrtc-builtins64_130.dll, nvJitLink_130_0.dll). %PATH% is not looked at: any
 * user may have put a directory or a file there. */
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/locate.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/paths.h"

static const char *const driver_names[] = {"nvcuda.dll", NULL};

const char *const *kn_cuda_driver_names(void)
{
    return driver_names;
}

/* "130_0.dll" and "130.dll" are of 13.0. Not "120_0.alt.dll", NVRTC with another allocator. */
static bool read_dll_version(const char *text, int *major, int *minor)
{
    char *end = NULL;
    const long number = strtol(text, &end, 10);
    if (end == text || number < 10 || number > 9999) {
        return false;
    }
    if (end[0] == '_') {
        const char *rest = end + 1;
        (void)strtol(rest, &end, 10); /* counts what breaks programs within a major version */
        if (end == rest) {
            return false;
        }
    }
    *major = (int)(number / 10);
    *minor = (int)(number % 10);
    return strcmp(end, ".dll") == 0;
}

const kn_cuda_name_set kn_cuda_names = {
    .prefixes = {"nvrtc64_", "nvrtc-builtins64_", "nvJitLink_"},
    .shown = {"nvrtc64_*.dll", "nvrtc-builtins64_*.dll", "nvJitLink_*.dll"},
    .read = read_dll_version,
    .dirs = {"bin/x64", "bin", NULL}, /* of 13, and of those before */
    .nowhere = "?:/kiln-no-folder/",  /* a user may make \\.kiln-no-directory */
};

void kn_cuda_toolkit_find(kn_cuda_toolkit *out_toolkit)
{
    const char *programs = kn_env_get("ProgramFiles");
    char installed[KN_CUDA_PATH];
    memset(out_toolkit, 0, sizeof(*out_toolkit));
    if (kn_cuda_toolkit_under(kn_env_get("CUDA_PATH"), out_toolkit) ||
        kn_cuda_toolkit_under(kn_env_get("CUDA_HOME"), out_toolkit) ||
        kn_cuda_toolkit_next_to(kn_paths_own_module(), out_toolkit) ||
        kn_cuda_toolkit_next_to(kn_paths_own_program(), out_toolkit) || programs == NULL) {
        return;
    }
    kn_text_putf(installed, sizeof(installed), "%s/NVIDIA GPU Computing Toolkit/CUDA", programs);
    (void)kn_cuda_toolkit_numbered(installed, "v", out_toolkit);
}
