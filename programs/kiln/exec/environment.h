/* What `kiln exec` puts into a program's environment, so that kiln stands under the compilers that
 * it calls. Nothing that the user has set is lost: lists are put before or behind his. */
#ifndef KILN_PROGRAM_EXEC_ENVIRONMENT_H
#define KILN_PROGRAM_EXEC_ENVIRONMENT_H

#include "cli/cmd.h"

enum { EXEC_SETTINGS_MAX = 48 };

typedef struct exec_setting {
    const char *name, *value;
} exec_setting;

typedef struct exec_environment {
    cli_pool *pool;
    bool failed; /* out of memory or full: something is not in it */
    exec_setting settings[EXEC_SETTINGS_MAX];
    size_t count;
    const char *program;      /* its file; NULL: not found */
    const char *libraries;    /* the directory of what kiln puts into programs */
    const char *opencl_layer; /* NULL: not installed */
    const char *vulkan_layer; /* the directory of its manifest; NULL: not installed */
} exec_environment;

/* Finds what can be interposed for `program`, a name as execvp(3) takes it. KILN_E_UNAVAILABLE:
 * this installation has no libraries for it; KILN_E_NOMEM. */
kiln_status exec_environment_make(cli_pool *pool, const char *program, exec_environment *out,
                                  kiln_diag *diag);
/* A NULL (what could not be made) makes the environment a failed one. */
void exec_environment_add(exec_environment *environment, const char *name, const char *value);
/* `last` after what the variable holds, unless it is in it. */
void exec_environment_append(exec_environment *environment, const char *name, const char *last);
/* Into this process, which is to become the program. False when out of memory, or it is failed. */
bool exec_environment_apply(const exec_environment *environment);
/* This process is kiln, which asks the cache itself: takes the OpenCL layer out of the list that it
 * was started with. A program that it starts gets it back. False when out of memory. */
bool exec_environment_leave_layer(cli_pool *pool);
/* As lines that a shell reads. */
void exec_environment_print(const exec_environment *environment, FILE *file);

#endif
