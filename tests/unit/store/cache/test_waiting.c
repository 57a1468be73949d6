/* Waiting for another process of the same host: what is asked meanwhile. */
#include "unit/store/support.h"

#include "store/cache/cache.h"
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
static void C6_who_waits_on_this_host_asks_no_server(void **state)
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

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, kt_tmpdir_setup, kt_tmpdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(C6_who_waits_on_this_host_asks_no_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
