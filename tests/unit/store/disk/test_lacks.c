/* What the disk tier says of entries without a look: never that one is not there which this object
 * has stored, and no longer than a moment of one that another has. */
#include "unit/store/support.h"

#include "key/recipe.h"
#include "store/disk/disk.h"
#include "store/format/blob.h"
#include "support/suite.h"
#include "sys/clock.h"

enum { LEARNS = 8 }; /* questions, more than enough to make it list */

typedef struct world {
    kn_stats stats;
    kn_disk *ours, *theirs;
} world;

static void open_world(world *w, const char *root)
{
    const kn_disk_options options = {
        .root = root, .max_bytes = 1u << 30, .max_files = 1000, .min_free = UINT64_MAX};
    kn_stats_init(&w->stats);
    assert_int_equal(kn_disk_open(&options, &w->stats, &w->ours, NULL), KILN_OK);
    assert_int_equal(kn_disk_open(&options, &w->stats, &w->theirs, NULL), KILN_OK);
}

static void close_world(world *w)
{
    kn_disk_close(w->ours);
    kn_disk_close(w->theirs);
    kn_stats_deinit(&w->stats);
}

static void put(kn_disk *disk, const char *name)
{
    kiln_recipe *recipe = ks_recipe(name);
    kiln_blob *blob = ks_blob(name);
    const kiln_key key = kiln_recipe_key(recipe);
    const kn_tier_put what = {
        .key = &key, .target = "test-target", .recipe = kn_recipe_span(recipe), .blob = blob};
    assert_int_equal(kn_disk_ops.put(disk, &what, NULL), KILN_OK);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

static bool lacks(kn_disk *disk, const char *name)
{
    const kiln_key key = ks_key(name);
    return kn_disk_ops.lacks(disk, &key, "test-target");
}

static bool learn(kn_disk *disk, const char *name)
{
    bool all = true;
    for (int i = 0; i < LEARNS; i++) {
        all = lacks(disk, name) && all;
    }
    assert_false(all); /* not from the first question on */
    return lacks(disk, name);
}

KT_TEST(what_is_not_there_is_known_after_some_questions)
{
    world w;
    char *root = kt_at(*state, "empty");
    open_world(&w, root);
    assert_true(learn(w.ours, "one"));
    close_world(&w);
}

KT_TEST(what_is_there_is_never_lacked)
{
    world w;
    char *root = kt_at(*state, "full");
    open_world(&w, root);
    put(w.theirs, "one");
    assert_false(learn(w.ours, "one"));
    close_world(&w);
}

KT_TEST(our_own_put_is_known_at_once)
{
    world w;
    char *root = kt_at(*state, "own");
    open_world(&w, root);
    assert_true(learn(w.ours, "one"));
    put(w.ours, "one");
    assert_false(lacks(w.ours, "one"));
    close_world(&w);
}

KT_TEST(anothers_put_is_known_a_moment_later)
{
    world w;
    char *root = kt_at(*state, "others");
    open_world(&w, root);
    assert_true(learn(w.ours, "one"));
    put(w.theirs, "one");
    kn_clock_sleep(KN_TIER_LACKS_NS);
    assert_false(lacks(w.ours, "one"));
    close_world(&w);
}

KT_MAIN(kt_tmpdir_setup, kt_tmpdir_teardown)
