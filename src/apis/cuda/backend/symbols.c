/* The rows that bind the three symbol tables. */
#include "apis/cuda/backend/instance.h"

#define TABLE kn_cuda_driver
#define G(row, called, symbol) {symbol, offsetof(TABLE, gpu.row), 0, KN_REQUIRED},
#define X(since, need, ret, name, args) {#name, offsetof(TABLE, name), since, need},
const kn_symbol kn_cuda_driver_symbols[] = {
#include "apis/cuda/backend/driver.def"
#include "apis/cuda/backend/gpu.def"
};
const size_t kn_cuda_driver_symbol_count =
    sizeof(kn_cuda_driver_symbols) / sizeof(kn_cuda_driver_symbols[0]);
#undef TABLE

#define TABLE kn_cuda_nvrtc
const kn_symbol kn_cuda_nvrtc_symbols[] = {
#include "apis/cuda/backend/nvrtc.def"
#undef X
#define X(row, name, parameters) {"nvrtc" name, offsetof(TABLE, rtc.row), 0, KN_REQUIRED},
#include "gpu/rtc.def"
#undef X
#define X(since, need, ret, name, args) {#name, offsetof(TABLE, name), since, need},
};
const size_t kn_cuda_nvrtc_symbol_count =
    sizeof(kn_cuda_nvrtc_symbols) / sizeof(kn_cuda_nvrtc_symbols[0]);
#undef TABLE

#define TABLE kn_cuda_nvjitlink
const kn_symbol kn_cuda_nvjitlink_symbols[] = {
#include "apis/cuda/backend/nvjitlink.def"
};
const size_t kn_cuda_nvjitlink_symbol_count =
    sizeof(kn_cuda_nvjitlink_symbols) / sizeof(kn_cuda_nvjitlink_symbols[0]);
