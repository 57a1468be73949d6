/* Threads that take the next piece of work from a counter until there is none. */
#include "cli/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "cli/host.h"

enum { JOBS_MAX = 256 };

typedef struct parallel_run {
    atomic_size_t next;
    size_t count;
    parallel_fn *work;
    void *user;
} parallel_run;

size_t parallel_jobs(uint64_t asked)
{
    const uint64_t memory = host_memory();
    size_t jobs = host_processors();
    if (memory > 0) {
        const size_t room = (size_t)(memory >> 30);
        jobs = room < jobs ? room : jobs;
    }
    jobs = asked != 0 ? (size_t)asked : jobs;
    return jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
}

kiln_status parallel_choose(const opt_number *asked, size_t *out_jobs, kiln_diag *diag)
{
    const char *text = getenv("KILN_COMPILE_JOBS");
    uint64_t value = asked->given ? asked->value : 0;
    *out_jobs = 1;
    if (!asked->given && text != NULL && *text != '\0' &&
        (!opt_parse_count(text, &value) || value == 0)) {
        return kiln_diag_set(diag, KILN_E_INVALID,
                             "set it to a whole number of at least 1, or unset it",
                             "environment variable KILN_COMPILE_JOBS",
                             "\"%.60s\" is not a number of compiles", text);
    }
    *out_jobs = parallel_jobs(value);
    return KILN_OK;
}

static void run_worker(void *opaque)
{
    parallel_run *all = opaque;
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&all->next, 1, memory_order_relaxed);
        if (index >= all->count) {
            return;
        }
        all->work(all->user, index);
    }
}

void parallel_each(size_t count, size_t jobs, parallel_fn *work, void *user)
{
    parallel_run all = {.count = count, .work = work, .user = user};
    host_thread *threads[JOBS_MAX];
    size_t started = 0;
    atomic_init(&all.next, 0);
    jobs = jobs > count ? count : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    while (started + 1 < jobs &&
           (threads[started] = host_thread_create(run_worker, &all)) != NULL) {
        started++;
    }
    run_worker(&all);
    for (size_t i = 0; i < started; i++) {
        host_thread_join(threads[i]);
    }
}
