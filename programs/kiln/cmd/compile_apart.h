/* Compiles several files in child processes, so that a crash of the compiler costs one file.
 * Sequence: create, watch; where watch returns false (in the child), begin and end for each file,
 * on any thread. */
#ifndef KILN_PROGRAM_COMPILE_APART_H
#define KILN_PROGRAM_COMPILE_APART_H

#include <kiln/kiln.h>

#include "cli/cmd.h"

/* The result of a file's compile, shared with later processes. */
typedef struct compile_facts {
    kiln_origin origin;
    uint64_t size, total_ns;
    uint64_t compile_ns; /* of what was compiled now; 0 for a hit */
    uint64_t saved_ns;   /* what the compile took that a hit saved */
} compile_facts;

typedef struct compile_apart compile_apart;

/* NULL where child processes are not available: then this process compiles the files. */
compile_apart *compile_apart_create(cli_pool *pool, size_t count);

/* Starts child processes, one after another, until all files have been tried. Returns false in each
 * child, and if no child can be started; true in the parent, with the last child's exit code. If
 * several files were being compiled when a child crashed, the next child compiles those one by one
 * to find the one that crashes. */
bool compile_apart_watch(compile_apart *apart, const cmd_context *context, exit_code *out_code);
/* Whether files must be compiled one at a time now. */
bool compile_apart_is_slow(const compile_apart *apart);

typedef enum compile_turn {
    COMPILE_NOW,     /* compile it, then call compile_apart_end */
    COMPILE_DONE,    /* an earlier process compiled it: *out_facts */
    COMPILE_CRASHED, /* an earlier process crashed on it: see the diag */
} compile_turn;

/* NULL-safe. Threads: any. */
compile_turn compile_apart_begin(compile_apart *apart, size_t index, const char *file,
                                 compile_facts *out_facts, kiln_diag *diag);
/* `facts` NULL: the compile failed; a later process tries again. */
void compile_apart_end(compile_apart *apart, size_t index, const compile_facts *facts);

#endif
