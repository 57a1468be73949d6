/* The options of a link by nvJitLink. */
#ifndef KILN_CUDA_BACKEND_LINK_OPTIONS_H
#define KILN_CUDA_BACKEND_LINK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/source.h"

enum { KN_CUDA_LINK_OPTIONS = 32 };

typedef struct kn_cuda_link_options {
    const char *items[KN_CUDA_LINK_OPTIONS]; /* point into text: not to be copied */
    char text[KN_CUDA_LINK_OPTIONS][128];
    uint32_t count;
    bool failed; /* too many, or one too long */
} kn_cuda_link_options;

/* Those for an architecture ("sm_90"), and those that the source's options for NVRTC ask for.
 * `uncached` keeps nvJitLink from a cache of its own, which is NVRTC's and costs the same. */
void kn_cuda_link_options_init(kn_cuda_link_options *out, const kiln_source *source,
                               const char *architecture, bool uncached);

#endif
