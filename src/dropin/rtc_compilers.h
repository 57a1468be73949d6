/* The compilers that a cache's NVRTC and hipRTC drop-ins have opened. To map one and to unmap it
 * again takes a good part of a small compile, so the one of the last compile stays until the cache
 * goes. */
#ifndef KILN_DROPIN_RTC_COMPILERS_H
#define KILN_DROPIN_RTC_COMPILERS_H

#include <stdbool.h>

#include "kiln/cache.h"

#include "core/runtime/driver.h"

/* Takes `driver`, which has compiled: in place of that of the same backend, which is closed. */
void kn_rtc_compilers_keep(kiln_cache *cache, kn_driver *driver);
/* Closes that of the backend; false if there is none. */
bool kn_rtc_compilers_drop(kiln_cache *cache, const kiln_backend *backend);
/* Closes and frees a driver that is not kept. */
void kn_rtc_driver_destroy(kn_driver *driver);

#endif
