/* The process of a program that `kiln exec` starts. */
#ifndef KILN_PROGRAM_EXEC_CHILD_H
#define KILN_PROGRAM_EXEC_CHILD_H

#include "cli/cmd.h"
#include "exec/environment.h"

/* This process becomes the program. Returns only if it cannot be started. */
exit_code exec_child_become(const cmd_context *context, const opt_list *arguments);

/* Runs the program in a process of its own. Ctrl-C reaches it from the terminal, other signals are
 * passed on. With `aside` what it prints goes to standard error. Its exit code, or 128 and the
 * number of the signal that killed it. */
exit_code exec_child_run(const cmd_context *context, const exec_environment *environment,
                         const opt_list *arguments, bool aside);

/* An empty file for the report, which the caller removes: a temporary one, or where none can be
 * made one in memory, which is there as long as this process. NULL: the reason was said. */
char *exec_child_report(const cmd_context *context);

#endif
