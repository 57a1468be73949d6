/* Waiting for another process of the same host: what is asked meanwhile. */
#include "unit/store/support.h"

#include <kiln/unstable/claim.h>

#include "store/cache/cache.h"
#include "support/suite.h"
#include "sys/clock.h"
#include "sys/thread.h"

#define MS UINT64_C(1000000)

/* A tier over the network that has nothing and counts who asks. */
static _Atomic int far_gets;

static kiln_status far_get(void *self, const kiln_key *key, const char *target,
                           kiln_blob **out_blob, kiln_diag *diag)
{
    (void)self;
    (void)key;
    (void)target;
    (void)diag;
    *out_blob = NULL;
    atomic_fetch_add(&far_gets, 1);
    return KILN_MISS;
}

static void far_close(void *self)
{
    (void)self;
}

static const kn_tier_ops far_ops = {
    .name = "far",
    .origin = KILN_ORIGIN_REMOTE,
    .caps = KN_TIER_FAR,
    .get = far_get,
    .close = far_close,
};

/* Another cache object stands for another process: locks are between open files. */
typedef struct holder {
    kiln_cache *cache;
    kiln_recipe *recipe;
    _Atomic bool compiling, go_on;
    kiln_status status;
} holder;

static kiln_status compile_slowly(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    holder *h = user;
    atomic_store(&h->compiling, true);
    while (!atomic_load(&h->go_on)) {
        kn_clock_sleep(MS);
    }
    return kiln_blob_create("x", 1, "facts", 5, out_blob, diag);
}

static void hold(void *user)
{
    holder *h = user;
    kiln_blob *blob = NULL;
    h->status =
        kiln_cache_get_or_compile(h->cache, h->recipe, compile_slowly, h, &blob, NULL, NULL);
    kiln_blob_release(blob);
}

static void let_go_later(void *user)
{
    holder *h = user;
    kn_clock_sleep(700 * MS);
    atomic_store(&h->go_on, true);
}

/* TORTURE D13, REVIEW 7.5: ten questions a second each. */
KT_TEST_IN_DIR(C6_who_waits_on_this_host_asks_no_server)
{
    holder h = {.cache = ks_cache(*state), .recipe = ks_recipe("x")};
    kiln_cache *waiting = ks_cache(*state);
    kn_thread *threads[2];
    ks_compile compile = {0};
    far_gets = 0;
    assert_int_equal(kn_stack_add(&waiting->stack, (kn_tier){&far_ops, NULL}, NULL), KILN_OK);
    assert_int_equal(kn_thread_start(hold, &h, &threads[0], NULL), KILN_OK);
    while (!atomic_load(&h.compiling)) {
        kn_clock_sleep(MS);
    }
    assert_int_equal(kn_thread_start(let_go_later, &h, &threads[1], NULL), KILN_OK);
    assert_int_equal(ks_get(waiting, "x", &compile), KILN_ORIGIN_DISK);
    assert_int_equal(compile.runs, 0);
    assert_int_equal(far_gets, 1); /* before it knew that another is at work */
    kn_thread_join(threads[0]);
    kn_thread_join(threads[1]);
    assert_int_equal(h.status, KILN_OK);
    kiln_recipe_destroy(h.recipe);
    kiln_cache_destroy(h.cache);
    kiln_cache_destroy(waiting);
}

/* Who has asked once does not ask again for what only this host could have made meanwhile. */
KT_TEST_IN_DIR(a_claim_asks_a_server_once)
{
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("x");
    kiln_blob *blob = NULL;
    kiln_claim *claim = NULL;
    far_gets = 0;
    assert_int_equal(kn_stack_add(&cache->stack, (kn_tier){&far_ops, NULL}, NULL), KILN_OK);
    assert_int_equal(kiln_cache_claim(cache, recipe, NULL, &blob, &claim, NULL, NULL), KILN_MISS);
    assert_int_equal(far_gets, 1);
    kiln_claim_abandon(claim);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

/* --- interruptions ---------------------------------------------------------------------------- */

typedef struct asker {
    kiln_cache *cache;
    kiln_recipe *recipe;
    _Atomic int asked;
    int ends_at; /* the question that is answered with yes; 0: none is */
    int compiles;
    kiln_status status;
} asker;

static bool is_interrupted(void *user)
{
    asker *a = user;
    return atomic_fetch_add(&a->asked, 1) + 1 == a->ends_at;
}

static kiln_status compile_for_asker(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    asker *a = user;
    a->compiles++;
    return kiln_blob_create("y", 1, "facts", 5, out_blob, diag);
}

static void get_as_asker(void *user)
{
    asker *a = user;
    kiln_blob *blob = NULL;
    a->status = kiln_cache_get_or_compile_interruptible(a->cache, a->recipe, compile_for_asker,
                                                        is_interrupted, a, &blob, NULL, NULL);
    assert_true((a->status == KILN_OK) == (blob != NULL));
    kiln_blob_release(blob);
}

/* PYTHON_AND_DOCS P10: a signal that came during the lookup. */
KT_TEST_IN_DIR(nothing_is_compiled_after_an_interruption)
{
    asker a = {.cache = ks_cache(*state), .recipe = ks_recipe("x"), .ends_at = 1};
    get_as_asker(&a);
    assert_int_equal(a.status, KILN_E_CANCELLED);
    assert_int_equal(a.compiles, 0);
    get_as_asker(&a);
    assert_int_equal(a.status, KILN_OK);
    assert_int_equal(a.compiles, 1);
    const int asked = atomic_load(&a.asked);
    get_as_asker(&a);
    assert_int_equal(atomic_load(&a.asked), asked); /* a hit asks nobody */
    assert_int_equal(kiln_cache_counter(a.cache, KILN_COUNTER_COMPILE_FAILURES), 0);
    kiln_recipe_destroy(a.recipe);
    kiln_cache_destroy(a.cache);
}

/* PYTHON_AND_DOCS P10. The other process holds the lock; the interrupted thread leads, and the one
 * that waits for it takes its place. */
KT_TEST_IN_DIR(a_wait_for_another_process_is_interrupted)
{
    holder h = {.cache = ks_cache(*state), .recipe = ks_recipe("x")};
    kiln_cache *waiting = ks_cache(*state);
    asker leader = {.cache = waiting, .recipe = ks_recipe("x"), .ends_at = 2};
    asker follower = {.cache = waiting, .recipe = ks_recipe("x")};
    kn_thread *threads[3];
    assert_int_equal(kn_thread_start(hold, &h, &threads[0], NULL), KILN_OK);
    while (!atomic_load(&h.compiling)) {
        kn_clock_sleep(MS);
    }
    assert_int_equal(kn_thread_start(get_as_asker, &leader, &threads[1], NULL), KILN_OK);
    while (atomic_load(&leader.asked) == 0) {
        kn_clock_sleep(MS);
    }
    assert_int_equal(kn_thread_start(get_as_asker, &follower, &threads[2], NULL), KILN_OK);
    kn_thread_join(threads[1]);
    assert_int_equal(leader.status, KILN_E_CANCELLED); /* while the holder holds */
    const int asked = atomic_load(&follower.asked);
    while (atomic_load(&follower.asked) == asked) { /* it goes on waiting */
        kn_clock_sleep(MS);
    }
    atomic_store(&h.go_on, true);
    kn_thread_join(threads[2]);
    kn_thread_join(threads[0]);
    assert_int_equal(follower.status, KILN_OK);
    assert_int_equal(leader.compiles + follower.compiles, 0);
    assert_int_equal(kiln_cache_counter(waiting, KILN_COUNTER_WAIT_TIMEOUTS), 0);
    kiln_recipe_destroy(h.recipe);
    kiln_recipe_destroy(leader.recipe);
    kiln_recipe_destroy(follower.recipe);
    kiln_cache_destroy(h.cache);
    kiln_cache_destroy(waiting);
}

/* The leader is another thread of this process. */
KT_TEST_IN_DIR(a_wait_for_another_thread_is_interrupted)
{
    holder h = {.cache = ks_cache(*state), .recipe = ks_recipe("x")};
    asker a = {.cache = h.cache, .recipe = ks_recipe("x"), .ends_at = 2};
    kn_thread *thread;
    assert_int_equal(kn_thread_start(hold, &h, &thread, NULL), KILN_OK);
    while (!atomic_load(&h.compiling)) {
        kn_clock_sleep(MS);
    }
    get_as_asker(&a);
    assert_int_equal(a.status, KILN_E_CANCELLED);
    assert_int_equal(atomic_load(&a.asked), 2);
    atomic_store(&h.go_on, true);
    kn_thread_join(thread);
    assert_int_equal(h.status, KILN_OK);
    assert_int_equal(a.compiles, 0);
    kiln_recipe_destroy(h.recipe);
    kiln_recipe_destroy(a.recipe);
    kiln_cache_destroy(h.cache);
}

KT_MAIN(NULL, NULL)
