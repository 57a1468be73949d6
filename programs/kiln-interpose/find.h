/* Where the library lies that a caller would have got without kiln. Links libc alone. */
#ifndef KILN_INTERPOSE_FIND_H
#define KILN_INTERPOSE_FIND_H

#include <stdbool.h>
#include <stddef.h>

#define KN_FIND_PATH 4096
#define KN_INTERPOSE_CORE "libkiln-interpose.so"

/* Finds libnvrtc.so.MAJOR as the loader would for the code at `caller`, kiln's own left out:
 * $KILN_NVRTC_LIBRARY; one that is mapped already, as a second dlopen(3) would get; the RPATH of
 * the caller and of the program; for a module of a Python package, the NVIDIA wheels next to it;
 * $LD_LIBRARY_PATH; the caller's RUNPATH; $KILN_NVRTC_MAJOR, which `kiln exec` sets; the loader's
 * cache and default directories; $CONDA_PREFIX, $CUDA_PATH, $CUDA_HOME, /usr/local/cuda. False if
 * there is none. Threads: any. Blocks: disk. */
bool kn_find_nvrtc(int major, const void *caller, char *out_path, size_t size);

/* As kn_find_nvrtc for libnvJitLink.so.MAJOR, $KILN_NVJITLINK_LIBRARY and $KILN_NVJITLINK_MAJOR. */
bool kn_find_nvjitlink(int major, const void *caller, char *out_path, size_t size);

/* As kn_find_nvrtc for libhiprtc.so.MAJOR, $KILN_HIPRTC_LIBRARY and $KILN_HIPRTC_MAJOR; `inside`:
 * for libamdhip64.so.MAJOR, $KILN_HIP_LIBRARY and $KILN_HIP_MAJOR. Instead of toolkits of CUDA's,
 * those below $ROCM_PATH, $HIP_PATH and /opt/rocm. */
bool kn_find_hiprtc(int major, bool inside, const void *caller, char *out_path, size_t size);

/* The path of a file of kiln's two directories above this library. */
bool kn_find_core(const char *name, char *out_path, size_t size);

#endif
