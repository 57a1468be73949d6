/* Caches in forked children: what a child makes afresh, and what it does where memory for that is
 * lacking. */
#include "unit/store/support.h"

#include <sys/wait.h>
#include <unistd.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/memory.h>

#include "support/counters.h"
#include "support/failalloc.h"
#include "support/suite.h"

/* Every call that looks at what the child has made. False when it gives a wrong answer. */
static bool use_everything(kiln_cache *cache, const kiln_recipe *recipe, kiln_blob *blob)
{
    const kiln_key key = kiln_recipe_key(recipe);
    kt_counters stats;
    kiln_prune_result pruned = {.struct_size = sizeof(pruned)};
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    const kiln_prune_options all = {.struct_size = sizeof(all), .max_bytes = UINT64_MAX};
    kiln_blob *got = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    ks_compile compile = {.text = "x"};
    bool there = false;
    kiln_cache_contains(cache, &key, 1, &there);
    kiln_status status =
        kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &got, &origin, NULL);
    bool good = status == KILN_E_NOMEM || (status == KILN_OK && kiln_blob_size(got) == 1);
    kiln_blob_release(got);
    status = kiln_cache_get(cache, &key, &got, &origin, NULL);
    good = good && (status == KILN_OK || status == KILN_MISS);
    kiln_blob_release(got);
    good = good && kiln_cache_put(cache, recipe, blob, 1, NULL) == KILN_OK;
    status = kiln_cache_pin(cache, &key, NULL);
    good = good && (status == KILN_OK || status == KILN_MISS || status == KILN_E_NOMEM ||
                    status == KILN_E_UNSUPPORTED);
    kiln_cache_unpin(cache, &key);
    kiln_cache_trim(cache, 0);
    kiln_cache_count_bypass(cache, "a kernel", "a test");
    kt_counters_own(cache, &stats);
    (void)!kt_counters_total(cache, &stats, NULL);
    (void)!kiln_cache_prune(cache, &all, &pruned, NULL);
    (void)!kiln_cache_verify(cache, true, &verified, NULL);
    (void)!kiln_cache_remove(cache, &key, NULL);
    (void)!kiln_cache_clear(cache, &pruned, NULL);
    return good;
}

/* In the child: 0 all well, 1 a wrong answer, 2 no allocation failed any more. */
static int child(kiln_cache *cache, const kiln_recipe *recipe, kiln_blob *blob, uint64_t n, bool on)
{
    kt_failalloc_arm(n, on);
    const bool good = use_everything(cache, recipe, blob);
    kiln_cache_destroy(cache);
    const bool fired = kt_failalloc_fired();
    kt_failalloc_disarm();
    return !good ? 1 : fired ? 0 : 2;
}

KT_TEST_IN_DIR(C8_a_child_without_memory_goes_on_without_a_cache)
{
    for (int on = 0; on < 2; on++) {
        kiln_cache *cache = ks_cache(*state);
        kiln_recipe *recipe = ks_recipe("x");
        kiln_blob *blob = ks_blob("x");
        int status = 0;
        /* No compile: its thread would be the parent's, and the thread sanitizer takes a child's
         * first one for the same. */
        assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
        for (uint64_t n = 1; n < 1000 && status == 0; n++) {
            pid_t pid = fork();
            if (pid == 0) {
                _exit(child(cache, recipe, blob, n, on != 0));
            }
            assert_int_equal(waitpid(pid, &status, 0), pid);
        }
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 2);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
        kiln_cache_destroy(cache);
    }
}

KT_MAIN(NULL, NULL)
