/* What NVRTC's options mean for a key: a closed list. Pure text work: opens nothing and calls
 * nobody. */
#ifndef KILN_CUDA_OPTIONS_NVRTC_OPTIONS_H
#define KILN_CUDA_OPTIONS_NVRTC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "compilers/call_option.h"

typedef struct kn_nvrtc_option_facts {
    const char *reason; /* why the compile bypasses the cache, static; NULL if it need not */
    bool not_beside;    /* "x.h" is not searched next to its includer: --no-source-include */
    bool names;         /* the code holds the names of files: line information */
    bool carries_name;  /* an output has the source's name: bitcode for a link */
} kn_nvrtc_option_facts;

/* Reads options one by one, as nvrtcCompileProgram takes them. */
void kn_nvrtc_options_read(const char *const *options, size_t count, kn_nvrtc_option_facts *out);

/* What the option at `index` is to a program's call. */
void kn_nvrtc_option_read(const char *const *options, size_t count, size_t index,
                          kn_call_option *out);

/* The option, static, that keeps this version of NVRTC from a cache of its own; NULL where it has
 * none and would refuse the option. For that cache NVRTC 12.9 and later calls cuInit in the first
 * compile of a process, some 190 ms where nobody else has called it; it keeps the code and not what
 * the assembler said of it, so a log made from it lacks that. The output is the same without it. */
const char *kn_nvrtc_options_uncached(int major, int minor);

#endif
