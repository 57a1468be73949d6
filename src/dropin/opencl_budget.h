/* How long programs of PoCL may be read while caches are destroyed: PoCL compiles all kernels of
 * each. What the process pays for that is measured here.
 *
 * A program that no process has built before may never be built again. It is read only if all
 * reads then take less than a moment, or at most a twentieth of the time since the first build. Of
 * those that another process has built and left out, one is read in any case, so that every start
 * leaves one less to compile; another one only if all reads then take at most a quarter of that
 * time, and at most what the builds took in all. The figures are the process's, for all its caches.
 * Threads: any. */
#ifndef KILN_DROPIN_OPENCL_BUDGET_H
#define KILN_DROPIN_OPENCL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* A pause that is hardly noticed: reads that take no longer in all are never held back. */
#define KN_OPENCL_BUDGET_FREE_NS (200ull * 1000000ull)

/* A program was built in `build_ns`, and that was done at `now`. */
void kn_opencl_budget_earn(uint64_t build_ns, uint64_t now);

/* When the first build began; 0 before one has finished. */
uint64_t kn_opencl_budget_began(void);

/* A program that was expected to take `expected_ns` (opencl_worth.h) was read in `read_ns`. */
void kn_opencl_budget_spend(uint64_t expected_ns, uint64_t read_ns);

/* Whether a program may be read that is expected to take `expected_ns`, if it misses that by as
 * much as those before: one that another process has built, and one that none has. */
bool kn_opencl_budget_allows(uint64_t expected_ns, uint64_t now);
bool kn_opencl_budget_allows_new(uint64_t expected_ns, uint64_t now);
/* The same as the second, in a process whose author has not asked for a cache: at most a fiftieth
 * of the time since the first build, however short that is. */
bool kn_opencl_budget_allows_unasked(uint64_t expected_ns, uint64_t now);

#endif
