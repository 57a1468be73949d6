/* Threads that are started one by one as tasks find none idle, and stay until the end. */
#include "exec/thread_pool.h"

#include <stdlib.h>

#include "base/diag.h"
#include "sys/thread.h"

typedef struct line {
    kn_thread_pool_task *first, *last;
} line;

struct kn_thread_pool {
    kn_mutex mutex;
    kn_cond work; /* something was posted, or stop */
    line urgent, ordinary;
    uint32_t jobs, started, idle;
    uint32_t waiting; /* tasks in both lines */
    bool here;        /* without any thread, a caller of kn_thread_pool_post runs the tasks */
    bool stop;
    void (*named)(void *user);
    void *user;
    kn_thread *threads[KN_THREAD_POOL_MAX];
};

static void push_task(line *to, kn_thread_pool_task *task)
{
    task->next = NULL;
    if (to->last != NULL) {
        to->last->next = task;
    } else {
        to->first = task;
    }
    to->last = task;
}

static kn_thread_pool_task *pop_task(line *from)
{
    kn_thread_pool_task *task = from->first;
    if (task != NULL) {
        from->first = task->next;
        from->last = from->first != NULL ? from->last : NULL;
    }
    return task;
}

static kn_thread_pool_task *take_task(kn_thread_pool *pool)
{
    kn_thread_pool_task *task = pop_task(&pool->urgent);
    task = task != NULL ? task : pop_task(&pool->ordinary);
    pool->waiting -= task != NULL;
    return task;
}

static void pool_main(void *user)
{
    kn_thread_pool *pool = (kn_thread_pool *)user;
    if (pool->named != NULL) {
        pool->named(pool->user);
    }
    kn_mutex_lock(&pool->mutex);
    while (!pool->stop) {
        kn_thread_pool_task *task = take_task(pool);
        if (task == NULL) {
            pool->idle++;
            kn_cond_wait(&pool->work, &pool->mutex);
            pool->idle--;
            continue;
        }
        kn_mutex_unlock(&pool->mutex);
        task->run(task->user, false);
        kn_mutex_lock(&pool->mutex);
    }
    kn_mutex_unlock(&pool->mutex);
}

/* Under the mutex, which is let go for each task. */
static void run_here(kn_thread_pool *pool)
{
    kn_thread_pool_task *task = pool->stop ? NULL : take_task(pool);
    while (task != NULL) {
        kn_mutex_unlock(&pool->mutex);
        task->run(task->user, false);
        kn_mutex_lock(&pool->mutex);
        task = pool->stop ? NULL : take_task(pool);
    }
}

kiln_status kn_thread_pool_create(uint32_t jobs, void (*named)(void *user), void *user,
                                  kn_thread_pool **out_pool, kiln_diag *diag)
{
    *out_pool = NULL;
    kn_thread_pool *pool = (kn_thread_pool *)calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return kn_no_memory(diag, "starting threads");
    }
    pool->jobs = jobs < 1 ? 1 : jobs > KN_THREAD_POOL_MAX ? KN_THREAD_POOL_MAX : jobs;
    pool->named = named;
    pool->user = user;
    kn_mutex_init(&pool->mutex);
    kn_cond_init(&pool->work);
    *out_pool = pool;
    return KILN_OK;
}

void kn_thread_pool_destroy(kn_thread_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    kn_mutex_lock(&pool->mutex);
    pool->stop = true;
    kn_cond_broadcast(&pool->work);
    kn_mutex_unlock(&pool->mutex);
    for (uint32_t i = 0; i < pool->started; i++) {
        kn_thread_join(pool->threads[i]);
    }
    /* A task that is called off may post another one, which is called off too. */
    kn_mutex_lock(&pool->mutex);
    for (kn_thread_pool_task *task = take_task(pool); task != NULL; task = take_task(pool)) {
        kn_mutex_unlock(&pool->mutex);
        task->run(task->user, true);
        kn_mutex_lock(&pool->mutex);
    }
    kn_mutex_unlock(&pool->mutex);
    kn_cond_deinit(&pool->work);
    kn_mutex_deinit(&pool->mutex);
    free(pool);
}

void kn_thread_pool_post(kn_thread_pool *pool, kn_thread_pool_task *task, bool urgent)
{
    kn_mutex_lock(&pool->mutex);
    push_task(urgent ? &pool->urgent : &pool->ordinary, task);
    pool->waiting++;
    if (pool->waiting > pool->idle && pool->started < pool->jobs && !pool->stop &&
        kn_thread_start(pool_main, pool, &pool->threads[pool->started], NULL) == KILN_OK) {
        pool->started++;
    }
    kn_cond_signal(&pool->work);
    /* A task that posts another one only queues it: a thousand would be a thousand calls deep. */
    if (pool->started == 0 && !pool->here) {
        pool->here = true;
        run_here(pool);
        pool->here = false;
    }
    kn_mutex_unlock(&pool->mutex);
}

uint32_t kn_thread_pool_jobs(const kn_thread_pool *pool)
{
    return pool->jobs;
}
