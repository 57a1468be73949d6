/* `kiln doctor -- PROGRAM`: which compilers a program uses, and which of them kiln stands under. */
#ifndef KILN_PROGRAM_DOCTOR_PROGRAM_H
#define KILN_PROGRAM_DOCTOR_PROGRAM_H

#include <jansson.h>

#include "cli/cmd.h"
#include "cmd/doctor_problems.h"

/* Runs the program to its end. The exit code is that of the examination: EXIT_FINE when it could be
 * made, whatever the program's own is (which is printed). */
exit_code doctor_program_run(const cmd_context *context, const opt_list *arguments, bool json);

/* What would keep kiln from working under any program; nothing where all is well. */
void doctor_program_judge(doctor_problems *problems);
void doctor_program_print_troubles(cli_pool *pool);
json_t *doctor_program_troubles_json(cli_pool *pool);

#endif
