/* Files of Python packages, where the program that is to be started is a Python, or an entry point
 * next to one. */
#ifndef KILN_PROGRAM_EXEC_SITE_H
#define KILN_PROGRAM_EXEC_SITE_H

#include "cli/cmd.h"

/* Where the packages of a program lie: patterns of directories, each of which there is. */
typedef struct exec_sites {
    char **patterns;
    size_t count;
} exec_sites;

/* The directories of $PYTHONPATH and of `program`; none where it is NULL, or without memory. */
exec_sites exec_sites_list(cli_pool *pool, const char *program);

/* The first file that exists of `below`, names below a directory of packages; or NULL. */
char *exec_site_find(cli_pool *pool, const exec_sites *sites, const char *const *below,
                     size_t count);

#endif
