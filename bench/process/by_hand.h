/* The matrix product by the driver's own calls for CUDA, and by a C compiler for the processor. */
#ifndef KILN_BENCH_BY_HAND_H
#define KILN_BENCH_BY_HAND_H

#include <stdbool.h>

/* From a CUBIN in `path`; with NVRTC's library from the text in it. Prints the first number. */
bool by_hand_cuda(const char *path, const char *nvrtc);

/* From a shared object in `path`; one is made there first, by `cc`. */
bool by_hand_cpu(const char *path);
bool by_hand_cpu_cold(const char *path);
bool by_hand_cpu_compile(const char *path);

#endif
