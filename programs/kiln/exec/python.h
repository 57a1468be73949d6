/* Programs in Python: the switch that their adapters wait for, and what makes every start slow. */
#ifndef KILN_PROGRAM_EXEC_PYTHON_H
#define KILN_PROGRAM_EXEC_PYTHON_H

#include "exec/environment.h"

/* Sets KILN_PYTHON, unless the user did. Where kiln's package is not installed nothing reads it.
 * False when out of memory. */
void exec_python_add(exec_environment *environment);

/* One line for a user whose Python compiles at every start what it imports: by the environment, or,
 * for `program` (a file, or NULL), since the directories of its packages cannot be written. NULL if
 * it does not, as far as is cheap to see. */
const char *exec_python_bytecode(cli_pool *pool, const char *program);

#endif
