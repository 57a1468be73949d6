/* One compile by NVRTC, wherever it runs: what is given, and what comes back. */
#ifndef KILN_CUDA_BACKEND_HELPER_H
#define KILN_CUDA_BACKEND_HELPER_H

#include "apis/cuda/backend/instance.h"

typedef struct kn_cuda_unit {
    const char *text;  /* NUL-terminated */
    const char *name;  /* for NVRTC */
    const char *shown; /* in messages */
    const char *const *options;
    int option_count;
    const char *const *expressions;
    size_t expression_count;
    char kind; /* 'c' CUBIN, 'p' PTX, 'l' LTO IR */
} kn_cuda_unit;

typedef struct kn_cuda_answer {
    nvrtcResult result;
    char *log; /* "" if there is none; part of `bytes` */
    size_t log_length;
    const void *output;
    size_t output_size;
    const char **lowered; /* one an expression */
    size_t lowered_count, lowered_room;
    char header; /* 'u': a precompiled one was used */
    char *bytes; /* what all of it lies in */
    size_t size;
} kn_cuda_answer;

/* True if a source's headers are so many that a helper pays. */
bool kn_cuda_helper_wanted(const kn_cuda *cuda, const kiln_compile_request *request);

/* Blocks: the compile. KILN_OK also when the compile failed (answer.result); KILN_MISS: no answer,
 * and nothing to release. */
kiln_status kn_cuda_helper_compile(const kn_cuda *cuda, const kn_cuda_unit *unit,
                                   const kiln_precompile *precompile, kn_cuda_answer *out_answer);
void kn_cuda_answer_deinit(kn_cuda_answer *answer);

#endif
