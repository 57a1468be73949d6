/* Clocks that are wrong, and entries that nobody can reach any more: neither stops anything, and
 * what is of no use goes first. */
#include "unit/store/support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "store/cache/cache.h"
#include "support/suite.h"
#include "sys/clock.h"

#define DAY_S (INT64_C(24) * 3600)

static void set_time(const char *path, int64_t offset_s)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = kn_clock_wall() / 1000000000 + offset_s}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Everything that has a time of its own is from another day; the holder of a lock is known by the
 * system and by no time or process number, so that nobody waits for one that is not there. */
static void live_with(const char *root, int64_t offset_s)
{
    static const char *const names[] = {"lock", "stats", "tmp/1-2-0123456789abcdef"};
    ks_compile compile = {0};
    kn_record record;
    kiln_cache *cache = ks_cache(root);
    (void)ks_get(cache, "a", &compile);
    char *entry = ks_only_entry(cache);
    kn_stats_moved(cache->stats, &(kn_totals){.counted_ns = kn_clock_wall() + offset_s * 1000000000,
                                              .swept_ns = kn_clock_wall() + offset_s * 1000000000});
    kiln_cache_destroy(cache);
    char *half = kt_at(root, "tmp/1-2-0123456789abcdef");
    kt_file_write(half, "half", 4);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = kt_at(root, names[i]);
        set_time(path, offset_s);
    }
    set_time(entry, offset_s);

    cache = ks_cache(root);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_DISK);
    assert_int_equal(ks_get(cache, "b", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).wait_timeouts, 0);
    assert_int_equal(ks_own(cache).put_failures, 0);
    assert_int_equal(kn_stats_read(cache->stats, &record, NULL), KILN_OK);
    assert_int_equal(record.files, 2);
    kiln_prune_result pruned = {.struct_size = sizeof(pruned)};
    assert_int_equal(
        kiln_cache_prune(cache, &(kiln_prune_options){.struct_size = sizeof(kiln_prune_options)},
                         &pruned, NULL),
        KILN_OK);
    assert_int_equal(pruned.entries_removed, 2); /* none is immortal */
    kiln_cache_destroy(cache);
    (void)remove(half);
    free(entry);
}

KT_TEST_IN_DIR(C4_S1_clocks_days_apart_stop_nothing)
{
    static const int64_t offsets[] = {-DAY_S, DAY_S, -400 * DAY_S, 400 * DAY_S};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        char *root = kt_at(*state, (const char *[]){"a", "b", "c", "d"}[i]);
        live_with(root, offsets[i]);
    }
}

static kiln_recipe *with_driver(const char *kernel, const char *driver)
{
    kiln_recipe *recipe = ks_recipe(kernel);
    kiln_recipe_add_text(recipe, "test.driver", driver, strlen(driver));
    return recipe;
}

static kiln_origin get(kiln_cache *cache, const char *kernel, const char *driver)
{
    ks_compile compile = {.text = kernel};
    kiln_recipe *recipe = with_driver(kernel, driver);
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    assert_int_equal(
        kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob, &origin, NULL),
        KILN_OK);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return origin;
}

static void age_all(kiln_cache *cache, const char *driver, int kernels)
{
    for (int i = 0; i < kernels; i++) {
        char name[16], path[KN_DISK_PATH];
        (void)snprintf(name, sizeof name, "k%d", i);
        kiln_recipe *recipe = with_driver(name, driver);
        const kiln_key key = kiln_recipe_key(recipe);
        kn_disk_entry_path(cache->disk, "test-target", &key, path);
        set_time(path, -2 * DAY_S);
        kiln_recipe_destroy(recipe);
    }
}

/* A driver is replaced: nobody asks for its binaries any more, and they make the room. */
KT_TEST_IN_DIR(S1_what_a_replaced_driver_left_goes_first)
{
    enum { KERNELS = 10 };
    kiln_cache_options options = ks_options(*state);
    options.disk_max_files = 2 * KERNELS;
    options.memory_max_bytes = 1; /* every request reaches the disk */
    kiln_cache *cache = ks_open(&options);
    for (int i = 0; i < KERNELS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "k%d", i);
        (void)get(cache, name, "old");
    }
    age_all(cache, "old", KERNELS);
    for (int i = 0; i < KERNELS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(get(cache, name, "new"), KILN_ORIGIN_COMPILED);
    }
    assert_int_equal(ks_own(cache).misses_driver, KERNELS);
    for (int i = 0; i < KERNELS / 2; i++) { /* over the cap */
        char name[16];
        (void)snprintf(name, sizeof name, "more%d", i);
        (void)get(cache, name, "new");
    }
    assert_true(ks_own(cache).evicted >= KERNELS / 2);
    for (int i = 0; i < KERNELS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(get(cache, name, "new"), KILN_ORIGIN_DISK);
    }
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
