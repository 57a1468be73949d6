/* Results whose bytes come after their compile: found in this process before they are stored, read
 * and stored later, or left out where reading ends the process. */
#include <sys/wait.h>
#include <unistd.h>

#include "engine/late.h"
#include "support/suite.h"
#include "unit/engine/fake.h"
#include "unit/store/support.h"

typedef struct world {
    char *root;
    kiln_cache *cache;
    kiln_recipe *recipe;
    unsigned reads;
} world;

static int set_up(void **state)
{
    world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->root = kt_tmpdir_create();
    w->cache = ks_cache(w->root);
    w->recipe = ks_recipe("a");
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    kiln_cache_destroy(w->cache);
    kiln_recipe_destroy(w->recipe);
    kt_tmpdir_remove(w->root);
    free(w);
    return 0;
}

static kt_fake defer(const world *w)
{
    kt_fake fake = {.frontend = &kt_stage, .cache = w->cache, .gives = KN_OUTCOME_DEFERRED};
    assert_int_equal(kt_fake_run(&fake, w->recipe), KN_OUTCOME_DEFERRED);
    return fake;
}

static bool is_stored(const world *w)
{
    const kiln_key key = kiln_recipe_key(w->recipe);
    bool there = false;
    kiln_cache_contains(w->cache, &key, 1, &there);
    return there;
}

static kiln_status publish(world *w, kn_late_fn *read)
{
    const kn_request request = kt_request(w->cache, w->recipe);
    return kn_late_publish(&request, 7, read, w, NULL);
}

static kiln_status read_late(void *call, kiln_blob **out_blob, kiln_diag *diag)
{
    world *w = call;
    (void)diag;
    w->reads++;
    *out_blob = ks_blob("a program");
    return KILN_OK;
}

static kiln_status read_nothing(void *call, kiln_blob **out_blob, kiln_diag *diag)
{
    world *w = call;
    (void)out_blob;
    (void)diag;
    w->reads++;
    return KILN_MISS;
}

static kiln_status end_process(void *call, kiln_blob **out_blob, kiln_diag *diag)
{
    (void)call;
    (void)out_blob;
    (void)diag;
    _exit(3);
}

#define TEST(name) KT_TEST_WITH(set_up, tear_down, name)

TEST(what_was_deferred_is_published_late)
{
    world *w = *state;
    kt_fake other = {.frontend = &kt_stage, .cache = w->cache};
    (void)defer(w);
    assert_int_equal(publish(w, read_nothing), KILN_MISS);
    assert_false(is_stored(w));
    assert_int_equal(publish(w, read_late), KILN_OK);
    assert_true(is_stored(w));
    assert_int_equal(w->reads, 2);
    assert_int_equal(kt_fake_run(&other, w->recipe), KN_OUTCOME_HIT);
    assert_int_equal(other.compiles, 0);
}

TEST(a_read_that_ended_a_process_is_left_out)
{
    world *w = *state;
    int status = 0;
    (void)defer(w);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)publish(w, end_process);
        _exit(4);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_int_equal(publish(w, read_late), KILN_MISS);
    assert_int_equal(w->reads, 0);
    assert_false(is_stored(w));
}

/* The cache may have it by now, and is not asked. */
TEST(what_was_deferred_before_is_adopted_without_a_lookup)
{
    world *w = *state;
    kt_counters counters;
    const kt_fake leader = defer(w);
    kt_fake fake = {.frontend = &kt_stage, .cache = w->cache, .leader = &leader};
    assert_int_equal(publish(w, read_late), KILN_OK);
    assert_int_equal(kt_fake_run(&fake, w->recipe), KN_OUTCOME_HIT);
    assert_string_equal(fake.origin, "shared");
    assert_int_equal(fake.adopted, 1);
    assert_int_equal(fake.compiles + fake.loaded, 0);
    kt_counters_own(w->cache, &counters);
    assert_int_equal(counters.misses, 1);
    assert_int_equal(counters.compiles, 1);
    assert_int_equal(counters.hits_memory + counters.hits_disk, 0);
}

KT_MAIN(NULL, NULL)
