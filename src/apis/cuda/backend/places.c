/* Where CUDA lies on Linux: the driver's names, and the toolkit's. */
#include <string.h>

#include "apis/cuda/backend/locate.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/paths.h"

/* The soname first; then where WSL, NixOS and containers keep the driver; the toolkit's stub, which
 * the bare name may find, is recognised by what cuInit says. */
static const char *const driver_names[] = {"libcuda.so.1",
                                           "/usr/lib/wsl/lib/libcuda.so.1",
                                           "/run/opengl-driver/lib/libcuda.so.1",
                                           "/usr/local/nvidia/lib64/libcuda.so.1",
                                           "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                                           "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",
                                           "/usr/lib64/libcuda.so.1",
                                           NULL};

const char *const *kn_cuda_driver_names(void)
{
    return driver_names;
}

const kn_cuda_name_set kn_cuda_names = {
    .prefixes = {"libnvrtc.so.", "libnvrtc-builtins.so.", "libnvJitLink.so."},
    .shown = {"libnvrtc.so", "libnvrtc-builtins", "libnvJitLink.so"},
    .read = kn_cuda_read_dotted,
    .dirs = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", NULL},
    .nowhere = "/.kiln-no-folder/",
};

static bool toolkit_on_library_path(kn_cuda_toolkit *toolkit)
{
    const char *list = kn_env_get("LD_LIBRARY_PATH");
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ":");
        char path[KN_CUDA_PATH];
        if (length > 0 && length < sizeof(path)) {
            memcpy(path, list, length);
            path[length] = '\0';
            if (kn_cuda_toolkit_in(path, toolkit)) {
                return true;
            }
        }
        list += length + (list[length] == ':');
    }
    return false;
}

void kn_cuda_toolkit_find(kn_cuda_toolkit *out_toolkit)
{
    static const char *const system_dirs[] = {"/usr/lib/x86_64-linux-gnu",
                                              "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                              "/usr/lib/wsl/lib"};
    memset(out_toolkit, 0, sizeof(*out_toolkit));
    if (kn_cuda_toolkit_under(kn_env_get("CUDA_PATH"), out_toolkit) ||
        kn_cuda_toolkit_under(kn_env_get("CUDA_HOME"), out_toolkit) ||
        toolkit_on_library_path(out_toolkit) ||
        kn_cuda_toolkit_next_to(kn_paths_own_module(), out_toolkit) ||
        kn_cuda_toolkit_under("/usr/local/cuda", out_toolkit) ||
        kn_cuda_toolkit_numbered("/usr/local", "cuda-", out_toolkit)) {
        return;
    }
    for (size_t i = 0; i < sizeof(system_dirs) / sizeof(system_dirs[0]); i++) {
        if (kn_cuda_toolkit_in(system_dirs[i], out_toolkit)) {
            return;
        }
    }
    /* A program that brings its own, where kiln is a library of the system's. Last: it may lie
     * among thousands of others. */
    (void)kn_cuda_toolkit_next_to(kn_paths_own_program(), out_toolkit);
}
