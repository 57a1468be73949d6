/* Threads, children and processes that record at once, and are killed meanwhile. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln/unstable/counters.h>

#include "record/recording.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "unit/record/recorder_world.h"

enum { PROGRAMS = 200, THREADS = 4, WRITERS = 3 };

/* The same programs for all, half of them with equal texts. */
static bool record_numbered(kiln_cache *cache, unsigned number)
{
    char key[16], text[32], header[32];
    (void)snprintf(key, sizeof key, "%u", number);
    (void)snprintf(text, sizeof text, "text %u", number / 2);
    (void)snprintf(header, sizeof header, "header %u", number / 10);
    return rw_record(cache, key, text, header);
}

typedef struct thread_job {
    kiln_cache *cache;
    unsigned first;
    size_t recorded;
} thread_job;

static void *record_all(void *user)
{
    thread_job *job = user;
    for (unsigned i = 0; i < PROGRAMS; i++) {
        job->recorded += record_numbered(job->cache, (job->first + i) % PROGRAMS);
    }
    return NULL;
}

static void threads_record_each_program_once(void **state)
{
    recorder_world *w = *state;
    pthread_t threads[THREADS];
    thread_job jobs[THREADS];
    size_t recorded = 0;
    rw_open(w, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (thread_job){.cache = w->cache, .first = i % 2 == 0 ? 0 : PROGRAMS / 2};
        assert_int_equal(pthread_create(&threads[i], NULL, record_all, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        recorded += jobs[i].recorded;
    }
    assert_int_equal(recorded, PROGRAMS);
    assert_int_equal(rw_counter(w, KILN_COUNTER_RECORDED), PROGRAMS);
    assert_int_equal(rw_count_uses(w->recording), PROGRAMS);
    assert_int_equal(rw_count(w, "objects"), PROGRAMS / 2 + PROGRAMS / 10);
}

static void a_child_goes_on_recording(void **state)
{
    recorder_world *w = *state;
    int status = 0;
    rw_open(w, 0);
    assert_true(record_numbered(w->cache, 0));
    const pid_t child = fork();
    if (child == 0) {
        const bool good = !record_numbered(w->cache, 0) && record_numbered(w->cache, 1);
        _exit(good && rw_counter(w, KILN_COUNTER_RECORDED) == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(record_numbered(w->cache, 1));
    assert_true(record_numbered(w->cache, 2));
    assert_int_equal(rw_count_uses(w->recording), 3);
}

/* Until it is killed, each round in another order; says through the pipe when it has begun. */
static void write_for_ever(recorder_world *w, unsigned seed, int begun)
{
    rw_open(w, 0);
    for (unsigned i = 0;; i++) {
        (void)record_numbered(w->cache, (i * 7 + seed * 31) % PROGRAMS);
        if (i == PROGRAMS / 4) {
            (void)!write(begun, "x", 1);
        }
    }
}

static void killed_processes_leave_a_whole_recording(void **state)
{
    recorder_world *w = *state;
    pid_t writers[WRITERS];
    int ends[2];
    char byte = 0;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(pipe(ends), 0);
        for (unsigned i = 0; i < WRITERS; i++) {
            writers[i] = fork();
            if (writers[i] == 0) {
                write_for_ever(w, i + (unsigned)round, ends[1]);
            }
        }
        assert_int_equal(read(ends[0], &byte, 1), 1);
        for (unsigned i = 0; i < WRITERS; i++) {
            assert_int_equal(kill(writers[i], SIGKILL), 0);
            assert_int_equal(waitpid(writers[i], NULL, 0), writers[i]);
        }
        (void)close(ends[0]);
        (void)close(ends[1]);
        /* Whatever is in it is whole, at every moment. */
        assert_true(rw_count_uses(w->recording) > 0);
    }
    rw_open(w, 0);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        (void)record_numbered(w->cache, i);
    }
    assert_int_equal(rw_counter(w, KILN_COUNTER_UNRECORDED), 0);
    assert_int_equal(rw_count_uses(w->recording), PROGRAMS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)
    const struct CMUnitTest tests[] = {
        TEST(threads_record_each_program_once),
        TEST(a_child_goes_on_recording),
        TEST(killed_processes_leave_a_whole_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
