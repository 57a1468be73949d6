/* Helpers that make recorded calls again (kiln-replay), each in a process of its own under kiln's
 * libraries: what a compiler does there, it does not do to this process. */
#ifndef KILN_PROGRAM_EXEC_HELPER_H
#define KILN_PROGRAM_EXEC_HELPER_H

#include <kiln/cache.h>

#include "cli/host.h"
#include "cli/pool.h"

typedef struct exec_helpers exec_helpers;

/* Nothing is started yet. `mutex` guards the pool. KILN_E_NOMEM. */
kiln_status exec_helpers_create(cli_pool *pool, host_mutex *mutex, const char *cache_root,
                                exec_helpers **out_helpers, kiln_diag *diag);
void exec_helpers_destroy(exec_helpers *helpers);

/* What became of one call. */
typedef struct exec_answer {
    bool compiled;
    kiln_key key;
    uint64_t took_ns, saved_ns;
} exec_answer;

/* Makes one call by a helper that has nothing to do, or by a new one. KILN_E_COMPILE with the log;
 * KILN_E_UNAVAILABLE: this installation lacks the helper, or the machine the compiler;
 * KILN_E_UNSUPPORTED: it bypasses the cache; KILN_E_INTERNAL: the helper was killed, or says what
 * it must not. May be called side by side. */
kiln_status exec_helpers_call(exec_helpers *helpers, const char *name, const char *bytes,
                              size_t size, exec_answer *out_answer, kiln_diag *diag);

#endif
