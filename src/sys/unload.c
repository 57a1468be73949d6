/* The end of the library: a destructor, which belongs to this file's library and goes with it,
 * while what is given to atexit() would be called after a dlclose. */
#include "sys/unload.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(kn_unload_fn *) at_unload;

void kn_unload_set(kn_unload_fn *run)
{
    atomic_store_explicit(&at_unload, run, memory_order_release);
}

__attribute__((destructor)) static void run_at_unload(void)
{
    kn_unload_fn *run = atomic_exchange_explicit(&at_unload, NULL, memory_order_acquire);
    if (run != NULL) {
        run();
    }
}
