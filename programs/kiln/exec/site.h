/* Files of Python packages, where the program that is to be started is a Python, or an entry point
 * next to one. */
#ifndef KILN_PROGRAM_EXEC_SITE_H
#define KILN_PROGRAM_EXEC_SITE_H

#include "cli/cmd.h"

/* The first file there is of `below`, names below a directory of packages, in the directories of
 * $PYTHONPATH and of `program` (NULL: none). NULL if there is none. */
char *exec_site_find(cli_pool *pool, const char *program, const char *const *below, size_t count);

#endif
