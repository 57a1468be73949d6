/* What kiln doctor found wrong, and the verdict that it ends with. */
#ifndef KILN_PROGRAM_DOCTOR_PROBLEMS_H
#define KILN_PROGRAM_DOCTOR_PROBLEMS_H

#include <stdbool.h>

#include <jansson.h>

#include "cli/exit.h"
#include "cli/pool.h"

enum { DOCTOR_PROBLEMS_MAX = 64 };

typedef struct doctor_problem {
    exit_code code;
    const char *what, *why, *fix;
} doctor_problem;

typedef struct doctor_problems {
    cli_pool *pool;
    doctor_problem items[DOCTOR_PROBLEMS_MAX]; /* the first of them */
    size_t count;
    bool failed; /* out of memory somewhere */
} doctor_problems;

/* Copies the texts. `fix` may be NULL. */
void doctor_problem_add(doctor_problems *problems, exit_code code, const char *what,
                        const char *why, const char *fix);
/* Of the worst: no backend, then the cache, then what is set wrong. */
exit_code doctor_problems_code(const doctor_problems *problems);
/* The problems, and last the verdict's line. `ready` is what a machine without problems hears.
 * False: no memory. */
bool doctor_problems_print(const doctor_problems *problems, const char *ready);
json_t *doctor_problems_json(const doctor_problems *problems);
/* NULL: no memory. */
const char *doctor_verdict(const doctor_problems *problems, const char *ready);

#endif
