/* libhiprtc.so.5 to .7 of kiln, and libkiln-hiprtc.so.5 and .6, which stand before the hipRTC that
 * is in HIP's runtime (libamdhip64.so, up to ROCm 6): see rtc.h. */
#include "apis/hip/shim/hiprtc_api.h"
#include "compilers/libraries.h"

typedef kn_hiprtc_table rtc_table;
typedef kn_hiprtc_real rtc_real;
typedef kn_interpose_hiprtc_fn rtc_entry_fn;
#define RTC_CALLS "apis/hip/shim/hiprtc_calls.def"
#define RTC_ENTRY KN_INTERPOSE_HIPRTC(KN_SHIM == KN_LIBRARY_hip)
#define RTC_ERROR_STRING hiprtcGetErrorString
#define RTC_UNKNOWN "HIPRTC_ERROR_INTERNAL_ERROR"
#include "rtc.h"
