/* How long programs of PoCL may be read before a process ends, and what reading one takes: PoCL
 * compiles all of its kernels for that (docs/decisions/0012). The times are the process's, for all
 * its caches. Threads: any. */
#ifndef KILN_OPENCL_DROPIN_BUDGET_H
#define KILN_OPENCL_DROPIN_BUDGET_H

#include "apis/opencl/backend/opencl.h"
#include "engine/late.h"

/* A program was built in `build_ns`, and that was done at `now`. */
void kn_opencl_budget_earn(uint64_t build_ns, uint64_t now);

/* The clock of the budget: time in which the process waits earns nothing. */
uint64_t kn_opencl_budget_now(void);

/* A program that was expected to take `expected_ns` was read in `read_ns`. */
void kn_opencl_budget_spend(uint64_t expected_ns, uint64_t read_ns);

/* Whether a program may be read that is expected to take `expected_ns`: all reads together then
 * take a fiftieth of the time since the first build, if this one misses what is expected of it by
 * as much as those before. An estimate that is wrong by a factor of two and a half keeps them
 * within a twentieth. */
bool kn_opencl_budget_allows(uint64_t expected_ns, uint64_t now);

/* True where the user has asked for all programs, whatever it takes (KILN_CAPTURE=1, which `kiln
 * exec --capture` sets). */
bool kn_opencl_budget_is_lifted(void);

/* How long reading a program is expected to take, by the sizes of the libraries that PoCL has
 * loaded for launches of its kernels; 0 when none of them has been launched in this process.
 * Another program's kernel of the same name counts as its own. `is_linked`: PoCL makes such
 * libraries; else it is a guess by the number of kernels. */
uint64_t kn_opencl_budget_cost(const kn_opencl_api *api, cl_program program, bool is_linked);
/* The guess alone, of what nothing is known. */
uint64_t kn_opencl_budget_guess(const kn_opencl_api *api, cl_program program);

/* kn_late_publish of a program that was expected to take `expected_ns`, which is spent if it is
 * read. A failure is logged. */
kiln_status kn_opencl_budget_publish(const kn_request *request, uint64_t compile_ns,
                                     kn_late_fn *read, void *user, uint64_t expected_ns);

#endif
