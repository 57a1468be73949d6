/* What may lie where an entry should: directories, pipes, links, devices, zeros, and the entries of
 * a kiln that is not yet written. Nothing of it is an error, and nothing of it stays in the way. */
#include "support/counters.h"
#include "support/suite.h"
#include "unit/store/support.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/memory.h>

/* Each replaces the entry at `path`, whose size is `size`; false where that cannot be made here. */
static bool put_nothing(const char *path, size_t size)
{
    (void)size;
    kt_file_write(path, "", 0);
    return true;
}

static bool put_zeros(const char *path, size_t size)
{
    char *zeros = calloc(1, size);
    assert_non_null(zeros);
    kt_file_write(path, zeros, size);
    free(zeros);
    return true;
}

static bool put_dir(const char *path, size_t size)
{
    (void)size;
    return unlink(path) == 0 && mkdir(path, 0700) == 0;
}

static bool put_pipe(const char *path, size_t size)
{
    (void)size;
    return unlink(path) == 0 && mkfifo(path, 0600) == 0;
}

static bool put_dangling_link(const char *path, size_t size)
{
    (void)size;
    return unlink(path) == 0 && symlink("nowhere", path) == 0;
}

static bool put_link_to_itself(const char *path, size_t size)
{
    (void)size;
    return unlink(path) == 0 && symlink(path, path) == 0;
}

static bool put_link_to_a_device(const char *path, size_t size)
{
    (void)size;
    return unlink(path) == 0 && symlink("/dev/zero", path) == 0;
}

static bool put_device(const char *path, size_t size)
{
    (void)size;
    return unlink(path) == 0 && mknod(path, S_IFCHR | 0600, makedev(1, 5)) == 0;
}

typedef bool replace_fn(const char *path, size_t size);
static replace_fn *const junk[] = {
    put_nothing,          put_zeros, put_dir, put_pipe, put_dangling_link, put_link_to_itself,
    put_link_to_a_device, put_device};

static char *make_entry(const char *root, size_t *out_size)
{
    ks_compile compile = {0};
    struct stat facts;
    kiln_cache *cache = ks_cache(root);
    (void)ks_get(cache, "x", &compile);
    char *entry = ks_only_entry(cache);
    assert_int_equal(stat(entry, &facts), 0);
    *out_size = (size_t)facts.st_size;
    kiln_cache_destroy(cache);
    return entry;
}

KT_TEST_IN_DIR(D1_anything_in_an_entrys_place_is_a_miss_and_heals)
{
    size_t size;
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        ks_compile compile = {0};
        char *entry = make_entry(*state, &size);
        bool made = junk[i](entry, size);
        kiln_cache *cache = ks_cache(*state);
        assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
        assert_int_equal(ks_own(cache).corrupt, made ? 1 : 0);
        assert_int_equal(ks_own(cache).put_failures, 0);
        kiln_cache_destroy(cache);
        cache = ks_cache(*state);
        assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
        assert_int_equal(compile.runs, 1);
        kiln_cache_destroy(cache);
        free(entry);
    }
}

/* Who only puts asks for nothing before. */
KT_TEST_IN_DIR(D1_a_put_replaces_whatever_is_there)
{
    size_t size;
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        char *entry = make_entry(*state, &size);
        (void)junk[i](entry, size);
        kiln_recipe *recipe = ks_recipe("x");
        const kiln_key key = kiln_recipe_key(recipe);
        kiln_blob *blob = ks_blob("x");
        kiln_cache *cache = ks_cache(*state);
        assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
        kiln_cache_destroy(cache);
        kiln_blob_release(blob);
        blob = NULL;
        cache = ks_cache(*state);
        assert_int_equal(kiln_cache_get(cache, &key, &blob, NULL, NULL), KILN_OK);
        assert_int_equal(ks_own(cache).hits_disk, 1);
        kiln_cache_destroy(cache);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
        free(entry);
    }
}

/* Half a gigabyte of holes costs a look at its first bytes: no memory, and no time that a test
 * could tell from none. */
KT_TEST_IN_DIR(D1_a_large_file_of_junk_is_not_read)
{
    enum { LARGE = 512 << 20, LITTLE = 256 << 20 };
    ks_compile compile = {0};
    struct rusage usage;
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "x", &compile);
    char *entry = ks_only_entry(cache);
    kiln_cache_destroy(cache);
    kt_file_write(entry, "junk", 4);
    assert_int_equal(truncate(entry, LARGE), 0);
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    const long before = usage.ru_maxrss;
    cache = ks_cache(*state);
    assert_int_equal(kiln_cache_verify(cache, false, &verified, NULL), KILN_OK);
    assert_int_equal(verified.entries_bad, 1);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    assert_true(usage.ru_maxrss - before < LITTLE >> 10);
    assert_int_equal(ks_own(cache).corrupt, 1);
    kiln_cache_destroy(cache);
    cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    kiln_cache_destroy(cache);
    free(entry);
}

/* The directory of a target is held open where it is read often. Here it is exchanged: what is read
 * is the old, damaged file, and what lies in the entry's place by now is a good one. */
KT_TEST_IN_DIR(D1_a_good_entry_is_not_dropped_for_the_one_before_it)
{
    size_t size = 0;
    char *entry = make_entry(*state, &size);
    char *good = kt_file_read(entry, &size);
    char *dir = kt_at(*state, "v1/test-target"), *aside = kt_at(*state, "aside");
    char *old = kt_at(aside, entry + strlen(dir) + 1);
    ks_compile compile = {0};
    kiln_blob *blob = NULL;
    kiln_recipe *recipe = ks_recipe("x");
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_cache *cache = ks_cache(*state);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
        kiln_cache_trim(cache, 0);
    }
    assert_int_equal(rename(dir, aside), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
    *strrchr(entry, '/') = '\0';
    assert_int_equal(mkdir(entry, 0700), 0);
    entry[strlen(entry)] = '/';
    kt_file_write(entry, good, size);
    good[size / 2] ^= 1;
    kt_file_write(old, good, size);
    assert_int_equal(kiln_cache_get(cache, &key, &blob, NULL, NULL), KILN_MISS);
    assert_int_equal(ks_own(cache).corrupt, 1);
    assert_true(kt_file_exists(entry));
    kiln_cache_destroy(cache);
    kiln_recipe_destroy(recipe);
    free(good);
    free(entry);
}

/* A directory with something in it is nobody's to remove: the cache goes on without that entry. */
KT_TEST_IN_DIR(a_strangers_dir_in_an_entrys_place_stays)
{
    size_t size;
    ks_compile compile = {0};
    char *entry = make_entry(*state, &size);
    assert_true(put_dir(entry, size));
    char *kept = kt_at(entry, "kept");
    kt_file_write(kept, "mine", 4);
    for (int i = 1; i <= 2; i++) {
        kiln_cache *cache = ks_cache(*state);
        assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
        assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_MEMORY);
        assert_int_equal(compile.runs, i);
        kiln_cache_destroy(cache);
    }
    assert_true(kt_file_exists(kept));
    free(entry);
}

static kiln_status count_entry(void *user, const kiln_entry_info *info)
{
    (void)info;
    ++*(int *)user;
    return KILN_OK;
}

/* Without its totals a store would grow for ever. */
KT_TEST_IN_DIR(S1_junk_in_the_place_of_statistics_and_lock_goes)
{
    static const char *const places[] = {"stats", "lock"};
    enum { KINDS = sizeof junk / sizeof *junk };
    for (size_t i = 0; i < 2 * (KINDS + 1); i++) {
        ks_compile compile = {0};
        kt_counters total;
        char name[16];
        int count = 0;
        (void)snprintf(name, sizeof name, "root%zu", i);
        char *root = kt_at(*state, name), *place = kt_at(root, places[i % 2]);
        kiln_cache_options options = ks_options(root);
        options.disk_max_files = 20;
        kiln_cache *cache = ks_open(&options);
        kt_file_write(place, "x", 1);
        if (i / 2 < KINDS) {
            (void)junk[i / 2](place, 512);
        } else if (geteuid() == 0) { /* another user's */
            assert_int_equal(chown(place, 12345, 12345), 0);
        }
        for (int n = 0; n < 60; n++) {
            (void)snprintf(name, sizeof name, "n%d", n);
            (void)ks_get(cache, name, &compile);
        }
        assert_int_equal(kiln_cache_walk(cache, NULL, count_entry, &count, NULL), KILN_OK);
        assert_true(count <= 20);
        assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
        assert_int_equal(total.puts, 60);
        kiln_cache_destroy(cache);
    }
}

/* Two versions of kiln share a root: a later format lives next to `v1`, under whatever name, and
 * nothing that removes entries touches it. */
KT_TEST_IN_DIR(entries_of_another_format_are_left_alone)
{
    ks_compile compile = {0};
    kiln_prune_result removed = {.struct_size = sizeof(removed)};
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    static const char *const dirs[] = {"v2", "v2/test-target", "v2/test-target/ab"};
    char *other = kt_at(*state, "v2/test-target/ab/cd.kiln");
    kiln_cache_options options = ks_options(*state);
    options.disk_max_files = 4;
    kiln_cache *cache = ks_open(&options);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char *dir = kt_at(*state, dirs[i]);
        assert_int_equal(mkdir(dir, 0700), 0);
    }
    kt_file_write(other, "of tomorrow", 11);
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)ks_get(cache, name, &compile);
    }
    assert_true(ks_own(cache).evicted > 0);
    assert_int_equal(kiln_cache_verify(cache, true, &verified, NULL), KILN_OK);
    assert_int_equal(verified.entries_bad, 0);
    const kiln_prune_options all = {.struct_size = sizeof(all), .max_age_ns = 1};
    assert_int_equal(kiln_cache_prune(cache, &all, &removed, NULL), KILN_OK);
    assert_int_equal(kiln_cache_clear(cache, &removed, NULL), KILN_OK);
    assert_true(kt_file_exists(other));
    kiln_cache_destroy(cache);
}

/* Whatever the user's mask lets through. */
KT_TEST_IN_DIR(S6_no_mask_opens_the_cache_to_others)
{
    size_t size;
    struct stat facts;
    char *root = kt_at(*state, "root");
    mode_t mask = umask(0);
    char *entry = make_entry(root, &size);
    (void)umask(mask);
    assert_int_equal(stat(root, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_int_equal(stat(entry, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    *strrchr(entry, '/') = '\0';
    assert_int_equal(stat(entry, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    free(entry);
}

KT_MAIN(NULL, NULL)
