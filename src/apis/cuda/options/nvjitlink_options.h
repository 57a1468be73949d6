/* The options of a link by nvJitLink: a closed list, nvjitlink_options.def. */
#ifndef KILN_CUDA_OPTIONS_NVJITLINK_OPTIONS_H
#define KILN_CUDA_OPTIONS_NVJITLINK_OPTIONS_H

#include <stdint.h>

/* Why a link with these options, in this environment, bypasses the cache, static; NULL if it need
 * not. */
const char *kn_jitlink_options_reason(uint32_t count, const char *const *options);

#endif
