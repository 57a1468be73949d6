/* The auditor that `kiln exec --audit` and `kiln doctor -- PROGRAM` put into a program
 * (programs/kiln-audit), and what it reports. */
#ifndef KILN_PROGRAM_EXEC_AUDIT_H
#define KILN_PROGRAM_EXEC_AUDIT_H

#include <stdbool.h>

#include "cli/cmd.h"
#include "exec/environment.h"

enum { EXEC_COMPILERS_MAX = 64, EXEC_LOADERS_MAX = 16 };

/* A library or program that compiles kernels, and which process loaded or started it. */
typedef struct exec_compiler {
    const char *path;
    const char *requester; /* the library or program that asked for it; "" where unknown */
    bool is_process;
    bool is_ours;      /* one of kiln's own, or a loader that has opened kiln's layer */
    bool is_requested; /* by one of kiln's own */
    size_t count;      /* processes */
} exec_compiler;

typedef struct exec_audit {
    exec_compiler compilers[EXEC_COMPILERS_MAX]; /* the first of them */
    size_t count;
    const char *loaders[EXEC_LOADERS_MAX]; /* that have opened a layer of kiln's */
    size_t loader_count;
    size_t processes; /* that the auditor was loaded into */
} exec_audit;

/* Puts the auditor into the environment. `report` (may be NULL) is an empty file for what it sees;
 * with `serves`, NVRTC by its absolute path leads to kiln. KILN_E_UNAVAILABLE: this installation
 * lacks the auditor; KILN_E_NOMEM. */
kiln_status exec_audit_add(cli_pool *pool, exec_environment *environment, const char *report,
                           bool serves, kiln_diag *diag);

/* Reads a report; lines that are not whole are left out. KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status exec_audit_read(cli_pool *pool, const exec_environment *environment, const char *path,
                            exec_audit *out_audit, kiln_diag *diag);

#endif
