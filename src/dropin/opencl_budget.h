/* How long programs of PoCL may be read while caches are destroyed. The drop-in sees no launches,
 * so it cannot know which programs are worth the wait; PoCL compiles all kernels of each. What the
 * process pays for that is measured here: one program is read in any case, so that every start
 * leaves one less to compile. Another one is read only if all reads then take at most a quarter of
 * the time since the first build, and at most what the builds took in all. The figures are the
 * process's, for all its caches. Threads: any. */
#ifndef KILN_DROPIN_OPENCL_BUDGET_H
#define KILN_DROPIN_OPENCL_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pause that is hardly noticed: reads that take no longer in all are never held back. */
#define KN_OPENCL_BUDGET_FREE_NS (200ull * 1000000ull)

/* A program was built in `build_ns`, and that was done at `now`. */
void kn_opencl_budget_earn(uint64_t build_ns, uint64_t now);

/* A program of `kernels` kernels was read in `read_ns`. */
void kn_opencl_budget_spend(size_t kernels, uint64_t read_ns);

/* Whether another one of `kernels` may be read, if it takes as long a kernel as those before. */
bool kn_opencl_budget_allows(size_t kernels, uint64_t now);

#endif
