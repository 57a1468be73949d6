/* Replacing a cached artifact by a better one: some drivers finish a binary only at the first
 * launch of a shape (KILN_CAP_CAPTURE). A worker of the runtime does it, never the launching
 * thread. */
#ifndef KILN_CORE_CAPTURE_H
#define KILN_CORE_CAPTURE_H

#include "core/runtime/runtime.h"

/* The most kernels of a program that is still captured for the first time while the runtime ends.
 */
#define KN_CAPTURE_AT_END 8

/* After a launch: queues a capture if the program grew by it. Blocks: never (one call to the
 * backend). */
void kn_capture_consider(kiln_program *program);

/* Finishes what is pending, for at most some seconds; what is left then is given up. */
void kn_capture_finish(kiln_runtime *runtime);

#endif
