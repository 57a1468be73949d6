/* A worker: one thread, in order, for all callers. */
#include <pthread.h>
#include <stdatomic.h>

#include "exec/worker.h"
#include "support/suite.h"
#include "sys/clock.h"
#include "sys/thread.h"

typedef struct shared {
    kn_worker *worker;
    uintptr_t thread;
    int value; /* changed by the worker's thread only, without a lock */
    bool other;
} shared;

static void step(void *user)
{
    shared *s = user;
    s->other = s->other || s->thread != kn_thread_self();
    s->value++;
}

static void remember(void *user)
{
    shared *s = user;
    s->thread = kn_thread_self();
}

static void *call_often(void *user)
{
    shared *s = user;
    for (int i = 0; i < 1000; i++) {
        kn_worker_call(s->worker, step, s);
    }
    return NULL;
}

KT_TEST(calls_run_on_one_thread)
{
    shared s = {0};
    pthread_t threads[4];
    assert_int_equal(kn_worker_create(&s.worker, NULL), KILN_OK);
    kn_worker_call(s.worker, remember, &s);
    assert_true(s.thread != kn_thread_self());
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &s), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    kn_worker_destroy(s.worker);
    assert_int_equal(s.value, 4000);
    assert_false(s.other);
}

static void call_within(void *user)
{
    shared *s = user;
    kn_worker_call(s->worker, step, s); /* on its own thread: at once */
    s->value += 10;
}

KT_TEST(a_call_from_its_own_thread_runs_at_once)
{
    shared s = {0};
    assert_int_equal(kn_worker_create(&s.worker, NULL), KILN_OK);
    kn_worker_call(s.worker, remember, &s);
    kn_worker_call(s.worker, call_within, &s);
    assert_int_equal(s.value, 11);
    assert_false(s.other);
    kn_worker_destroy(s.worker);
}

static void slow_step(void *user)
{
    kn_clock_sleep(20000000);
    ((shared *)user)->value++;
}

KT_TEST(what_was_posted_runs_before_the_end)
{
    shared s = {0};
    kn_worker_task tasks[3];
    assert_int_equal(kn_worker_create(&s.worker, NULL), KILN_OK);
    for (int i = 0; i < 3; i++) {
        tasks[i].run = slow_step;
        tasks[i].user = &s;
        kn_worker_post(s.worker, &tasks[i]);
    }
    assert_false(kn_worker_drain(s.worker, kn_clock_now() + 1000000));
    assert_true(kn_worker_drain(s.worker, kn_clock_now() + 20000000000ull));
    assert_int_equal(s.value, 3);
    for (int i = 0; i < 3; i++) {
        kn_worker_post(s.worker, &tasks[i]);
    }
    kn_worker_destroy(s.worker);
    assert_int_equal(s.value, 6);
    kn_worker_destroy(NULL);
}

KT_MAIN(NULL, NULL)
