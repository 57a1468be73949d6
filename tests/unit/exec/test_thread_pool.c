/* A thread pool where no thread can be started: its tasks run in the call that posts them. */
#include "exec/thread_pool.h"

#include "support/failalloc.h"
#include "support/suite.h"

enum { AGAIN = 200000 };

typedef struct repeated {
    kn_thread_pool_task task;
    kn_thread_pool *pool;
    uint32_t left, runs, calls, deepest;
} repeated;

/* Posts itself, as the jobs of a warming do. */
static void run(void *user, bool called_off)
{
    repeated *r = user;
    assert_false(called_off);
    r->runs++;
    r->calls++;
    r->deepest = r->calls > r->deepest ? r->calls : r->deepest;
    if (r->left-- > 0) {
        kn_thread_pool_post(r->pool, &r->task, false);
    }
    r->calls--;
}

KT_TEST(without_threads_tasks_run_one_after_the_other)
{
    repeated r = {.left = AGAIN};
    assert_int_equal(kn_thread_pool_create(4, NULL, NULL, &r.pool, NULL), KILN_OK);
    r.task = (kn_thread_pool_task){.run = run, .user = &r};
    kt_failalloc_arm(1, true); /* no thread's memory can be had */
    kn_thread_pool_post(r.pool, &r.task, false);
    kt_failalloc_disarm();
    assert_int_equal(r.runs, AGAIN + 1);
    assert_int_equal(r.deepest, 1);
    kn_thread_pool_destroy(r.pool);
}

KT_MAIN(NULL, NULL)
