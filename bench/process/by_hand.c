/* by_hand BACKEND warm|cold PATH [LIBRARY]: what `process.py` compares with: the same kernel by the
 * vendor's own calls, without kiln. Warm: from the binary in PATH. Cold: from its text by the
 * vendor's compiler; for Vulkan by shaderc in LIBRARY, for CUDA by NVRTC in LIBRARY. */
#include <stdio.h>
#include <string.h>

#include "bench/process/by_hand.h"
#include "bench/process/processor.h"
#include "bench/warm.h"

static bool start_warm(const char *backend, const char *path)
{
    return strcmp(backend, "opencl") == 0   ? warm_opencl_by_hand(path)
           : strcmp(backend, "vulkan") == 0 ? warm_vulkan_by_hand(path)
           : strcmp(backend, "opengl") == 0 ? warm_opengl_by_hand(path)
           : strcmp(backend, "cuda") == 0   ? by_hand_cuda(path, NULL)
                                            : by_hand_cpu(path);
}

static bool start_cold(const char *backend, const char *path, const char *library)
{
    return strcmp(backend, "opencl") == 0   ? warm_opencl_plain()
           : strcmp(backend, "vulkan") == 0 ? warm_vulkan_from_text(library)
           : strcmp(backend, "opengl") == 0 ? warm_opengl_plain()
           : strcmp(backend, "cuda") == 0   ? by_hand_cuda(path, library)
                                            : by_hand_cpu_cold(path);
}

static void destroy_all(const char *backend)
{
    if (strcmp(backend, "opencl") == 0) {
        warm_opencl_destroy();
    } else if (strcmp(backend, "vulkan") == 0) {
        warm_vulkan_destroy();
    } else if (strcmp(backend, "opengl") == 0) {
        warm_opengl_destroy();
    }
}

int main(int argc, char **argv)
{
    bool done = false;
    if (argc < 4) {
        (void)fprintf(stderr, "usage: by_hand BACKEND warm|cold|save PATH [LIBRARY]\n");
        return 2;
    }
    if (strcmp(argv[2], "save") ==
        0) { /* the binary that `warm` takes, where kiln's has a wrapping */
        done = strcmp(argv[1], "opengl") == 0 ? warm_opengl_export(argv[3])
                                              : by_hand_cpu_compile(argv[3]);
    } else if (strcmp(argv[2], "warm") == 0) {
        done = start_warm(argv[1], argv[3]);
    } else {
        done = start_cold(argv[1], argv[3], argc > 4 ? argv[4] : NULL);
    }
    (void)fflush(stdout);
    print_processor_time();
    destroy_all(argv[1]);
    return done ? 0 : 1;
}
