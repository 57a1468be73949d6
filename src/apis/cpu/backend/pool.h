/* Threads that run the work-groups of one launch at a time. Started at the first launch that has
 * more than one group, one fewer than there are processors: the thread that asks works, too. */
#ifndef KILN_CPU_BACKEND_POOL_H
#define KILN_CPU_BACKEND_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/thread.h"

enum { CPU_THREAD_LIMIT = 1024 };

/* Runs the pieces [first, last) of a job as worker number `worker`. */
typedef void cpu_piece_fn(void *user, size_t first, size_t last, uint32_t worker);

typedef struct cpu_pool_job {
    cpu_piece_fn *run;
    void *user;
    size_t total;
    size_t step;         /* pieces taken at once */
    atomic_size_t taken; /* pieces given out */
} cpu_pool_job;

typedef struct cpu_pool_worker {
    struct cpu_pool *pool;
    uint32_t number; /* 0 is the caller's */
    kn_thread *thread;
} cpu_pool_worker;

typedef struct cpu_pool {
    kn_mutex turn; /* one job at a time */
    kn_mutex mutex;
    kn_cond work; /* a job has come, or the end */
    kn_cond idle; /* the last worker has left a job */
    cpu_pool_job *job;
    uint64_t generation; /* counts jobs */
    uint32_t busy;       /* workers inside the job */
    uint32_t wanted;     /* threads to start, the caller not counted */
    uint32_t started;
    bool tried;
    bool ending;
    cpu_pool_worker *workers;
} cpu_pool;

void kn_cpu_pool_init(cpu_pool *pool, uint32_t processors);
void kn_cpu_pool_deinit(cpu_pool *pool);
/* Workers that a job may see: numbers from 0 to this less one. */
uint32_t kn_cpu_pool_workers(const cpu_pool *pool);
/* Runs all pieces and returns when they are done. Cannot fail: if no thread can be started the
 * caller does it alone. */
void kn_cpu_pool_run(cpu_pool *pool, cpu_piece_fn *run, void *user, size_t total);

#endif
