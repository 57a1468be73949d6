/* Where the library lies that a caller would have got without kiln. Links libc alone. */
#ifndef KILN_INTERPOSE_FIND_H
#define KILN_INTERPOSE_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "compilers/libraries.h"

#define KN_FIND_PATH 4096
#define KN_CORE "libkiln-interpose.so"

/* Finds STEM.so.MAJOR of a library as the loader would for the code at `caller`, this library left
 * out, and those of other installations of kiln's:
 * $KILN_VARIABLE_LIBRARY; one that is mapped already, as a second dlopen(3) would get; the RPATH of
 * the caller and of the program; for a module of a Python package, the NVIDIA wheels next to it;
 * $LD_LIBRARY_PATH; the caller's RUNPATH; $KILN_VARIABLE_MAJOR, which `kiln exec` sets; the
 * loader's cache and default directories; $CONDA_PREFIX; $CUDA_PATH, $CUDA_HOME and
 * /usr/local/cuda, or $ROCM_PATH, $HIP_PATH and /opt/rocm. False if there is none. Threads: any.
 * Blocks: disk. */
bool kn_find_library(const kn_library *library, int major, const void *caller, char *out_path,
                     size_t size);

/* The core, which lies in the directory of this library or program, or one or two above it. False
 * where it cannot be read. Blocks: disk. */
bool kn_find_core(char *out_path, size_t size);

/* Whether a program is a ptxas of kiln's, of this installation or another. Blocks: disk. */
bool kn_find_is_shim(const char *path);

#endif
