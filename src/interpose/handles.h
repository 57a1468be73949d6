/* Which handles are kiln's: the addresses of its objects that are alive. A caller's handle may be
 * one of the real library's, one that was destroyed, or no address at all, so it is looked up and
 * never read. A set takes no lock: fork(2) leaves it whole whatever other threads do.
 *
 * Looking up costs a few loads. Blocks of the set are never freed. */
#ifndef KILN_INTERPOSE_HANDLES_H
#define KILN_INTERPOSE_HANDLES_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct kn_handle_block kn_handle_block;

/* All zero: empty. */
typedef struct kn_handles {
    kn_handle_block *_Atomic first;
} kn_handles;

/* False when out of memory. `handle` is not NULL and not in the set. Threads: any. */
bool kn_handles_add(kn_handles *set, const void *handle);
/* False if it is not in the set. Of several threads that remove a handle, one gets true. */
bool kn_handles_remove(kn_handles *set, const void *handle);
bool kn_handles_have(kn_handles *set, const void *handle);

#endif
