/* Misses by reason: that each is distinguished from the others without a search, over processes,
 * and that kiln's own notes are not counted among a caller's kernels. */
#include "support/counters.h"
#include "support/suite.h"
#include "unit/store/support.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct kernel {
    const char *stage, *source, *option, *entry, *header, *environment, *driver;
} kernel;

static const kernel base = {"test.kernel", "source A", "-O2", "f", "h.h 11", "DEBUG=0", "1.0"};

static void add(kiln_recipe *recipe, const char *field, const char *text)
{
    kiln_recipe_add_text(recipe, field, text, strlen(text));
}

static kiln_recipe *recipe_of(const kernel *k)
{
    kiln_recipe *recipe = NULL;
    assert_int_equal(kiln_recipe_create(k->stage, 1, &recipe, NULL), KILN_OK);
    add(recipe, "source", k->source);
    add(recipe, "option", k->option);
    add(recipe, "entry", k->entry);
    add(recipe, "header", k->header);
    add(recipe, "env.DEBUG", k->environment);
    add(recipe, "test.driver", k->driver);
    return recipe;
}

static void get(kiln_cache *cache, const kernel *k)
{
    ks_compile compile = {.text = "binary"};
    kiln_recipe *recipe = recipe_of(k);
    kiln_blob *blob = NULL;
    assert_int_equal(
        kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob, NULL, NULL),
        KILN_OK);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

/* In a cache object of its own, as another process would: what it counts. */
static kt_counters get_anew(const char *root, const kernel *k)
{
    kiln_cache *cache = ks_cache(root);
    get(cache, k);
    const kt_counters stats = ks_own(cache);
    kiln_cache_destroy(cache);
    return stats;
}

static void expect_one(const kt_counters *stats, const uint64_t *counter)
{
    assert_int_equal(stats->misses, 1);
    assert_int_equal(stats->misses_new + stats->misses_evicted + stats->misses_corrupt +
                         stats->misses_options + stats->misses_header + stats->misses_driver +
                         stats->misses_other,
                     1);
    assert_int_equal(*counter, 1);
}

KT_TEST_IN_DIR(U4_a_miss_is_counted_with_what_changed)
{
    kernel k = base;
    kt_counters stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_new);
    k.option = "-O3";
    stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_options);
    k = base;
    k.entry = "g";
    stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_options);
    k = base;
    k.header = "h.h 12";
    stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_header);
    k = base;
    k.driver = "1.1";
    stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_driver);
    k = base;
    k.environment = "DEBUG=1";
    stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_other);
    k = base;
    k.source = "source B";
    stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_new);
    k = base;
    k.stage = "test.other";
    stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_new);
    stats = get_anew(*state, &base);
    assert_int_equal(stats.misses, 0);

    kiln_cache *cache = ks_cache(*state);
    kt_counters total;
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_int_equal(total.misses, 8);
    assert_int_equal(total.misses_new, 3);
    assert_int_equal(total.misses_options, 2);
    assert_int_equal(total.misses_driver, 1);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(U4_the_nearest_kin_gives_the_reason)
{
    kernel k = base;
    (void)get_anew(*state, &k);
    k.option = "-O3";
    (void)get_anew(*state, &k);
    k.driver = "1.1"; /* next to the second, not to the first */
    kt_counters stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_driver);
    k = base;
    k.driver = "2.0";
    k.option = "-O1"; /* of several, the first one in the order in which they are explained */
    stats = get_anew(*state, &k);
    expect_one(&stats, &stats.misses_options);
}

KT_TEST_IN_DIR(U4_what_was_dropped_counts_as_that)
{
    (void)get_anew(*state, &base);
    kiln_recipe *recipe = recipe_of(&base);
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);

    kiln_cache *cache = ks_cache(*state);
    assert_int_equal(kiln_cache_remove(cache, &key, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    kt_counters stats = get_anew(*state, &base);
    expect_one(&stats, &stats.misses_evicted);

    cache = ks_cache(*state);
    char *path = ks_only_entry(cache);
    kiln_cache_destroy(cache);
    kt_file_write(path, "damaged", 7);
    free(path);
    stats = get_anew(*state, &base);
    expect_one(&stats, &stats.misses_corrupt);

    cache = ks_cache(*state); /* by its key alone, as well */
    kiln_blob *blob = NULL;
    assert_int_equal(kiln_cache_remove(cache, &key, NULL), KILN_OK);
    assert_int_equal(kiln_cache_get(cache, &key, &blob, NULL, NULL), KILN_MISS);
    stats = ks_own(cache);
    expect_one(&stats, &stats.misses_evicted);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(U4_notes_are_not_counted_among_kernels)
{
    kernel note = base;
    note.stage = "kiln.note";
    kt_counters stats = get_anew(*state, &note);
    assert_int_equal(stats.misses, 0);
    assert_int_equal(stats.note_misses, 1);
    assert_int_equal(stats.misses_new, 0);

    kiln_cache *cache = ks_cache(*state);
    get(cache, &note); /* from disk */
    get(cache, &note); /* from memory */
    stats = ks_own(cache);
    assert_int_equal(stats.note_hits, 2);
    assert_int_equal(stats.hits_memory + stats.hits_disk + stats.saved_ns, 0);
    get(cache, &base);
    get(cache, &base);
    stats = ks_own(cache);
    assert_int_equal(stats.hits_memory, 1);
    assert_int_equal(stats.misses, 1);
    expect_one(&stats, &stats.misses_new);
    kiln_cache_destroy(cache);
}

/* The table of kin is junk, a directory, a link, or full: reasons get lost, nothing else.
 */
KT_TEST_IN_DIR(D1_a_damaged_table_of_kin_costs_only_reasons)
{
    char *table = kt_at(*state, "kin");
    char *elsewhere = kt_at(*state, "tmp/elsewhere");
    char junk[5000];
    memset(junk, 0xa5, sizeof junk);
    kernel k = base;
    for (int i = 0; i < 4; i++) {
        char option[16];
        (void)snprintf(option, sizeof option, "-O%d", 10 + i);
        k.option = option;
        (void)remove(table);
        if (i == 0) {
            kt_file_write(table, junk, sizeof junk);
        } else if (i == 1) {
            assert_int_equal(mkdir(table, 0700), 0);
        } else if (i == 2) {
            assert_int_equal(symlink(elsewhere, table), 0);
        } else {
            kt_file_write(table, junk, 11);
        }
        kt_counters stats = get_anew(*state, &k);
        assert_int_equal(stats.misses, 1);
        assert_int_equal(stats.puts, 1);
        assert_false(kt_file_exists(elsewhere)); /* a link is not followed */
        (void)get_anew(*state, &k);
    }
}

KT_TEST_IN_DIR(U4_many_variants_share_a_place)
{
    kernel k = base;
    for (int i = 0; i < 20; i++) {
        char option[16];
        (void)snprintf(option, sizeof option, "-O%d", i);
        k.option = option;
        kt_counters stats = get_anew(*state, &k);
        expect_one(&stats, i == 0 ? &stats.misses_new : &stats.misses_options);
    }
}

static bool holds(const char *root, const char *name, const char *text)
{
    char *path = kt_at(root, name);
    size_t size = 0;
    char *bytes = kt_file_exists(path) ? kt_file_read(path, &size) : NULL;
    bool found = false;
    for (size_t i = 0; bytes != NULL && i + strlen(text) <= size && !found; i++) {
        found = memcmp(bytes + i, text, strlen(text)) == 0;
    }
    free(bytes);
    return found;
}

/* Neither the entry nor any table next to it holds the text that was compiled. */
KT_TEST_IN_DIR(S6_a_source_is_not_kept)
{
    static const char secret[] = "float trade_secret(float x)";
    ks_compile compile = {.text = "binary"};
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    kiln_cache *cache = ks_cache(*state);
    assert_int_equal(kiln_recipe_create("test.kernel", 1, &recipe, NULL), KILN_OK);
    kiln_recipe_add_bytes(recipe, "source", secret, sizeof secret - 1);
    kiln_recipe_add_text(recipe, "option", "-told", 5);
    assert_int_equal(
        kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob, NULL, NULL),
        KILN_OK);
    char *entry = ks_only_entry(cache);
    const char *in_root = entry + strlen(kiln_cache_root(cache)) + 1;
    assert_true(holds(*state, in_root, "-told"));
    assert_false(holds(*state, in_root, "trade_secret"));
    assert_false(holds(*state, "kin", "trade_secret"));
    assert_false(holds(*state, "stats", "trade_secret"));
    assert_false(holds(*state, "losses", "trade_secret"));
    free(entry);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
