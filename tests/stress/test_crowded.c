/* A store too small for what many processes and threads want of it; everybody at once; locks that
 * lie. KILN_STRESS_SECONDS makes the first one longer (60 is the length it is judged by). */
#include "stress/crowd.h"

#include <pthread.h>

#include "support/counters.h"
#include "support/faultfs.h"
#include "support/suite.h"

enum { PROCESSES = 16, THREADS = 4, KEYS = 1000, LARGEST = 8192 };

/* --- the cap at a third of the data ----------------------------------------------------------- */

typedef struct shopper {
    crowd *c;
    kiln_cache *cache;
    unsigned seed;
} shopper;

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *shop(void *user)
{
    shopper *s = user;
    while (atomic_load(&s->c->stop) == 0) {
        if (atomic_load(&s->c->hold) != 0) {
            atomic_fetch_add(&s->c->held, 1);
            while (atomic_load(&s->c->hold) != 0) {
                crowd_pause(1);
            }
            atomic_fetch_sub(&s->c->held, 1);
        }
        int64_t start = now_ms();
        (void)crowd_get(s->c, s->cache, rand_r(&s->seed) % KEYS);
        int took = (int)(now_ms() - start), longest = atomic_load(&s->c->longest_ms);
        while (took > longest && !atomic_compare_exchange_weak(&s->c->longest_ms, &longest, took)) {
        }
        atomic_fetch_add(&s->c->done, 1);
    }
    return NULL;
}

static void shop_in_threads(crowd *c, int who)
{
    pthread_t threads[THREADS];
    shopper shoppers[THREADS];
    kiln_cache *cache = crowd_cache(c, 0);
    for (int i = 0; i < THREADS; i++) {
        shoppers[i] = (shopper){c, cache, (unsigned)(who * THREADS + i + 1)};
        if (pthread_create(&threads[i], NULL, shop, &shoppers[i]) != 0) {
            _exit(1);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    kiln_cache_destroy(cache);
}

/* With everybody standing still. */
static uint64_t weigh_all(crowd *c, kiln_cache *cache)
{
    uint64_t weight = 0;
    atomic_store(&c->hold, 1);
    while (atomic_load(&c->held) < PROCESSES * THREADS) {
        crowd_pause(1);
    }
    assert_int_equal(kiln_cache_walk(cache, NULL, crowd_weigh, &weight, NULL), KILN_OK);
    atomic_store(&c->hold, 0);
    while (atomic_load(&c->held) > 0) {
        crowd_pause(1);
    }
    return weight;
}

KT_TEST_IN_DIR(S1_C6_C7_a_third_of_the_room_is_shared_by_64_threads)
{
    const int seconds = crowd_setting("KILN_STRESS_SECONDS", 10);
    char bytes[LARGEST];
    pid_t pids[PROCESSES];
    uint64_t all = 0, heaviest = 0;
    crowd *c = crowd_create(*state);
    for (int n = 0; n < KEYS; n++) {
        all += (crowd_bytes(n, bytes, sizeof bytes) + 400 + 4095) / 4096 * 4096;
    }
    c->max_bytes = all / 3;
    c->memory_bytes = 50 * 1024; /* little, so that disk is asked */
    c->compile_ms = 20;
    kiln_cache *cache = crowd_cache(c, 0); /* no threads yet: it may fork */
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = crowd_start(c, shop_in_threads, i);
    }
    crowd_go(c, PROCESSES);
    int64_t end = now_ms() + (int64_t)seconds * 1000;
    int looks = 0;
    while (now_ms() < end) {
        crowd_pause(700);
        uint64_t weight = weigh_all(c, cache);
        heaviest = weight > heaviest ? weight : heaviest;
        looks++;
    }
    atomic_store(&c->stop, 1);
    crowd_join(pids, PROCESSES);
    assert_int_equal(c->wrong + c->failed, 0);
    assert_true(looks > 0 && c->compiles > KEYS);
    assert_int_equal(c->together, 0); /* nobody compiles what another one is compiling */
    assert_true(heaviest <= c->max_bytes + (uint64_t)PROCESSES * THREADS * LARGEST);
    kt_counters total = crowd_total(c);
    assert_true(total.evicted > 0);
    assert_int_equal(total.wait_timeouts, 0); /* nobody waited longer than one compile may take */
    assert_int_equal(total.corrupt + total.put_failures, 0);
    print_message(
        "%d s: %d requests, %d compiles of 20 ms, longest request %d ms, at most %llu KiB "
        "of %llu\n",
        seconds, c->done, c->compiles, c->longest_ms, (unsigned long long)heaviest / 1024,
        (unsigned long long)c->max_bytes / 1024);
    kiln_cache_destroy(cache);
    crowd_destroy(c);
}

/* --- everybody at once ------------------------------------------------------------------------ */

static void get_one_of_ten(crowd *c, int who)
{
    kiln_cache *cache = crowd_cache(c, 0);
    (void)crowd_get(c, cache, who % 10);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(C1_200_processes_open_at_once)
{
    crowd *c = crowd_create(*state);
    c->compile_ms = 5;
    crowd_run(c, get_one_of_ten, 200);
    assert_int_equal(c->wrong + c->failed, 0);
    assert_int_equal(c->compiles, 10);
    kt_counters total = crowd_total(c);
    assert_int_equal(total.put_failures + total.corrupt + total.io_errors, 0);
    /* The statistics are an index of nothing: damage them, and all goes on. */
    char *stats = kt_at(*state, "stats");
    kt_file_write(stats, "garbage", 7);
    atomic_store(&c->ready, 0);
    atomic_store(&c->go, 0);
    crowd_run(c, get_one_of_ten, 50);
    assert_int_equal(c->wrong + c->failed, 0);
    assert_int_equal(c->compiles, 10);
    crowd_destroy(c);
}

/* --- locks that lie --------------------------------------------------------------------------- */

static void get_some(crowd *c, int who)
{
    unsigned seed = (unsigned)who + 1;
    (void)alarm(60); /* a hang is a failure */
    for (int round = 0; round < 3; round++) {
        kiln_cache *cache = crowd_cache(c, 0);
        for (int i = 0; i < 20; i++) {
            (void)crowd_get(c, cache, rand_r(&seed) % 30);
        }
        kiln_cache_destroy(cache);
    }
}

static void expect_right_without(const char *root, const char *rule)
{
    enum { FEW = 4, ASKED = FEW * 3 * 20 };
    if (!kt_faultfs_available()) {
        skip();
    }
    crowd *c = crowd_create(root);
    c->compile_ms = 2;
    c->wait_ms = 60;
    c->max_bytes = 20 * 4096; /* evictors too */
    kt_faultfs_set(root, rule);
    crowd_run(c, get_some, FEW);
    assert_true(kt_faultfs_hits() == 0); /* the children have counters of their own */
    kt_faultfs_set(NULL, NULL);
    assert_int_equal(c->wrong + c->failed, 0);
    assert_true(c->compiles >= 30 / 2 && c->compiles <= ASKED);
    (void)crowd_total(c);
    crowd_destroy(c);
}

KT_TEST_IN_DIR(C3_locks_that_always_succeed_do_no_harm)
{
    expect_right_without(*state, "lock:*:skip");
}

KT_TEST_IN_DIR(C3_locks_that_do_not_exist_do_no_harm)
{
    expect_right_without(*state, "lock:*:ENOLCK");
}

KT_TEST_IN_DIR(C3_C4_locks_that_never_come_delay_nobody_for_long)
{
    expect_right_without(*state, "lock:*:EAGAIN");
}

KT_MAIN(NULL, NULL)
