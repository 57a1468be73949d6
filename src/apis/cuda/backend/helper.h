/* A compile by NVRTC in the program kiln-nvrtc. */
#ifndef KILN_CUDA_BACKEND_HELPER_H
#define KILN_CUDA_BACKEND_HELPER_H

#include "apis/cuda/backend/instance.h"

/* True if a source's headers are so many that a helper pays. */
bool kn_cuda_helper_wanted(const kn_cuda *cuda, const kiln_compile_request *request);

/* Blocks: the compile. KILN_OK also when the compile failed (answer.result); KILN_MISS: no answer,
 * and nothing to release. */
kiln_status kn_cuda_helper_compile(const kn_cuda *cuda, const kn_gpu_unit *unit,
                                   const kiln_precompile *precompile, kn_gpu_answer *out_answer);

#endif
