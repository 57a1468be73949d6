/* Workers that compile recorded programs again (kiln-replay), each in a process of its own: what a
 * compiler or driver does there, it does not do to this process. A version of a compiler, and a
 * target, has workers of its own. Recorded calls are made under kiln's libraries. */
#ifndef KILN_PROGRAM_EXEC_HELPER_H
#define KILN_PROGRAM_EXEC_HELPER_H

#include "cli/host.h"
#include "cli/pool.h"
#include "interpose/replay.h"

typedef struct exec_helpers exec_helpers;

/* Nothing is started yet. `mutex` guards the pool. KILN_E_NOMEM. */
kiln_status exec_helpers_create(cli_pool *pool, host_mutex *mutex, const char *cache_root,
                                const char *recording, exec_helpers **out_helpers, kiln_diag *diag);
void exec_helpers_destroy(exec_helpers *helpers);

/* Makes the recording's use `index` for `target`, by a worker that has nothing to do or a new one:
 * with the compiler by which it has the key `wanted` (NULL: any), else with the newest. As
 * kiln_recording_compile; KILN_E_COMPILE with the log; KILN_E_UNAVAILABLE: this installation lacks
 * the worker, or the machine the compiler; KILN_E_UNSUPPORTED: it bypasses the cache;
 * KILN_E_INTERNAL: the compiler killed its worker, or that says what it must not. May be called
 * side by side. */
kiln_status exec_helpers_call(exec_helpers *helpers, const char *name, size_t index,
                              const kiln_key *wanted, const char *target, kn_replay_answer *out,
                              kiln_diag *diag);

/* The same for a program that is no call, compiled by a runtime for `target`. False: there are no
 * workers for it here, and nothing was tried. */
bool exec_helpers_compile(exec_helpers *helpers, const char *name, size_t index, const char *target,
                          kn_replay_answer *out, kiln_status *out_status, kiln_diag *diag);

/* How many entries workers could not store. */
uint64_t exec_helpers_put_failures(const exec_helpers *helpers);

#endif
