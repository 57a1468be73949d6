/* One nvrtcCompileProgram: from the cache, or by the real NVRTC. */
#ifndef KILN_INTERPOSE_NVRTC_COMPILE_H
#define KILN_INTERPOSE_NVRTC_COMPILE_H

#include "interpose/nvrtc_program.h"

/* Compiles with the program's options. The code is what NVRTC would have given. Whatever is wrong
 * with the cache, the real NVRTC compiles. Blocks: disk, another's compile, NVRTC. */
nvrtcResult kn_nvrtc_compile(kn_nvrtc_program *program);

/* Version and architectures of a library, which callers ask for before they compile: kept, so that
 * a hit need not open it. The code is NVRTC's. */
enum { KN_NVRTC_ARCHS_MAX = 128 };
typedef struct kn_nvrtc_facts {
    int major, minor;
    int count;
    int archs[KN_NVRTC_ARCHS_MAX];
} kn_nvrtc_facts;
nvrtcResult kn_nvrtc_facts_get(const kn_nvrtc_real *library, kn_nvrtc_facts *out_facts);

/* Counts a compile by the private entry, whose source nobody but NVRTC can read; NULL: of a program
 * that is not kiln's. */
void kn_nvrtc_count_private(const kn_nvrtc_program *program);

#endif
