/* The stack over tiers that are made up here: order, promotion, write-through, trouble. */
#include "unit/store/support.h"

#include "key/recipe.h"
#include "store/cache/stack.h"
#include "store/format/blob.h"
#include "support/suite.h"

enum { ROOM = 8 };

/* A tier in memory that follows its script. */
typedef struct toy {
    kiln_key keys[ROOM];
    kiln_blob *blobs[ROOM];
    char targets[ROOM][65];
    kiln_status get_fails, put_fails;
    int gets, puts, copies, closed;
    bool lacks; /* all entries */
    int lacks_asked;
    kn_mem *memory;   /* looked at in each put; NULL: not */
    int put_too_late; /* puts of what was in memory already */
} toy;

static kiln_status toy_get(void *self, const kiln_key *key, const char *target,
                           kiln_blob **out_blob, kiln_diag *diag)
{
    toy *t = self;
    (void)target;
    t->gets++;
    if (t->get_fails != KILN_OK) {
        return kiln_diag_set(diag, t->get_fails, NULL, "toy", "on purpose");
    }
    for (int i = 0; i < ROOM; i++) {
        if (t->blobs[i] != NULL && memcmp(&t->keys[i], key, sizeof *key) == 0) {
            *out_blob = kiln_blob_retain(t->blobs[i]);
            return KILN_OK;
        }
    }
    return KILN_MISS;
}

static bool toy_lacks(void *self, const kiln_key *key, const char *target)
{
    toy *t = self;
    (void)key;
    assert_non_null(target);
    t->lacks_asked++;
    return t->lacks;
}

static kiln_status toy_put(void *self, const kn_tier_put *what, kiln_diag *diag)
{
    toy *t = self;
    int at = t->puts++ % ROOM;
    t->copies += what->copy;
    t->put_too_late += t->memory != NULL && kn_mem_contains(t->memory, what->key);
    if (t->put_fails != KILN_OK) {
        return kiln_diag_set(diag, t->put_fails, NULL, "toy", "on purpose");
    }
    t->keys[at] = *what->key;
    t->blobs[at] = kiln_blob_retain(what->blob);
    (void)snprintf(t->targets[at], sizeof t->targets[at], "%s", what->target);
    return KILN_OK;
}

static kiln_status toy_remove(void *self, const kiln_key *key, kiln_diag *diag)
{
    toy *t = self;
    (void)diag;
    for (int i = 0; i < ROOM; i++) {
        if (t->blobs[i] != NULL && memcmp(&t->keys[i], key, sizeof *key) == 0) {
            kiln_blob_release(t->blobs[i]);
            t->blobs[i] = NULL;
            return KILN_OK;
        }
    }
    return KILN_MISS;
}

static void toy_close(void *self)
{
    toy *t = self;
    t->closed++;
    for (int i = 0; i < ROOM; i++) {
        kiln_blob_release(t->blobs[i]);
    }
}

static const kn_tier_ops writable = {.name = "toy",
                                     .origin = KILN_ORIGIN_DISK,
                                     .caps = KN_TIER_WRITES,
                                     .get = toy_get,
                                     .put = toy_put,
                                     .remove = toy_remove,
                                     .close = toy_close};
static const kn_tier_ops read_only = {
    .name = "pack", .origin = KILN_ORIGIN_PACK, .get = toy_get, .close = toy_close};

static const kn_tier_ops knowing = {.name = "toy",
                                    .origin = KILN_ORIGIN_DISK,
                                    .get = toy_get,
                                    .lacks = toy_lacks,
                                    .close = toy_close};
static const kn_tier_ops lasting = {.name = "pack",
                                    .origin = KILN_ORIGIN_PACK,
                                    .caps = KN_TIER_STAYS,
                                    .get = toy_get,
                                    .close = toy_close};

typedef struct fixture {
    kn_stack stack;
    kn_stats stats;
    toy upper, middle, lower;
    kiln_recipe *recipe;
    kiln_key key;
    kiln_blob *blob;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    kn_stats_init(&f->stats);
    f->stack.stats = &f->stats;
    assert_int_equal(kn_mem_create(1 << 20, 100, &f->stack.memory, NULL), KILN_OK);
    assert_int_equal(kn_stack_add(&f->stack, (kn_tier){&writable, &f->upper}, NULL), KILN_OK);
    assert_int_equal(kn_stack_add(&f->stack, (kn_tier){&read_only, &f->middle}, NULL), KILN_OK);
    assert_int_equal(kn_stack_add(&f->stack, (kn_tier){&writable, &f->lower}, NULL), KILN_OK);
    f->recipe = ks_recipe("x");
    f->key = kiln_recipe_key(f->recipe);
    f->blob = ks_blob("payload");
    f->blob->recipe = kn_recipe_span(f->recipe); /* as one that was read from an entry */
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    kn_stack_deinit(&f->stack);
    assert_int_equal(f->upper.closed + f->middle.closed + f->lower.closed, 3);
    kn_stats_deinit(&f->stats);
    kiln_blob_release(f->blob);
    kiln_recipe_destroy(f->recipe);
    free(f);
    return 0;
}

static void give(fixture *f, toy *tier)
{
    tier->keys[ROOM - 1] = f->key;
    tier->blobs[ROOM - 1] = kiln_blob_retain(f->blob);
}

static kiln_origin get(fixture *f)
{
    kiln_blob *blob = NULL;
    kiln_origin origin;
    kiln_status status = kn_stack_get(&f->stack, &f->key, NULL, &blob, &origin);
    assert_int_equal(status, origin != KILN_ORIGIN_NONE ? KILN_OK : KILN_MISS);
    kiln_blob_release(blob);
    return origin;
}

static uint64_t counter(fixture *f, enum kn_counter which)
{
    return atomic_load(&f->stats.own[which]);
}

#define TEST(name) KT_TEST_WITH(setup, teardown, name)

TEST(a_lower_hit_is_promoted_to_all_above)
{
    fixture *f = *state;
    give(f, &f->lower);
    assert_int_equal(get(f), KILN_ORIGIN_DISK);
    assert_int_equal(f->upper.puts, 1);
    assert_int_equal(f->upper.copies, 1);
    assert_string_equal(f->upper.targets[0], "test-target"); /* from the recipe in the entry */
    assert_int_equal(f->lower.puts, 0);
    assert_int_equal(get(f), KILN_ORIGIN_MEMORY);
    assert_int_equal(f->upper.gets, 1);
    assert_true(kn_mem_remove(f->stack.memory, &f->key));
    assert_int_equal(get(f), KILN_ORIGIN_DISK);
    assert_int_equal(f->middle.gets, 1); /* the upper one had it */
    assert_int_equal(counter(f, KN_COUNT_hits_disk), 2);
}

TEST(a_read_only_tier_answers_and_is_not_written)
{
    fixture *f = *state;
    give(f, &f->middle);
    assert_int_equal(get(f), KILN_ORIGIN_PACK);
    assert_int_equal(counter(f, KN_COUNT_hits_pack), 1);
    assert_int_equal(f->upper.puts, 1);
    assert_int_equal(f->lower.gets, 0);
}

static kn_tier_put what(fixture *f)
{
    return (kn_tier_put){.key = &f->key,
                         .target = "test-target",
                         .recipe = kn_recipe_span(f->recipe),
                         .blob = f->blob};
}

TEST(puts_go_to_all_that_take_them_and_removal_too)
{
    fixture *f = *state;
    const kn_tier_put put = what(f);
    kn_stack_put(&f->stack, &put, true);
    assert_int_equal(f->upper.puts + f->lower.puts, 2);
    assert_int_equal(f->upper.copies + f->lower.copies, 0);
    assert_int_equal(counter(f, KN_COUNT_puts), 2);
    assert_int_equal(kn_stack_remove(&f->stack, &f->key, NULL), KILN_OK);
    assert_int_equal(get(f), KILN_ORIGIN_NONE);
    assert_int_equal(kn_stack_remove(&f->stack, &f->key, NULL), KILN_MISS);
    kn_stack_put(&f->stack, &put, false); /* memory only */
    assert_int_equal(f->upper.puts + f->lower.puts, 2);
    assert_int_equal(get(f), KILN_ORIGIN_MEMORY);
}

/* A thread with a hit in memory may put the entry into a pack at once: it must be on disk. */
TEST(memory_has_it_after_all_other_tiers)
{
    fixture *f = *state;
    const kn_tier_put put = what(f);
    f->upper.memory = f->lower.memory = f->stack.memory;
    kn_stack_put(&f->stack, &put, true);
    assert_int_equal(f->upper.puts + f->lower.puts, 2);
    assert_true(kn_mem_contains(f->stack.memory, &f->key));
    assert_int_equal(kn_stack_remove(&f->stack, &f->key, NULL), KILN_OK);
    give(f, &f->lower);
    assert_int_equal(get(f), KILN_ORIGIN_DISK); /* promoted */
    assert_int_equal(f->upper.puts, 2);
    assert_true(kn_mem_contains(f->stack.memory, &f->key));
    assert_int_equal(f->upper.put_too_late + f->lower.put_too_late, 0);
}

TEST(trouble_is_counted_and_passed_over)
{
    fixture *f = *state;
    const kn_tier_put put = what(f);
    give(f, &f->lower);
    f->upper.get_fails = KILN_E_CORRUPT;
    f->middle.get_fails = KILN_E_IO;
    f->upper.put_fails = KILN_E_IO;
    assert_int_equal(get(f), KILN_ORIGIN_DISK);
    assert_int_equal(counter(f, KN_COUNT_corrupt), 1);
    assert_int_equal(counter(f, KN_COUNT_io_errors), 1);
    assert_int_equal(counter(f, KN_COUNT_put_failures), 1); /* the promotion */
    kn_stack_put(&f->stack, &put, true);
    assert_int_equal(counter(f, KN_COUNT_put_failures), 2);
    assert_int_equal(counter(f, KN_COUNT_puts), 1);
}

static kiln_origin get_with_target(fixture *f)
{
    kiln_blob *blob = NULL;
    kiln_origin origin;
    (void)kn_stack_get(&f->stack, &f->key, "test-target", &blob, &origin);
    kiln_blob_release(blob);
    (void)kn_mem_remove(f->stack.memory, &f->key);
    return origin;
}

/* A pack's hit costs no look at the disk, which would have been asked first. */
TEST(what_a_tier_lacks_is_looked_for_in_one_that_stays)
{
    fixture *f = *state;
    f->stack.tiers[0].ops = &knowing;
    f->stack.tiers[1].ops = &lasting;
    give(f, &f->middle);
    assert_int_equal(get_with_target(f), KILN_ORIGIN_PACK);
    assert_int_equal(f->upper.gets, 1); /* it may have it */
    f->upper.lacks = true;
    assert_int_equal(get_with_target(f), KILN_ORIGIN_PACK);
    assert_int_equal(f->upper.gets, 1);
    assert_int_equal(f->upper.lacks_asked, 2);
    assert_int_equal(counter(f, KN_COUNT_hits_pack), 2);
    assert_int_equal(get(f), KILN_ORIGIN_PACK); /* without a target nothing is known */
    assert_int_equal(f->upper.lacks_asked, 2);
    assert_int_equal(f->upper.gets, 2);
}

/* It is asked later: a miss is a miss of all tiers, each asked once. */
TEST(what_a_tier_lacks_is_looked_for_there_at_last)
{
    fixture *f = *state;
    f->stack.tiers[0].ops = &knowing;
    f->stack.tiers[1].ops = &lasting;
    f->upper.lacks = true;
    f->middle.get_fails = KILN_E_CORRUPT;
    assert_int_equal(get_with_target(f), KILN_ORIGIN_NONE);
    assert_int_equal(f->upper.gets + f->middle.gets + f->lower.gets, 3);
    assert_int_equal(counter(f, KN_COUNT_corrupt), 1);
    give(f, &f->upper); /* it has come meanwhile */
    assert_int_equal(get_with_target(f), KILN_ORIGIN_DISK);
    assert_int_equal(f->upper.gets, 2);
    assert_int_equal(counter(f, KN_COUNT_hits_disk), 1);
}

TEST(there_is_an_end_of_tiers)
{
    fixture *f = *state;
    toy more[KN_STACK_TIERS] = {0};
    int added = 0;
    for (int i = 0; i < KN_STACK_TIERS; i++) {
        if (kn_stack_add(&f->stack, (kn_tier){&read_only, &more[i]}, NULL) == KILN_OK) {
            added++;
        } else {
            assert_int_equal(more[i].closed, 1);
        }
    }
    assert_int_equal(added, KN_STACK_TIERS - 3);
    while (f->stack.count > 3) {
        f->stack.count--; /* they end with this function */
    }
}

KT_MAIN(NULL, NULL)
