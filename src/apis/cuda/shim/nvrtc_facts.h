/* Version and architectures of an NVRTC, which callers ask for before they compile: kept, so that a
 * hit need not open it. */
#ifndef KILN_CUDA_SHIM_NVRTC_FACTS_H
#define KILN_CUDA_SHIM_NVRTC_FACTS_H

#include "apis/cuda/shim/nvrtc_api.h"
#include "interpose/rtc_library.h"

enum { KN_NVRTC_ARCHS_MAX = 128 };
typedef struct kn_nvrtc_facts {
    int major, minor;
    int count;
    int archs[KN_NVRTC_ARCHS_MAX];
} kn_nvrtc_facts;

/* The code is NVRTC's. */
nvrtcResult kn_nvrtc_facts_get(kn_rtc_library *library, const kn_nvrtc_real *real,
                               kn_nvrtc_facts *out_facts);

#endif
