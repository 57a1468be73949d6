/* Threads that are started one by one as tasks find none idle, and stay until the end. */
#include "exec/crew.h"

#include <stdlib.h>

#include "base/diag.h"
#include "sys/thread.h"

typedef struct line {
    kn_crew_task *first, *last;
} line;

struct kn_crew {
    kn_mutex mutex;
    kn_cond work; /* something was posted, or stop */
    line urgent, ordinary;
    uint32_t jobs, started, idle;
    uint32_t waiting; /* tasks in both lines */
    bool here;        /* without any thread, a caller of kn_crew_post runs the tasks */
    bool stop;
    void (*named)(void *user);
    void *user;
    kn_thread *threads[KN_CREW_MAX];
};

static void push_task(line *to, kn_crew_task *task)
{
    task->next = NULL;
    if (to->last != NULL) {
        to->last->next = task;
    } else {
        to->first = task;
    }
    to->last = task;
}

static kn_crew_task *pop_task(line *from)
{
    kn_crew_task *task = from->first;
    if (task != NULL) {
        from->first = task->next;
        from->last = from->first != NULL ? from->last : NULL;
    }
    return task;
}

static kn_crew_task *take_task(kn_crew *crew)
{
    kn_crew_task *task = pop_task(&crew->urgent);
    task = task != NULL ? task : pop_task(&crew->ordinary);
    crew->waiting -= task != NULL;
    return task;
}

static void crew_main(void *user)
{
    kn_crew *crew = (kn_crew *)user;
    if (crew->named != NULL) {
        crew->named(crew->user);
    }
    kn_mutex_lock(&crew->mutex);
    while (!crew->stop) {
        kn_crew_task *task = take_task(crew);
        if (task == NULL) {
            crew->idle++;
            kn_cond_wait(&crew->work, &crew->mutex);
            crew->idle--;
            continue;
        }
        kn_mutex_unlock(&crew->mutex);
        task->run(task->user, false);
        kn_mutex_lock(&crew->mutex);
    }
    kn_mutex_unlock(&crew->mutex);
}

/* Under the mutex, which is let go for each task. */
static void run_here(kn_crew *crew)
{
    kn_crew_task *task = crew->stop ? NULL : take_task(crew);
    while (task != NULL) {
        kn_mutex_unlock(&crew->mutex);
        task->run(task->user, false);
        kn_mutex_lock(&crew->mutex);
        task = crew->stop ? NULL : take_task(crew);
    }
}

kiln_status kn_crew_create(uint32_t jobs, void (*named)(void *user), void *user, kn_crew **out_crew,
                           kiln_diag *diag)
{
    *out_crew = NULL;
    kn_crew *crew = (kn_crew *)calloc(1, sizeof(*crew));
    if (crew == NULL) {
        return kn_no_memory(diag, "starting threads");
    }
    crew->jobs = jobs < 1 ? 1 : jobs > KN_CREW_MAX ? KN_CREW_MAX : jobs;
    crew->named = named;
    crew->user = user;
    kn_mutex_init(&crew->mutex);
    kn_cond_init(&crew->work);
    *out_crew = crew;
    return KILN_OK;
}

void kn_crew_destroy(kn_crew *crew)
{
    if (crew == NULL) {
        return;
    }
    kn_mutex_lock(&crew->mutex);
    crew->stop = true;
    kn_cond_broadcast(&crew->work);
    kn_mutex_unlock(&crew->mutex);
    for (uint32_t i = 0; i < crew->started; i++) {
        kn_thread_join(crew->threads[i]);
    }
    /* A task that is called off may post another one, which is called off too. */
    kn_mutex_lock(&crew->mutex);
    for (kn_crew_task *task = take_task(crew); task != NULL; task = take_task(crew)) {
        kn_mutex_unlock(&crew->mutex);
        task->run(task->user, true);
        kn_mutex_lock(&crew->mutex);
    }
    kn_mutex_unlock(&crew->mutex);
    kn_cond_deinit(&crew->work);
    kn_mutex_deinit(&crew->mutex);
    free(crew);
}

void kn_crew_post(kn_crew *crew, kn_crew_task *task, bool urgent)
{
    kn_mutex_lock(&crew->mutex);
    push_task(urgent ? &crew->urgent : &crew->ordinary, task);
    crew->waiting++;
    if (crew->waiting > crew->idle && crew->started < crew->jobs && !crew->stop &&
        kn_thread_start(crew_main, crew, &crew->threads[crew->started], NULL) == KILN_OK) {
        crew->started++;
    }
    kn_cond_signal(&crew->work);
    /* A task that posts another one only queues it: a thousand would be a thousand calls deep. */
    if (crew->started == 0 && !crew->here) {
        crew->here = true;
        run_here(crew);
        crew->here = false;
    }
    kn_mutex_unlock(&crew->mutex);
}

uint32_t kn_crew_jobs(const kn_crew *crew)
{
    return crew->jobs;
}
