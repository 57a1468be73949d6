/* Claims between processes. The tests compare what peers answer, and whether they waited, never how
 * long. */
#include "unit/store/peers.h"

#include "support/failalloc.h"
#include "support/skip.h"
#include "support/suite.h"

KT_TEST_IN_DIR(a_claim_gives_the_work_and_then_the_blob)
{
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("A");
    kiln_blob *blob = NULL, *made = ks_blob("A");
    kiln_claim *claim = NULL;
    kiln_origin origin = KILN_ORIGIN_DISK;
    assert_int_equal(kiln_cache_claim(cache, recipe, NULL, &blob, &claim, &origin, NULL),
                     KILN_MISS);
    assert_true(blob == NULL && claim != NULL && origin == KILN_ORIGIN_NONE);
    kiln_recipe_destroy(recipe); /* the claim has its own */
    assert_int_equal(kiln_claim_fulfil(claim, made, NULL), KILN_OK);
    assert_true(kiln_blob_compile_ns(made) > 0);
    recipe = ks_recipe("A");
    assert_int_equal(kiln_cache_claim(cache, recipe, NULL, &blob, &claim, &origin, NULL), KILN_OK);
    assert_true(blob == made && claim == NULL && origin == KILN_ORIGIN_MEMORY);
    const kt_counters stats = ks_own(cache);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(stats.puts, 1);
    assert_int_equal(stats.hits_memory, 1);
    kiln_blob_release(blob);
    kiln_blob_release(made);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(what_is_not_given_is_refused)
{
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("A");
    kiln_blob *blob = NULL, *empty = ks_blob("");
    kiln_claim *claim = NULL;
    const kiln_claim_options wrong = {.struct_size = 3};
    assert_int_equal(kiln_cache_claim(cache, recipe, &wrong, &blob, &claim, NULL, NULL),
                     KILN_E_INVALID);
    assert_int_equal(kiln_cache_claim(cache, recipe, NULL, &blob, &claim, NULL, NULL), KILN_MISS);
    assert_int_equal(kiln_claim_fulfil(claim, empty, NULL), KILN_E_INVALID);
    assert_int_equal(kiln_claim_fulfil(NULL, NULL, NULL), KILN_OK);
    kiln_claim_abandon(NULL);
    const kt_counters stats = ks_own(cache);
    assert_int_equal(stats.compiles, 0);
    assert_int_equal(stats.puts, 0);
    kiln_blob_release(empty);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

/* PYTHON_AND_DOCS P8. */
KT_TEST_IN_DIR(P8_another_process_waits_for_the_blob)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(order(&holder, "fA"), DONE);
    assert_int_equal(hear(&other), FOUND);
    end_peer(&holder);
    end_peer(&other);
}

/* And who compiles in a callback: the protocol is one. */
KT_TEST_IN_DIR(a_compile_waits_for_a_claim)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    tell(&other, "gA");
    assert_int_equal(order(&holder, "fA"), DONE);
    assert_int_equal(hear(&other), FOUND);
    end_peer(&holder);
    end_peer(&other);
}

typedef void end_holder(peer *holder);

static void abandon_it(peer *holder)
{
    assert_int_equal(order(holder, "aA"), DONE);
    end_peer(holder);
}

/* All who waited compile at once, and hold nobody up. */
static void wait_in_vain(const char *root, end_holder *end)
{
    peer holder = start(root), others[3] = {start(root), start(root), start(root)};
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(order(&others[i], "cA"), WAITS);
    }
    end(&holder);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hear(&others[i]), CLAIMED);
    }
    for (size_t i = 0; i < 3; i++) { /* only now do they finish */
        assert_int_equal(order(&others[i], "fA"), DONE);
        end_peer(&others[i]);
    }
}

KT_TEST_IN_DIR(an_abandoned_claim_is_free)
{
    wait_in_vain(*state, abandon_it);
}

static void give_nothing(peer *holder)
{
    assert_int_equal(order(holder, "zA"), DONE);
    end_peer(holder);
}

KT_TEST_IN_DIR(a_claim_that_is_given_nothing_is_free)
{
    wait_in_vain(*state, give_nothing);
}

KT_TEST_IN_DIR(a_killed_holder_holds_nothing)
{
    wait_in_vain(*state, kill_peer);
}

KT_TEST_IN_DIR(a_stopped_holder_is_passed_over)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(kill(holder.pid, SIGSTOP), 0);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(hear(&other), CLAIMED);
    kill_peer(&holder);
    end_peer(&other);
}

KT_TEST_IN_DIR(a_wait_is_bounded)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&other, "l "), DONE);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(hear(&other), CLAIMED);
    assert_int_equal(order(&holder, "fA"), DONE); /* its own is as good as before */
    assert_int_equal(order(&other, "aA"), DONE);
    assert_int_equal(order(&other, "cA"), FOUND);
    end_peer(&holder);
    end_peer(&other);
}

KT_TEST_IN_DIR(a_wait_can_be_interrupted)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&other, "x "), DONE);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(hear(&other), CANCELLED);
    end_peer(&holder);
    end_peer(&other);
}

/* --- who never waits -------------------------------------------------------------------------- */

KT_TEST_IN_DIR(opposite_orders_never_wait)
{
    peer one = start(*state), two = start(*state);
    assert_int_equal(order(&one, "cA"), CLAIMED);
    assert_int_equal(order(&two, "cB"), CLAIMED);
    assert_int_equal(order(&one, "cB"), CLAIMED);
    assert_int_equal(order(&two, "cA"), CLAIMED);
    assert_int_equal(order(&one, "fB"), DONE);
    assert_int_equal(order(&two, "fA"), DONE);
    assert_int_equal(order(&one, "fA"), DONE);
    assert_int_equal(order(&two, "fB"), DONE);
    assert_int_equal(order(&one, "cB"), FOUND);
    end_peer(&one);
    end_peer(&two);
}

KT_TEST_IN_DIR(opposite_orders_with_callbacks_never_wait)
{
    peer one = start(*state), two = start(*state);
    assert_int_equal(order(&one, "cA"), CLAIMED);
    assert_int_equal(order(&two, "cB"), CLAIMED);
    assert_int_equal(order(&one, "gB"), COMPILED);
    assert_int_equal(order(&two, "gA"), COMPILED);
    end_peer(&one);
    end_peer(&two);
}

/* A nested claim is one all the same: others wait for it. */
KT_TEST_IN_DIR(nested_claims_hold)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&holder, "cB"), CLAIMED);
    assert_int_equal(order(&other, "cB"), WAITS);
    assert_int_equal(order(&holder, "fB"), DONE);
    assert_int_equal(hear(&other), FOUND);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(order(&holder, "fA"), DONE);
    assert_int_equal(hear(&other), FOUND);
    end_peer(&holder);
    end_peer(&other);
}

KT_TEST_IN_DIR(threads_of_the_holder_never_wait)
{
    peer holder = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&holder, "tA"), CLAIMED);
    end_peer(&holder);
}

KT_TEST_IN_DIR(children_of_the_holder_never_wait)
{
    static const char *const hows[] = {"kA", "eA", "sA"};
    peer holder = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    /* QEMU is the program that the kernel starts. */
    const size_t count = kn_test_is_emulated() ? 1 : sizeof hows / sizeof *hows;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(order(&holder, hows[i]), CLAIMED);
        assert_int_equal(hear(&holder), DONE);
    }
    end_peer(&holder);
}

/* Who does not descend from it waits after its children have come and gone. */
KT_TEST_IN_DIR(a_fork_leaves_the_claim_alone)
{
    peer holder = start(*state), other = start(*state), late = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&holder, "AA"), DONE);
    assert_int_equal(order(&other, "x "), DONE);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(hear(&other), CANCELLED);
    assert_int_equal(order(&late, "cA"), WAITS);
    assert_int_equal(order(&holder, "FA"), DONE); /* what the child stores is there */
    assert_int_equal(hear(&late), FOUND);
    assert_int_equal(order(&holder, "fA"), DONE);
    end_peer(&holder);
    end_peer(&other);
    end_peer(&late);
}

/* --- where nobody may wait -------------------------------------------------------------------- */

KT_TEST_IN_DIR(nobody_waits_where_nothing_is_handed_over)
{
    static const struct {
        uint32_t flags;
        uint64_t min_free;
    } caches[] = {{KILN_CACHE_DISABLED, 0},
                  {KILN_CACHE_RECACHE, 0},
                  {KILN_CACHE_READONLY, 0},
                  {KILN_CACHE_NO_DISK, 0},
                  {0, UINT64_C(1) << 60}}; /* the disk is full */
    kiln_cache_destroy(ks_cache(*state));  /* a read-only one needs a directory */
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        peer holder = start_peer(*state, caches[i].flags, caches[i].min_free);
        peer other = start(*state);
        assert_int_equal(order(&holder, "cA"), CLAIMED);
        assert_int_equal(order(&other, "cA"), CLAIMED);
        assert_int_equal(order(&other, "aA"), DONE);
        assert_int_equal(order(&holder, "fA"), DONE);
        if ((caches[i].flags & KILN_CACHE_RECACHE) == 0) {
            assert_int_equal(order(&other, "cA"), CLAIMED); /* indeed */
        }
        end_peer(&holder);
        end_peer(&other);
        kiln_cache *cache = ks_cache(*state);
        kiln_prune_result cleared = {.struct_size = sizeof cleared};
        assert_int_equal(kiln_cache_clear(cache, &cleared, NULL), KILN_OK);
        kiln_cache_destroy(cache);
    }
}

static bool claim_without_memory(void *user)
{
    kiln_cache *cache = user;
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL, *made = NULL;
    kiln_claim *claim = NULL;
    kiln_status status = kiln_recipe_create("test", 1, &recipe, NULL);
    if (status == KILN_OK) {
        status = kiln_cache_claim(cache, recipe, NULL, &blob, &claim, NULL, NULL);
    }
    if (status == KILN_MISS) {
        status = kiln_blob_create("x", 1, "", 0, &made, NULL);
        if (status == KILN_OK) {
            status = kiln_claim_fulfil(claim, made, NULL);
        } else {
            kiln_claim_abandon(claim);
        }
    }
    assert_true(status == KILN_OK || status == KILN_E_NOMEM);
    if (recipe != NULL) {
        const kiln_key key = kiln_recipe_key(recipe);
        (void)!kiln_cache_remove(cache, &key, NULL);
    }
    kiln_blob_release(blob);
    kiln_blob_release(made);
    kiln_recipe_destroy(recipe);
    return status == KILN_OK;
}

KT_TEST_IN_DIR(claims_survive_failing_allocations)
{
    kiln_cache *cache = ks_cache(*state);
    assert_true(kt_failalloc_each(claim_without_memory, cache) >= 5);
    kiln_cache_destroy(cache);
}

int main(int count, char **arguments)
{
    if (count == 4) {
        (void)alarm(60);
        return run_descendant(arguments[1], arguments[2][0], atoi(arguments[3]));
    }
    return cmocka_run_group_tests(kt_cases, NULL, NULL);
}
