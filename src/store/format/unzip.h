/* Unpacking of one zstd frame that says how large it is, within a time. */
#ifndef KILN_STORE_UNZIP_H
#define KILN_STORE_UNZIP_H

#include "kiln/status.h"

#include "base/span.h"

/* Fills `out`, which must be the frame's whole content. `dictionary` may be empty. From the moment
 * `until` on (kn_clock_now; 0: never) it gives up: what a stranger sends may take long to unpack.
 * KILN_E_CORRUPT, KILN_E_TIMEOUT, KILN_E_NOMEM. */
kiln_status kn_unzip(kn_span frame, kn_span dictionary, uint64_t until, void *out, size_t size);

#endif
