/* What NVRTC has apart from hipRTC, as kiln stands under it. */
#ifndef KILN_CUDA_SHIM_NVRTC_KIND_H
#define KILN_CUDA_SHIM_NVRTC_KIND_H

#include "interpose/rtc_library.h"

extern const kn_rtc_kind kn_nvrtc_kind;

#endif
