/* See doctor_problems.h. */
#include "cmd/doctor_problems.h"

#include <stdio.h>
#include <string.h>

#include "cli/out.h"

static const char *keep_text(doctor_problems *problems, const char *text)
{
    const char *copy = pool_text(problems->pool, text, strlen(text));
    problems->failed = problems->failed || copy == NULL;
    return copy;
}

void doctor_problem_add(doctor_problems *problems, exit_code code, const char *what,
                        const char *why, const char *fix)
{
    if (problems->count < DOCTOR_PROBLEMS_MAX) {
        problems->items[problems->count++] =
            (doctor_problem){code, keep_text(problems, what), keep_text(problems, why),
                             keep_text(problems, fix != NULL ? fix : "")};
    }
}

exit_code doctor_problems_code(const doctor_problems *problems)
{
    static const exit_code order[] = {EXIT_UNAVAILABLE, EXIT_CACHE};
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        for (size_t k = 0; k < problems->count; k++) {
            if (problems->items[k].code == order[i]) {
                return order[i];
            }
        }
    }
    return problems->count > 0 ? problems->items[0].code : EXIT_FINE;
}

const char *doctor_verdict(const doctor_problems *problems, const char *ready)
{
    if (problems->failed || problems->count == 0) {
        return problems->failed ? NULL : ready;
    }
    return pool_format(problems->pool, "%zu %s: %s%s", problems->count,
                       problems->count == 1 ? "problem" : "problems", problems->items[0].what,
                       problems->count > 1 ? ", ..." : "");
}

bool doctor_problems_print(const doctor_problems *problems, const char *ready)
{
    const char *verdict = doctor_verdict(problems, ready);
    if (verdict == NULL) {
        return false;
    }
    (void)fputs(problems->count > 0 ? "\nProblems\n" : "", stdout);
    for (size_t i = 0; i < problems->count; i++) {
        const doctor_problem *problem = &problems->items[i];
        out_print(stdout, "  %s: %s\n", problem->what, problem->why);
        if (*problem->fix != '\0') {
            out_print(stdout, "            fix: %s\n", problem->fix);
        }
    }
    (void)putchar('\n');
    out_paint(stdout, problems->count > 0 ? OUT_BAD : OUT_GOOD);
    out_print(stdout, "verdict: %s", verdict);
    out_paint(stdout, OUT_PLAIN);
    (void)putchar('\n');
    return true;
}

json_t *doctor_problems_json(const doctor_problems *problems)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < problems->count; i++) {
        const doctor_problem *problem = &problems->items[i];
        json_t *row = json_object();
        out_json_set(&row, "what", out_json_text(problem->what));
        out_json_set(&row, "why", out_json_text(problem->why));
        out_json_set(&row, "fix", out_json_text(problem->fix));
        out_json_append(&rows, row);
    }
    return rows;
}
