/* libnvrtc.so.12 and libnvrtc.so.13 of kiln: see rtc.h. */
#include <errno.h>

#include "apis/cuda/shim/nvrtc_api.h"
#include "forward.h"

typedef kn_nvrtc_table rtc_table;
typedef kn_nvrtc_real rtc_real;
typedef kn_interpose_nvrtc_fn rtc_entry_fn;
#define RTC_CALLS "apis/cuda/shim/nvrtc_calls.def"
#define RTC_ENTRY KN_INTERPOSE_NVRTC
#define RTC_ERROR_STRING nvrtcGetErrorString
#define RTC_UNKNOWN "NVRTC_ERROR_INTERNAL_ERROR"
#include "rtc.h"

kn_forward_fn *_Atomic kn_forward_real;

/* Of __nvrtcCPEx, which creates a program from an encrypted source. */
kn_forward_fn *kn_forward_find(const void *caller)
{
    KN_UNCANCELLED;
    const int before = errno;
    kn_forward_fn *found = NULL;
    (void)use_table(caller);
    if (open_real() != NULL) {
        bind_symbol("__nvrtcCPEx", &found);
    }
    atomic_store(&kn_forward_real, found);
    errno = before;
    return found != NULL ? found : (kn_forward_fn *)lacks_function;
}
