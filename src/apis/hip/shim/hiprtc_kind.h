/* What hipRTC has apart from NVRTC, as kiln stands under it. */
#ifndef KILN_HIP_SHIM_HIPRTC_KIND_H
#define KILN_HIP_SHIM_HIPRTC_KIND_H

#include "interpose/rtc_library.h"

extern const kn_rtc_kind kn_hiprtc_kind;

/* What is known of the library at `path`: its kn_rtc_library's state, as long as the process lives.
 * NULL without memory, or where the path is too long. */
void *kn_hiprtc_state_create(const char *path, kiln_cache *cache);

/* Around each call that compiles, of a hipRTC of this major version. */
void kn_hiprtc_turn_take(int major);
void kn_hiprtc_turn_end(int major);

#endif
