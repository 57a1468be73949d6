/* A memory barrier on every processor that runs a thread of this process, paid for by the one who
 * asks, so that frequent readers need none (membarrier(2); FlushProcessWriteBuffers). */
#ifndef KILN_SYS_FENCE_H
#define KILN_SYS_FENCE_H

#include <stdbool.h>

/* Whether the system has it. Fast. */
bool kn_fence_available(void);
/* Once per process, before the first kn_fence_everywhere. May take milliseconds. */
bool kn_fence_register(void);
/* Unregistered, it works as well, but takes milliseconds each time. */
void kn_fence_everywhere(void);

#endif
