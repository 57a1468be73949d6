/* Why a lookup misses: every input of a recipe changed alone is named; what was evicted or damaged
 * is reported; and the batch question whether entries are there. */
#include "unit/store/support.h"

#include <time.h>

#include "kiln/unstable/explain.h"
#include "kiln/unstable/pack.h"
#include "support/counters.h"
#include "support/suite.h"

/* A recipe as a backend makes it. A row changes one field; NULL leaves it out. */
typedef struct kernel {
    const char *stage, *target, *source, *option, *define, *entry, *header, *other_header;
    const char *environment, *driver, *own;
    uint32_t revision;
} kernel;

static const kernel base = {.stage = "my.binary",
                            .target = "gpu-1",
                            .source = "0123456789",
                            .option = "-O2",
                            .define = "N",
                            .entry = "main",
                            .header = "a.h 11112222333344445555666677778888",
                            .other_header = "b.h 99992222333344445555666677778888",
                            .environment = "1",
                            .driver = "535.1",
                            .own = "x",
                            .revision = 3};

static void add(kiln_recipe *recipe, const char *name, const char *value)
{
    if (value != NULL) {
        kiln_recipe_add_text(recipe, name, value, strlen(value));
    }
}

static kiln_recipe *recipe_of(const kernel *k)
{
    kiln_recipe *recipe = NULL;
    assert_int_equal(kiln_recipe_create(k->stage, k->revision, &recipe, NULL), KILN_OK);
    kiln_recipe_set_target(recipe, k->target);
    kiln_recipe_add_bytes(recipe, "source", k->source, strlen(k->source));
    add(recipe, "option", "-Wall");
    add(recipe, "option", k->option);
    add(recipe, "define", k->define);
    add(recipe, "entry", k->entry);
    add(recipe, "header", k->header);
    add(recipe, "header", k->other_header);
    add(recipe, "env.MY_FLAGS", k->environment);
    add(recipe, "my.driver", k->driver);
    add(recipe, "flavour", k->own);
    return recipe;
}

static void put(kiln_cache *cache, const kernel *k)
{
    kiln_recipe *recipe = recipe_of(k);
    kiln_blob *blob = ks_blob("bytes");
    assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

/* What was reported; the first difference is copied. */
typedef struct told {
    int calls;
    kiln_why why;
    bool has_nearest;
    size_t count;
    char field[64], then[128], now[128];
} told;

static kiln_status keep(void *user, const kiln_explanation *e)
{
    told *t = user;
    t->calls++;
    t->why = e->why;
    t->has_nearest = e->has_nearest;
    t->count = e->difference_count;
    if (e->difference_count > 0) {
        const kiln_difference *d = e->differences[0];
        (void)snprintf(t->field, sizeof t->field, "%s", d->field);
        (void)snprintf(t->then, sizeof t->then, "%s", d->then != NULL ? d->then : "(none)");
        (void)snprintf(t->now, sizeof t->now, "%s", d->now != NULL ? d->now : "(none)");
    }
    return KILN_OK;
}

static told explain(kiln_cache *cache, const kernel *k)
{
    told t = {0};
    kiln_recipe *recipe = recipe_of(k);
    assert_int_equal(kiln_cache_explain(cache, recipe, keep, &t, NULL), KILN_OK);
    assert_int_equal(t.calls, 1);
    kiln_recipe_destroy(recipe);
    return t;
}

KT_TEST_IN_DIR(an_input_changed_alone_is_named)
{
    const struct {
        size_t member; /* of kernel, a text */
        const char *value;
        kiln_why why;
        const char *field, *then, *now;
    } rows[] = {
        {offsetof(kernel, source), "9876543210", KILN_WHY_SOURCE, "source", NULL, NULL},
        {offsetof(kernel, option), "-O3", KILN_WHY_OPTIONS, "option", "\"-O2\"", "\"-O3\""},
        {offsetof(kernel, option), NULL, KILN_WHY_OPTIONS, "option", "\"-O2\"", "(none)"},
        {offsetof(kernel, define), "M", KILN_WHY_OPTIONS, "define", "\"N\"", "\"M\""},
        {offsetof(kernel, entry), "other", KILN_WHY_ENTRY, "entry", "\"main\"", "\"other\""},
        {offsetof(kernel, header), "a.h 88882222333344445555666677778888", KILN_WHY_HEADER,
         "header", "\"a.h 11112222333344445555666677778888\"",
         "\"a.h 88882222333344445555666677778888\""},
        {offsetof(kernel, other_header), "b.h 88882222333344445555666677778888", KILN_WHY_HEADER,
         "header", "\"b.h 99992222333344445555666677778888\"",
         "\"b.h 88882222333344445555666677778888\""},
        {offsetof(kernel, other_header), NULL, KILN_WHY_HEADER, "header",
         "\"b.h 99992222333344445555666677778888\"", "(none)"},
        {offsetof(kernel, environment), "2", KILN_WHY_ENVIRONMENT, "env.MY_FLAGS", "\"1\"",
         "\"2\""},
        {offsetof(kernel, environment), NULL, KILN_WHY_ENVIRONMENT, "env.MY_FLAGS", "\"1\"",
         "(none)"},
        {offsetof(kernel, driver), "535.2", KILN_WHY_DRIVER, "my.driver", "\"535.1\"", "\"535.2\""},
        {offsetof(kernel, target), "gpu-2", KILN_WHY_DRIVER, "target", "\"gpu-1\"", "\"gpu-2\""},
        {offsetof(kernel, own), "y", KILN_WHY_FIELD, "flavour", "\"x\"", "\"y\""},
    };
    kiln_cache *cache = ks_cache(*state);
    /* Entries that are farther away. */
    kernel far = base;
    far.source = "another kernel";
    put(cache, &far);
    far.stage = "other.binary";
    put(cache, &far);
    put(cache, &base);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kernel changed = base;
        memcpy((char *)&changed + rows[i].member, &rows[i].value, sizeof rows[i].value);
        told t = explain(cache, &changed);
        assert_true(t.has_nearest);
        assert_int_equal(t.count, 1);
        assert_string_equal(t.field, rows[i].field);
        assert_string_equal(kiln_why_text(t.why), kiln_why_text(rows[i].why));
        if (rows[i].then != NULL) {
            assert_string_equal(t.then, rows[i].then);
            assert_string_equal(t.now, rows[i].now);
        }
    }
    kernel revised = base;
    revised.revision = 4;
    told t = explain(cache, &revised);
    assert_int_equal(t.why, KILN_WHY_STAGE);
    assert_string_equal(t.field, "revision");
    assert_int_equal(explain(cache, &base).why, KILN_WHY_HIT);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(the_order_of_a_list_is_told)
{
    kiln_cache *cache = ks_cache(*state);
    kernel k = base;
    put(cache, &k);
    k.header = base.other_header;
    k.other_header = base.header;
    told t = explain(cache, &k);
    assert_int_equal(t.why, KILN_WHY_HEADER);
    assert_int_equal(t.count, 1);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(what_was_never_there_is_new)
{
    kiln_cache *cache = ks_cache(*state);
    told t = explain(cache, &base);
    assert_int_equal(t.why, KILN_WHY_NEW);
    assert_false(t.has_nearest);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(what_was_evicted_or_damaged_is_told)
{
    kiln_cache *cache = ks_cache(*state);
    const kiln_prune_options everything = {.struct_size = sizeof(everything), .max_bytes = 0};
    kiln_prune_result pruned = {.struct_size = sizeof(pruned)};
    put(cache, &base);
    assert_int_equal(kiln_cache_prune(cache, &everything, &pruned, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    cache = ks_cache(*state);
    assert_int_equal(explain(cache, &base).why, KILN_WHY_EVICTED);

    kernel other = base;
    other.option = "-O3";
    put(cache, &other);
    char *path = ks_only_entry(cache);
    kt_file_write(path, "damage", 6);
    free(path);
    kiln_cache_destroy(cache);
    cache = ks_cache(*state);
    kiln_recipe *recipe = recipe_of(&other);
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *blob = NULL;
    assert_int_equal(kiln_cache_get(cache, &key, &blob, NULL, NULL), KILN_MISS);
    assert_int_equal(explain(cache, &other).why, KILN_WHY_CORRUPT);
    told t = {0};
    assert_int_equal(kiln_cache_explain_key(cache, &key, keep, &t, NULL), KILN_OK);
    assert_int_equal(t.why, KILN_WHY_CORRUPT);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(misses_are_counted_by_reason)
{
    kiln_cache *cache = ks_cache(*state);
    ks_compile compile = {.fail = KILN_OK};
    kiln_prune_result pruned = {.struct_size = sizeof(pruned)};
    (void)ks_get(cache, "one", &compile);
    (void)ks_get(cache, "two", &compile);
    assert_int_equal(ks_own(cache).misses, 2);
    assert_int_equal(ks_own(cache).misses_evicted, 0);
    assert_int_equal(kiln_cache_clear(cache, &pruned, NULL), KILN_OK);
    (void)ks_get(cache, "one", &compile);
    assert_int_equal(ks_own(cache).misses, 3);
    assert_int_equal(ks_own(cache).misses_evicted, 1);
    char *path = ks_only_entry(cache);
    kt_file_write(path, "damage", 6);
    free(path);
    kiln_cache_destroy(cache);
    cache = ks_cache(*state);
    (void)ks_get(cache, "one", &compile);
    assert_int_equal(ks_own(cache).misses_corrupt, 1);
    assert_int_equal(ks_own(cache).misses_evicted, 0);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(an_entry_is_compared_with_its_nearest_other)
{
    kiln_cache *cache = ks_cache(*state);
    kernel other = base;
    other.driver = "535.2";
    put(cache, &base);
    put(cache, &other);
    kiln_recipe *recipe = recipe_of(&other);
    kiln_key key = kiln_recipe_key(recipe);
    told t = {0};
    assert_int_equal(kiln_cache_explain_key(cache, &key, keep, &t, NULL), KILN_OK);
    assert_int_equal(t.why, KILN_WHY_HIT);
    assert_string_equal(t.field, "my.driver");
    assert_string_equal(t.then, "\"535.1\"");
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(packs_are_looked_at)
{
    char *pack_path = kt_at(*state, "a.kpack"), *root = kt_at(*state, "user");
    kiln_pack_writer *writer = NULL;
    kiln_recipe *recipe = recipe_of(&base);
    kiln_blob *blob = ks_blob("bytes");
    kiln_key key = kiln_recipe_key(recipe);
    assert_int_equal(kiln_pack_writer_create(pack_path, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_blob(writer, recipe, blob, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    kiln_cache_options options = ks_options(root);
    options.packs = pack_path;
    kiln_cache *cache = ks_open(&options);
    assert_int_equal(explain(cache, &base).why, KILN_WHY_HIT);
    kernel other = base;
    other.driver = "535.2";
    told t = explain(cache, &other);
    assert_int_equal(t.why, KILN_WHY_DRIVER);
    bool there = false;
    kiln_cache_contains(cache, &key, 1, &there);
    assert_true(there);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(ten_thousand_keys_are_answered_without_counting)
{
    enum { COUNT = 10000 };
    kiln_cache *cache = ks_cache(*state);
    kiln_key *keys = calloc(COUNT, sizeof *keys);
    bool *there = calloc(COUNT, sizeof *there);
    char name[32];
    assert_non_null(keys);
    assert_non_null(there);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof name, "kernel %d", i);
        kiln_recipe *recipe = ks_recipe(name);
        keys[i] = kiln_recipe_key(recipe);
        if (i % 100 == 0) {
            kiln_blob *blob = ks_blob(name);
            assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
            kiln_blob_release(blob);
        }
        kiln_recipe_destroy(recipe);
    }
    kiln_cache_destroy(cache);
    cache = ks_cache(*state); /* on disk alone */
    clock_t start = clock();
    kiln_cache_contains(cache, keys, COUNT, there);
    print_message("%d keys in %.1f ms of processor time\n", COUNT,
                  1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(there[i], i % 100 == 0);
    }
    kt_counters stats = ks_own(cache);
    assert_int_equal(stats.misses + stats.hits_disk + stats.hits_memory + stats.compiles, 0);
    free(keys);
    free(there);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
