/* Compiles of several files in a child process: a compiler that crashes takes that process along,
 * and neither this one nor the other files. The caller creates one and watches; where that returns
 * false it asks for each file, on any thread, whose turn it is, and says how a compile ended. */
#ifndef KILN_PROGRAM_COMPILE_APART_H
#define KILN_PROGRAM_COMPILE_APART_H

#include <kiln/kiln.h>

#include "cli/cmd.h"

/* What is known of a file's compile, for the process after the one that made it. */
typedef struct compile_facts {
    kiln_origin origin;
    uint64_t size, total_ns, compile_ns, saved_ns;
} compile_facts;

typedef struct compile_apart compile_apart;

/* NULL where files cannot be compiled apart: then they are compiled here. */
compile_apart *compile_apart_create(cli_pool *pool, size_t count);

/* Starts child processes, one after another, until one has looked at every file. False in each of
 * them, and where none can be started. True in this process: *out_code is the last one's. After a
 * crash in which several files were compiled at once, those are compiled one by one to find out
 * which of them it was. */
bool compile_apart_watch(compile_apart *apart, const cmd_context *context, exit_code *out_code);
/* Whether one file at a time is to be compiled now. */
bool compile_apart_is_slow(const compile_apart *apart);

typedef enum compile_turn {
    COMPILE_NOW,     /* compile it, and say when that is over */
    COMPILE_DONE,    /* an earlier process has, well: *out_facts */
    COMPILE_CRASHED, /* an earlier process ended by it: the diag says so */
} compile_turn;

/* NULL-safe. Threads: any. */
compile_turn compile_apart_begin(compile_apart *apart, size_t index, const char *file,
                                 compile_facts *out_facts, kiln_diag *diag);
/* `facts` NULL: it failed, and a later process tries again. */
void compile_apart_end(compile_apart *apart, size_t index, const compile_facts *facts);

#endif
