/* Many processes on one root: one compile, no wrong byte, no wedge. */
#include "stress/crowd.h"
#include "support/counters.h"
#include "support/skip.h"
#include "support/suite.h"

#include <pthread.h>
#include <sys/resource.h>

static void get_one(crowd *c, int who)
{
    (void)who;
    kiln_cache *cache = crowd_cache(c, 0);
    (void)crowd_get(c, cache, 1);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(C6_eight_processes_compile_once)
{
    crowd *c = crowd_create(*state);
    c->compile_ms = 150;
    crowd_run(c, get_one, 8);
    assert_int_equal(c->compiles, 1);
    assert_int_equal(c->wrong + c->failed, 0);
    kt_counters total = crowd_total(c);
    assert_int_equal(total.compiles, 1);
    assert_int_equal(total.misses, 1);
    assert_int_equal(total.hits_disk, 7);
    assert_int_equal(total.wait_timeouts, 0);
    crowd_destroy(c);
}

KT_TEST_IN_DIR(C5_waiting_processes_sleep)
{
    struct rusage before, after;
    crowd *c = crowd_create(*state);
    c->compile_ms = 600;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &before), 0);
    crowd_run(c, get_one, 6);
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &after), 0);
    assert_int_equal(c->compiles, 1);
    /* 600 ms of waiting in steps of up to 50 ms is about 20 looks each. */
    assert_true(after.ru_nvcsw - before.ru_nvcsw < 6 * 200);
    crowd_destroy(c);
}

KT_TEST_IN_DIR(D3_failures_are_not_shared_between_processes_nor_stored)
{
    crowd *c = crowd_create(*state);
    c->fail = true;
    c->compile_ms = 20;
    crowd_run(c, get_one, 4);
    assert_int_equal(c->failed, 4);
    assert_int_equal(c->compiles, 4);
    kt_counters total = crowd_total(c);
    assert_int_equal(total.compile_failures, 4);
    assert_int_equal(total.puts, 0);
    crowd_destroy(c);
}

/* --- the holder dies or dawdles --------------------------------------------------------------- */

static void wait_for(_Atomic int *what, int value)
{
    while (atomic_load(what) < value) {
        crowd_pause(1);
    }
}

KT_TEST_IN_DIR(C4_a_killed_holder_frees_the_others)
{
    crowd *c = crowd_create(*state);
    pid_t others[3];
    int status;
    c->compile_ms = 60000;
    pid_t holder = crowd_start(c, get_one, 0);
    crowd_go(c, 1);
    wait_for(&c->compiles, 1);
    c->compile_ms = 50; /* the holder is in its pause already */
    for (int i = 0; i < 3; i++) {
        others[i] = crowd_start(c, get_one, i);
    }
    crowd_pause(200);
    assert_int_equal(c->compiles, 1); /* they wait */
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    crowd_join(others, 3);
    assert_int_equal(c->compiles, 2); /* one took over */
    assert_int_equal(c->wrong + c->failed, 0);
    assert_int_equal(crowd_total(c).wait_timeouts, 0);
    crowd_destroy(c);
}

KT_TEST_IN_DIR(C4_waiting_is_bounded)
{
    crowd *c = crowd_create(*state);
    int status;
    c->compile_ms = 60000;
    c->wait_ms = 150;
    pid_t holder = crowd_start(c, get_one, 0);
    crowd_go(c, 1);
    wait_for(&c->compiles, 1);
    c->compile_ms = 0;
    pid_t other = crowd_start(c, get_one, 1);
    crowd_join(&other, 1);
    assert_int_equal(c->compiles, 2);
    assert_int_equal(c->compiled, 1);
    assert_int_equal(crowd_total(c).wait_timeouts, 1);
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    crowd_destroy(c);
}

/* --- everybody writes ------------------------------------------------------------------------- */

enum { KEYS = 40 };

static void work_hard(crowd *c, int who)
{
    unsigned seed = (unsigned)who + 1;
    kiln_cache *cache = crowd_cache(c, who % 4 == 3 ? KILN_CACHE_RECACHE : 0);
    for (int round = 0; round < 150; round++) {
        if (round % 30 == 29) { /* forget what memory has */
            kiln_cache_destroy(cache);
            cache = crowd_cache(c, who % 4 == 3 ? KILN_CACHE_RECACHE : 0);
        }
        (void)crowd_get(c, cache, rand_r(&seed) % KEYS);
        atomic_fetch_add(&c->done, 1);
    }
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(C1_C2_writers_that_race_leave_whole_entries)
{
    crowd *c = crowd_create(*state);
    crowd_run(c, work_hard, 8);
    assert_int_equal(c->wrong + c->failed, 0);
    kt_counters total = crowd_total(c);
    assert_int_equal(total.compiles, c->compiles);
    assert_int_equal(total.put_failures + total.corrupt + total.io_errors, 0);
    assert_int_equal(total.puts, c->compiles);
    assert_int_equal(total.misses, c->compiles);
    /* Nothing is lost in the sum: every request was a hit of some kind or a miss. */
    assert_int_equal(total.misses + total.hits_memory + total.hits_disk + total.hits_shared,
                     c->done);
    crowd_destroy(c);
}

KT_TEST_IN_DIR(C7_S1_eviction_at_full_speed_disturbs_nobody)
{
    crowd *c = crowd_create(*state);
    c->max_bytes = 16 * 4096; /* a third of the data */
    crowd_run(c, work_hard, 8);
    assert_int_equal(c->wrong + c->failed, 0);
    kt_counters total = crowd_total(c);
    assert_true(total.evicted > 0);
    assert_int_equal(total.corrupt, 0);
    crowd_destroy(c);
}

static void remove_root(crowd *c, int who)
{
    char command[1200];
    (void)who;
    (void)snprintf(command, sizeof command, "rm -rf '%s'/* 2>/dev/null", c->root);
    while (atomic_load(&c->done) < 7 * 150) {
        if (system(command) < 0) {
            _exit(1);
        }
        crowd_pause(3);
    }
}

static void one_removes(crowd *c, int who)
{
    (who == 7 ? remove_root : work_hard)(c, who);
}

KT_TEST_IN_DIR(a_root_that_is_removed_over_and_over_fails_nobody)
{
    crowd *c = crowd_create(*state);
    crowd_run(c, one_removes, 8);
    assert_int_equal(c->wrong + c->failed, 0);
    crowd_destroy(c);
}

/* --- kill -9 ---------------------------------------------------------------------------------- */

static void work_for_ever(crowd *c, int who)
{
    unsigned seed = (unsigned)who + (unsigned)getpid();
    while (atomic_load(&c->stop) == 0) {
        kiln_cache *cache = crowd_cache(c, rand_r(&seed) % 2 != 0 ? KILN_CACHE_RECACHE : 0);
        for (int i = 0; i < 5; i++) {
            (void)crowd_get(c, cache, rand_r(&seed) % KEYS);
        }
        kiln_cache_destroy(cache);
    }
}

/* What killed writers leave goes at once, however young; nothing else lies about, and the cap
 * holds. */
static void expect_tidy(const crowd *c)
{
    static const char *const known[] = {"v1",  "tmp",  "stats",       "losses",
                                        "kin", "lock", "CACHEDIR.TAG"};
    const kiln_prune_options nothing = {.struct_size = sizeof(nothing), .max_bytes = UINT64_MAX};
    kiln_prune_result result = {.struct_size = sizeof(result)};
    uint64_t weight = 0;
    kiln_cache *cache = crowd_cache(c, 0);
    assert_int_equal(kiln_cache_prune(cache, &nothing, &result, NULL), KILN_OK);
    assert_int_equal(kiln_cache_walk(cache, NULL, crowd_weigh, &weight, NULL), KILN_OK);
    /* One entry of two blocks for each writer, of which there were five at a time. */
    assert_true(weight <= c->max_bytes + UINT64_C(5) * 8192);
    char *tmp = kt_at(c->root, "tmp");
    assert_int_equal(kt_file_count(tmp), 0);
    size_t files = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *path = kt_at(c->root, known[i]);
        files += kt_file_count(path) + (i >= 2 && kt_file_exists(path) ? 1 : 0);
    }
    assert_int_equal(kt_file_count(c->root), files);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(D1_killing_at_random_points_leaves_no_wrong_byte)
{
    enum { PROCESSES = 4 };
    const int kills = crowd_setting("KILN_STRESS_KILLS", 300);
    crowd *c = crowd_create(*state);
    pid_t pids[PROCESSES];
    unsigned seed = 7;
    int status;
    c->max_bytes = 30 * 4096;
    atomic_store(&c->go, 1);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = crowd_start(c, work_for_ever, i);
    }
    for (int i = 0; i < kills; i++) {
        int victim = rand_r(&seed) % PROCESSES;
        crowd_pause(1 + rand_r(&seed) % 12);
        assert_int_equal(kill(pids[victim], SIGKILL), 0);
        assert_int_equal(waitpid(pids[victim], &status, 0), pids[victim]);
        pids[victim] = crowd_start(c, work_for_ever, victim);
    }
    atomic_store(&c->stop, 1);
    crowd_join(pids, PROCESSES);
    assert_int_equal(c->wrong + c->failed, 0);
    (void)crowd_total(c); /* every entry is whole, nothing is locked */
    expect_tidy(c);
    crowd_destroy(c);
}

/* --- fork ------------------------------------------------------------------------------------- */

typedef struct background {
    crowd *c;
    kiln_cache *cache;
    int who;
} background;

static void *hammer(void *user)
{
    background *b = user;
    unsigned seed = (unsigned)b->who;
    while (atomic_load(&b->c->stop) == 0) {
        (void)crowd_get(b->c, b->cache, rand_r(&seed) % (2 * KEYS));
    }
    return NULL;
}

/* A sanitizer's allocator does not survive a fork while other threads use it: the child waits for
 * one of its locks for ever. The C library's does. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { BUSY_THREADS = 0 };
#else
enum { BUSY_THREADS = 3 };
#endif

KT_TEST_IN_DIR(C8_the_cache_works_in_a_forked_child)
{
    enum { FORKS = 40 };
    if (kn_test_is_emulated()) {
        print_message("SKIP: QEMU forks while its other threads hold its own locks\n");
        skip();
    }
    crowd *c = crowd_create(*state);
    c->max_bytes = 30 * 4096; /* so that entries come and go */
    c->compile_ms = 1;
    kiln_cache *cache = crowd_cache(c, 0);
    pthread_t threads[BUSY_THREADS + 1];
    background backgrounds[BUSY_THREADS + 1];
    for (int i = 0; i < BUSY_THREADS; i++) {
        backgrounds[i] = (background){.c = c, .cache = cache, .who = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &backgrounds[i]), 0);
    }
    for (int i = 0; i < FORKS; i++) {
        crowd_pause(2);
        pid_t pid = fork();
        if (pid == 0) {
            (void)alarm(20); /* a hang is a failure */
            for (int n = 0; n < 10; n++) {
                (void)crowd_get(c, cache, 1000 + i * 10 + n);
                (void)crowd_get(c, cache, n);
            }
            kt_counters own;
            kt_counters_own(cache, &own);
            uint64_t sum = own.misses + own.hits_memory + own.hits_disk + own.hits_shared;
            kiln_cache_destroy(cache);
            _exit(sum == 20 ? 0 : 3); /* its own requests, not its parent's */
        }
        assert_true(pid > 0);
        crowd_join(&pid, 1);
    }
    atomic_store(&c->stop, 1);
    for (int i = 0; i < BUSY_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(c->wrong + c->failed, 0);
    kiln_cache_destroy(cache);
    crowd_destroy(c);
}

static void *get_once(void *user)
{
    const background *b = user;
    (void)crowd_get(b->c, b->cache, b->who);
    return NULL;
}

KT_TEST_IN_DIR(two_threads_and_two_caches_of_one_process_compile_once)
{
    crowd *c = crowd_create(*state);
    c->compile_ms = 100;
    kiln_cache *caches[2] = {crowd_cache(c, 0), crowd_cache(c, 0)};
    pthread_t threads[4];
    background backgrounds[4];
    for (int i = 0; i < 4; i++) {
        backgrounds[i] = (background){.c = c, .cache = caches[i % 2], .who = 1};
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, get_once, &backgrounds[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(c->compiles, 1);
    assert_int_equal(c->wrong + c->failed, 0);
    kiln_cache_destroy(caches[0]);
    kiln_cache_destroy(caches[1]);
    crowd_destroy(c);
}

KT_MAIN(NULL, NULL)
