/* The disk tier through the public cache: damage, bounds, stamps, walking. */
#include "unit/store/support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "store/disk/disk.h"
#include "support/suite.h"

static void age(const char *path, int64_t seconds)
{
    struct timespec now, times[2];
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    times[0] = times[1] = (struct timespec){.tv_sec = now.tv_sec - seconds};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int64_t mtime(const char *path)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return facts.st_mtim.tv_sec;
}

/* Writes `size` bytes as the only entry's file; the next request must compile, count the damage,
 * and leave a whole entry. */
static void expect_rebuilt(const char *root, const char *entry, const char *bytes, size_t size)
{
    ks_compile compile = {0};
    kt_file_write(entry, bytes, size);
    kiln_cache *cache = ks_cache(root);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).corrupt, 1);
    assert_int_equal(compile.runs, 1);
    kiln_cache_destroy(cache);
    cache = ks_cache(root);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(D1_a_damaged_entry_is_dropped_and_rebuilt)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    char *entry = ks_only_entry(cache);
    kiln_cache_destroy(cache);
    size_t size;
    char *good = kt_file_read(entry, &size), *bad = malloc(size + 8);
    assert_non_null(bad);
    for (size_t at = 0; at < size; at += 5) {
        memcpy(bad, good, size);
        bad[at] ^= 0x10;
        expect_rebuilt(*state, entry, bad, size);
    }
    for (size_t cut = 0; cut < size; cut += 7) {
        expect_rebuilt(*state, entry, good, cut);
    }
    memset(bad, 0, size + 8);
    expect_rebuilt(*state, entry, bad, size); /* D2: power loss left zeros */
    free(good);
    free(bad);
    free(entry);
}

KT_TEST_IN_DIR(D1_a_damaged_entry_is_removed_by_a_lookup)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    char *entry = ks_only_entry(cache);
    kiln_cache_destroy(cache);
    kt_file_write(entry, "short", 5);

    kiln_recipe *recipe = ks_recipe("x");
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *blob = NULL;
    cache = ks_cache_with(*state, KILN_CACHE_READONLY);
    assert_int_equal(kiln_cache_get(cache, &key, &blob, NULL, NULL), KILN_MISS);
    assert_true(kt_file_exists(entry)); /* read-only means that */
    kiln_cache_destroy(cache);
    cache = ks_cache(*state);
    assert_int_equal(kiln_cache_get(cache, &key, &blob, NULL, NULL), KILN_MISS);
    assert_false(kt_file_exists(entry));
    assert_int_equal(ks_own(cache).corrupt, 1);
    kiln_cache_destroy(cache);

    /* A link in an entry's place is not followed. */
    assert_int_equal(symlink("/etc/passwd", entry), 0);
    cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).corrupt, 1);
    kiln_cache_destroy(cache);
    kiln_recipe_destroy(recipe);
    free(entry);
}

KT_TEST_IN_DIR(S6_files_are_private)
{
    ks_compile compile = {0};
    struct stat facts;
#ifdef _WIN32
    skip(); /* there are no such bits; tests/windows/test_places.c */
#endif
    char *root = kt_at(*state, "root"), *tag = kt_at(root, "CACHEDIR.TAG");
    kiln_cache *cache = ks_cache(root);
    (void)ks_get(cache, "x", &compile);
    char *entry = ks_only_entry(cache);
    assert_int_equal(stat(root, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_int_equal(stat(entry, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    char *text = kt_file_read(tag, NULL);
    assert_non_null(text);
    assert_memory_equal(text, "Signature: 8a477f597d28d172789f06886806bc55", 43);
    free(text);
    free(entry);
    kiln_cache_destroy(cache);
}

/* --- bounds ----------------------------------------------------------------------------------- */

static kiln_cache *small_cache(const char *root, uint64_t bytes, uint64_t files)
{
    kiln_cache_options options = ks_options(root);
    options.disk_max_bytes = bytes;
    options.disk_max_files = files;
    options.memory_max_bytes = 1; /* nothing stays in memory: disk answers */
    return ks_open(&options);
}

static kiln_status add_up(void *user, const kiln_entry_info *info)
{
    uint64_t *sums = user;
    sums[0]++;
    sums[1] += kn_disk_weight(info->stored_size);
    return KILN_OK;
}

KT_TEST_IN_DIR(S1_disk_is_bounded_by_bytes)
{
    ks_compile compile = {0};
    const uint64_t cap = 50 * KN_DISK_BLOCK;
    kiln_cache *cache = small_cache(*state, cap, 100000);
    for (int i = 0; i < 200; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
        uint64_t sums[2] = {0, 0};
        assert_int_equal(kiln_cache_walk(cache, NULL, add_up, sums, NULL), KILN_OK);
        assert_true(sums[1] <= cap + KN_DISK_BLOCK);
    }
    assert_true(ks_own(cache).evicted >= 150);
    assert_int_equal(ks_get(cache, "n199", &compile), KILN_ORIGIN_DISK);
    /* S3: about 200 / 5 evictions of 5 or 6 each, not one a put. */
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S1_disk_is_bounded_by_files)
{
    ks_compile compile = {0};
    kiln_cache *cache = small_cache(*state, UINT64_C(1) << 30, 20);
    for (int i = 0; i < 60; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)ks_get(cache, name, &compile);
    }
    char *v1 = kt_at(*state, "v1");
    assert_true(kt_file_count(v1) <= 21);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S2_the_least_recently_used_goes_first)
{
    ks_compile compile = {0};
    kiln_cache *cache = small_cache(*state, UINT64_C(1) << 30, 100000);
    char names[20][16];
    for (int i = 0; i < 20; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        (void)ks_get(cache, names[i], &compile);
    }
    /* All look two hours old; a hit stamps the one it is for. */
    for (int i = 0; i < 20; i++) {
        kiln_recipe *recipe = ks_recipe(names[i]);
        kiln_key key = kiln_recipe_key(recipe);
        char path[KN_DISK_PATH];
        kn_disk_entry_path(cache->disk, "test-target", &key, path);
        age(path, 7200 + 60 * (20 - i));
        kiln_recipe_destroy(recipe);
    }
    assert_int_equal(ks_get(cache, names[0], &compile), KILN_ORIGIN_DISK);
    kiln_prune_result result = {.struct_size = sizeof(result)};
    const kiln_prune_options options = {.struct_size = sizeof(options),
                                        .max_bytes = 5 * KN_DISK_BLOCK};
    assert_int_equal(kiln_cache_prune(cache, &options, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_seen, 20);
    assert_int_equal(result.entries_removed, 15);
    assert_int_equal(ks_get(cache, names[0], &compile), KILN_ORIGIN_DISK);
    for (int i = 16; i < 20; i++) {
        assert_int_equal(ks_get(cache, names[i], &compile), KILN_ORIGIN_DISK);
    }
    assert_int_equal(ks_get(cache, names[15], &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S2_a_stamp_moves_at_most_once_an_hour)
{
    ks_compile compile = {0};
    kiln_cache *cache = small_cache(*state, UINT64_C(1) << 30, 1000);
    (void)ks_get(cache, "x", &compile);
    char *entry = ks_only_entry(cache);
    age(entry, 3000);
    int64_t before = mtime(entry);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    assert_int_equal(mtime(entry), before);
    age(entry, 4000);
    before = mtime(entry);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    assert_true(mtime(entry) >= before + 3900);
    age(entry, -100000); /* from the future */
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    assert_true(mtime(entry) < before + 50000);
    free(entry);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(prune_by_age_and_target)
{
    ks_compile compile = {0};
    kiln_cache *cache = small_cache(*state, UINT64_C(1) << 30, 1000);
    (void)ks_get(cache, "x", &compile);
    char *entry = ks_only_entry(cache);
    (void)ks_get(cache, "y", &compile);
    age(entry, 86400);
    kiln_prune_result result = {.struct_size = sizeof(result)};
    kiln_prune_options options = {.struct_size = sizeof(options),
                                  .max_age_ns = UINT64_C(3600000000000),
                                  .max_bytes = UINT64_MAX,
                                  .target = "other"};
    assert_int_equal(kiln_cache_prune(cache, &options, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_seen, 0);
    options.target = "test-target";
    assert_int_equal(kiln_cache_prune(cache, &options, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_seen, 2);
    assert_int_equal(result.entries_removed, 1);
    assert_false(kt_file_exists(entry));
    options.max_age_ns = 0; /* any age */
    assert_int_equal(kiln_cache_prune(cache, &options, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_removed, 0);
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_removed, 1);
    char *target = kt_at(*state, "v1/test-target");
    assert_false(kt_file_exists(target));
    assert_int_equal(ks_get(cache, "y", &compile),
                     KILN_ORIGIN_COMPILED); /* directories come back */
    free(entry);
    kiln_cache_destroy(cache);
}

#define KEY_NAME "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

KT_TEST_IN_DIR(clear_takes_precompiled_headers_along)
{
    ks_compile compile = {0};
    kiln_prune_result result = {.struct_size = sizeof(result)};
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "x", &compile);
    char *dir = kt_at(*state, "pch");
    char *made = kt_at(*state, "pch/" KEY_NAME "-01234567.pch");
    assert_int_equal(mkdir(dir, 0700), 0);
    FILE *file = fopen(made, "w");
    assert_non_null(file);
    assert_int_equal(fputs("precompiled", file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_removed, 1);
    assert_int_equal(result.temporaries_removed, 1);
    assert_false(kt_file_exists(dir));
    assert_int_equal(kiln_cache_clear(cache, &result, NULL),
                     KILN_OK); /* and where there are none */
    assert_int_equal(result.temporaries_removed, 0);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(C7_eviction_leaves_open_readers_whole)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("x");
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *held = NULL;
    (void)ks_get(cache, "x", &compile);
    char *entry = ks_only_entry(cache);
    assert_int_equal(kiln_cache_get(cache, &key, &held, NULL, NULL), KILN_OK);
    int fd = open(entry, O_RDONLY);
    assert_true(fd >= 0);
    kiln_prune_result result = {.struct_size = sizeof(result)};
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
#ifndef _WIN32 /* where Wine, unlike Windows 10, keeps the name until the last handle is closed */
    assert_false(kt_file_exists(entry));
#endif
    char header[8];
    assert_int_equal(read(fd, header, sizeof header), 8);
    assert_int_equal((unsigned char)header[0], 0x89);
    assert_memory_equal(kiln_blob_data(held), "x", 1);
    assert_int_equal(close(fd), 0);
    kiln_blob_release(held);
    kiln_recipe_destroy(recipe);
    free(entry);
    kiln_cache_destroy(cache);
}

/* Who makes a directory of his own the cache has files there already, however old. */
KT_TEST_IN_DIR(files_of_others_in_the_root_are_left_alone)
{
    static const char *const dirs[] = {"tmp", "pch", "v1", "v1/any"};
    static const char *const files[] = {
        "thesis.txt", "tmp/thesis.txt", "tmp/1-2-half", "tmp/12-34.log", "tmp/a-b-c",
        "pch/all.h",  "pch/0123.pch",   "v1/notes",     "v1/any/x.kiln", "tmp/0123456789abcdef"};
    enum { FILES = sizeof files / sizeof *files };
    ks_compile compile = {0};
    kiln_prune_result result = {.struct_size = sizeof(result)};
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char *dir = kt_at(*state, dirs[i]);
        assert_int_equal(mkdir(dir, 0700), 0);
    }
    for (size_t i = 0; i < FILES; i++) {
        char *path = kt_at(*state, files[i]);
        kt_file_write(path, "mine", 4);
        age(path, 1000000);
    }
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "x", &compile);
    assert_int_equal(kiln_cache_verify(cache, true, &verified, NULL), KILN_OK);
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    char *tag = kt_at(*state, "CACHEDIR.TAG"); /* backup programs would leave all of it out */
    assert_false(kt_file_exists(tag));
    for (size_t i = 0; i < FILES; i++) {
        char *path = kt_at(*state, files[i]);
        if (!kt_file_exists(path)) {
            fail_msg("%s is gone", files[i]);
        }
    }
}

KT_TEST_IN_DIR(S3_totals_follow_what_is_there)
{
    ks_compile compile = {0};
    kn_record record;
    kiln_cache *cache = ks_cache(*state);
    for (int i = 0; i < 10; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)ks_get(cache, name, &compile);
    }
    kiln_recipe *recipe = ks_recipe("n3");
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *blob = ks_blob("n3");
    assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK); /* replaced: no more */
    assert_int_equal(kn_stats_flush(cache->stats, 0, &record, NULL), KILN_OK);
    assert_int_equal(record.files, 10);
    assert_int_equal(record.bytes, 10 * KN_DISK_BLOCK);
    assert_int_equal(kiln_cache_remove(cache, &key, NULL), KILN_OK);
    assert_int_equal(kn_stats_flush(cache->stats, 0, &record, NULL), KILN_OK);
    assert_int_equal(record.files, 9);
    assert_int_equal(record.bytes, 9 * KN_DISK_BLOCK);
    /* The statistics were removed: the next put counts. */
    char *stats = kt_at(*state, "stats");
    assert_int_equal(unlink(stats), 0);
    (void)ks_get(cache, "more", &compile);
    assert_int_equal(kn_stats_read(cache->stats, &record, NULL), KILN_OK);
    assert_int_equal(record.files, 10);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(the_root_may_be_removed_under_a_running_program)
{
    ks_compile compile = {0};
    char *root = kt_at(*state, "root"), command[1100];
    kiln_cache *cache = small_cache(root, UINT64_C(1) << 30, 1000);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
        assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
        (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
        assert_int_equal(system(command), 0);
    }
    kiln_cache_destroy(cache);
}

/* --- looking ---------------------------------------------------------------------------------- */

static kiln_status check_info(void *user, const kiln_entry_info *info)
{
    int *seen = user;
    (*seen)++;
    assert_string_equal(info->target, "test-target");
    assert_non_null(strstr(info->recipe, "text text \"x\"\n"));
    assert_int_equal(info->payload_size, 1);
    assert_int_equal(info->facts_size, 5);
    assert_true(info->created_ns > INT64_C(1600000000000000000));
    assert_true(info->used_ns > INT64_C(1600000000000000000));
    assert_true(info->compile_ns > 0);
    assert_non_null(info->kiln_version);
    return KILN_E_CANCELLED;
}

KT_TEST_IN_DIR(inspect_and_verify)
{
    ks_compile compile = {0};
    int seen = 0;
    kiln_cache *cache = small_cache(*state, UINT64_C(1) << 30, 1000);
    kiln_recipe *recipe = ks_recipe("x");
    kiln_key key = kiln_recipe_key(recipe), none = key;
    none.bytes[0] ^= 1;
    (void)ks_get(cache, "x", &compile);
    char *entry = ks_only_entry(cache);
    (void)ks_get(cache, "y", &compile);
    assert_int_equal(kiln_cache_inspect(cache, &key, check_info, &seen, NULL), KILN_E_CANCELLED);
    assert_int_equal(kiln_cache_inspect(cache, &none, check_info, &seen, NULL), KILN_MISS);
    assert_int_equal(seen, 1);

    kiln_verify_result result = {.struct_size = sizeof(result)};
    assert_int_equal(kiln_cache_verify(cache, false, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_good, 2);
    assert_int_equal(result.entries_bad, 0);
    kt_file_write(entry, "bad", 3);
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_cache_inspect(cache, &key, check_info, &seen, &diag), KILN_E_CORRUPT);
    assert_true(diag.why[0] != '\0');
    kiln_diag_clear(&diag);
    assert_true(kt_file_exists(entry));
    assert_int_equal(kiln_cache_verify(cache, false, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_good, 1);
    assert_int_equal(result.entries_bad, 1);
    assert_true(kt_file_exists(entry));
    assert_int_equal(kiln_cache_verify(cache, true, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_bad, 1);
    assert_false(kt_file_exists(entry));
    free(entry);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(strangers_files_are_left_alone)
{
    ks_compile compile = {0};
    kiln_cache *cache = small_cache(*state, UINT64_C(1) << 30, 1000);
    (void)ks_get(cache, "x", &compile);
    const char *strange[] = {"v1/README", "v1/test-target/notes", "v1/test-target/zz"};
    for (size_t i = 0; i < 3; i++) {
        char *path = kt_at(*state, strange[i]);
        kt_file_write(path, "mine", 4);
    }
    uint64_t sums[2] = {0, 0};
    assert_int_equal(kiln_cache_walk(cache, NULL, add_up, sums, NULL), KILN_OK);
    assert_int_equal(sums[0], 1);
    kiln_prune_result result = {.struct_size = sizeof(result)};
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
    for (size_t i = 0; i < 3; i++) {
        char *path = kt_at(*state, strange[i]);
        assert_true(kt_file_exists(path));
    }
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
