/* A bounded number of threads for work that nobody stands waiting for (compiles in the background):
 * urgent tasks first, else in the order in which they came. It knows neither compiles nor programs.
 *
 *     kn_crew_create(jobs, &crew, diag);      starts nothing yet
 *     kn_crew_post(crew, &task, urgent);      the task is the caller's memory until it runs
 *     kn_crew_destroy(crew);                  runs what is running, calls off the rest
 *
 * A task is run exactly once: either for its work, or with `called_off` when the crew goes first.
 */
#ifndef KILN_EXEC_CREW_H
#define KILN_EXEC_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/status.h"

typedef struct kn_crew kn_crew;

/* The memory must live until `run` starts, and may be released by it. */
typedef struct kn_crew_task {
    void (*run)(void *user, bool called_off);
    void *user;
    struct kn_crew_task *next;
} kn_crew_task;

#define KN_CREW_MAX 256u

/* `jobs` threads at most (1 to KN_CREW_MAX); `named` is called on each as it starts, or NULL. */
kiln_status kn_crew_create(uint32_t jobs, void (*named)(void *user), void *user, kn_crew **out_crew,
                           kiln_diag *diag);
/* Not from a task of the crew. NULL is allowed. */
void kn_crew_destroy(kn_crew *crew);

/* Any thread, also a task's own. Where no thread can be had at all, it runs before this returns;
 * one that is posted meanwhile runs after it, in the same call. */
void kn_crew_post(kn_crew *crew, kn_crew_task *task, bool urgent);
uint32_t kn_crew_jobs(const kn_crew *crew);

#endif
