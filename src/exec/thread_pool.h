/* A bounded number of threads for work that nobody stands waiting for (compiles in the background):
 * urgent tasks first, else in the order in which they came. It knows neither compiles nor programs.
 *
 *     kn_thread_pool_create(jobs, &pool, diag);      starts nothing yet
 *     kn_thread_pool_post(pool, &task, urgent);      the task is the caller's memory until it runs
 *     kn_thread_pool_destroy(pool);                  runs what is running, calls off the rest
 *
 * A task is run exactly once: either for its work, or with `called_off` when the pool is destroyed
 * first.
 */
#ifndef KILN_EXEC_THREAD_POOL_H
#define KILN_EXEC_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/status.h"

typedef struct kn_thread_pool kn_thread_pool;

/* The memory must live until `run` starts, and may be released by it. */
typedef struct kn_thread_pool_task {
    void (*run)(void *user, bool called_off);
    void *user;
    struct kn_thread_pool_task *next;
} kn_thread_pool_task;

#define KN_THREAD_POOL_MAX 256u

/* `jobs` threads at most (1 to KN_THREAD_POOL_MAX); `named` is called on each as it starts, or
 * NULL. */
kiln_status kn_thread_pool_create(uint32_t jobs, void (*named)(void *user), void *user,
                                  kn_thread_pool **out_pool, kiln_diag *diag);
/* Not from a task of the pool. NULL is allowed. */
void kn_thread_pool_destroy(kn_thread_pool *pool);

/* Any thread, also a task's own. Where no thread can be had at all, it runs before this returns;
 * one that is posted meanwhile runs after it, in the same call. */
void kn_thread_pool_post(kn_thread_pool *pool, kn_thread_pool_task *task, bool urgent);
uint32_t kn_thread_pool_jobs(const kn_thread_pool *pool);

#endif
