/* How long programs of PoCL may be read before a process ends: PoCL compiles all kernels of each
 * for that. The figures are the process's, for all its caches (docs/decisions/0012). Threads: any.
 */
#ifndef KILN_OPENCL_DROPIN_BUDGET_H
#define KILN_OPENCL_DROPIN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* A program was built in `build_ns`, and that was done at `now`. */
void kn_opencl_budget_earn(uint64_t build_ns, uint64_t now);

/* The clock of the budget: time in which the process waits earns nothing. */
uint64_t kn_opencl_budget_now(void);

/* A program that was expected to take `expected_ns` (worth.h) was read in `read_ns`. */
void kn_opencl_budget_spend(uint64_t expected_ns, uint64_t read_ns);

/* Whether a program may be read that is expected to take `expected_ns`: all reads together then
 * take a fiftieth of the time since the first build, if this one misses what is expected of it by
 * as much as those before. An estimate that is wrong by a factor of two and a half keeps them
 * within a twentieth. */
bool kn_opencl_budget_allows(uint64_t expected_ns, uint64_t now);

/* True where the user has asked for all programs, whatever it takes (KILN_CAPTURE=1, which `kiln
 * exec --capture` sets). */
bool kn_opencl_budget_is_lifted(void);

#endif
