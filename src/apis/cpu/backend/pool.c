/* The pool of threads behind all queues of an instance. */
#include "apis/cpu/backend/pool.h"

#include <stdlib.h>

void kn_cpu_pool_init(cpu_pool *pool, uint32_t processors)
{
    const uint32_t most = processors < CPU_THREAD_LIMIT ? processors : CPU_THREAD_LIMIT;
    *pool = (cpu_pool){.wanted = most > 0 ? most - 1 : 0};
    kn_mutex_init(&pool->turn);
    kn_mutex_init(&pool->mutex);
    kn_cond_init(&pool->work);
    kn_cond_init(&pool->idle);
}

uint32_t kn_cpu_pool_workers(const cpu_pool *pool)
{
    return pool->wanted + 1;
}

static void work_on(cpu_pool_job *job, uint32_t worker)
{
    for (;;) {
        const size_t first = atomic_fetch_add(&job->taken, job->step);
        if (first >= job->total) {
            return;
        }
        const size_t left = job->total - first;
        job->run(job->user, first, first + (left < job->step ? left : job->step), worker);
    }
}

static void worker_main(void *user)
{
    const cpu_pool_worker *self = (const cpu_pool_worker *)user;
    cpu_pool *pool = self->pool;
    uint64_t seen = 0;
    kn_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->ending && (pool->job == NULL || pool->generation == seen)) {
            kn_cond_wait(&pool->work, &pool->mutex);
        }
        if (pool->ending) {
            break;
        }
        cpu_pool_job *job = pool->job;
        seen = pool->generation;
        pool->busy++;
        kn_mutex_unlock(&pool->mutex);
        work_on(job, self->number);
        kn_mutex_lock(&pool->mutex);
        if (--pool->busy == 0) {
            kn_cond_signal(&pool->idle);
        }
    }
    kn_mutex_unlock(&pool->mutex);
}

/* Under `turn`. Nobody waits until they run: one that comes late misses this job. Fewer threads
 * than wanted are fine. */
static void start_threads(cpu_pool *pool)
{
    pool->tried = true;
    pool->workers = (cpu_pool_worker *)calloc(pool->wanted, sizeof(*pool->workers));
    while (pool->workers != NULL && pool->started < pool->wanted) {
        cpu_pool_worker *worker = &pool->workers[pool->started];
        *worker = (cpu_pool_worker){.pool = pool, .number = pool->started + 1};
        if (kn_thread_start(worker_main, worker, &worker->thread, NULL) != KILN_OK) {
            break;
        }
        pool->started++;
    }
}

void kn_cpu_pool_run(cpu_pool *pool, cpu_piece_fn *run, void *user, size_t total)
{
    if (total <= 1 || pool->wanted == 0) {
        if (total > 0) {
            run(user, 0, total, 0);
        }
        return;
    }
    kn_mutex_lock(&pool->turn);
    if (!pool->tried) {
        start_threads(pool);
    }
    /* Eight turns a thread: enough to even out unequal groups, few enough to cost nothing. */
    const size_t turns = ((size_t)pool->started + 1) * 8;
    cpu_pool_job job = {.run = run, .user = user, .total = total};
    job.step = total / turns > 0 ? total / turns : 1;
    atomic_init(&job.taken, 0);

    kn_mutex_lock(&pool->mutex);
    pool->job = &job;
    pool->generation++;
    kn_cond_broadcast(&pool->work);
    kn_mutex_unlock(&pool->mutex);

    work_on(&job, 0);

    kn_mutex_lock(&pool->mutex);
    pool->job = NULL; /* who has not come yet is too late */
    while (pool->busy > 0) {
        kn_cond_wait(&pool->idle, &pool->mutex);
    }
    kn_mutex_unlock(&pool->mutex);
    kn_mutex_unlock(&pool->turn);
}

void kn_cpu_pool_deinit(cpu_pool *pool)
{
    kn_mutex_lock(&pool->mutex);
    pool->ending = true;
    kn_cond_broadcast(&pool->work);
    kn_mutex_unlock(&pool->mutex);
    for (uint32_t i = 0; i < pool->started; i++) {
        kn_thread_join(pool->workers[i].thread);
    }
    free(pool->workers);
    kn_cond_deinit(&pool->idle);
    kn_cond_deinit(&pool->work);
    kn_mutex_deinit(&pool->mutex);
    kn_mutex_deinit(&pool->turn);
}
