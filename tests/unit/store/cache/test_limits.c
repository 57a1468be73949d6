/* Bounds of the cache and who sets them: pins, memory pressure, age, the floor of free space, a
 * root that is exchanged, large stores, progress. */
#include "unit/store/support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "store/disk/disk.h"
#include "support/counters.h"
#include "support/suite.h"
#include "sys/clock.h"

typedef struct limits {
    uint64_t bytes, files, memory, age_s, min_free;
} limits;

static kiln_cache *open_with(const char *root, limits limit)
{
    kiln_cache_options options = ks_options(root);
    options.disk_max_bytes = limit.bytes;
    options.disk_max_files = limit.files;
    options.memory_max_bytes = limit.memory;
    options.disk_max_age_s = limit.age_s;
    options.disk_min_free = limit.min_free;
    return ks_open(&options);
}

static char *path_of(kiln_cache *cache, const char *name)
{
    char path[KN_DISK_PATH];
    kiln_key key = ks_key(name);
    kn_disk_entry_path(cache->disk, "test-target", &key, path);
    return strdup(path);
}

static void set_age(const char *path, int64_t seconds)
{
    struct timespec now, times[2];
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    times[0] = times[1] = (struct timespec){.tv_sec = now.tv_sec - seconds};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static const char *name_of(int n)
{
    static char name[16];
    (void)snprintf(name, sizeof name, "n%d", n);
    return name;
}

static kiln_status get(kiln_cache *cache, const char *name, kiln_origin *origin)
{
    kiln_blob *blob = NULL;
    kiln_key key = ks_key(name);
    kiln_status status = kiln_cache_get(cache, &key, &blob, origin, NULL);
    kiln_blob_release(blob);
    return status;
}

/* The log's lines that contain a text. */
typedef struct listener {
    const char *part;
    int lines;
    char last[512];
} listener;

static void listen(void *user, kiln_log_level level, const char *line)
{
    listener *l = user;
    if (level <= KILN_LOG_WARN && strstr(line, l->part) != NULL) {
        l->lines++;
        (void)snprintf(l->last, sizeof l->last, "%s", line);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

KT_TEST_IN_DIR(S1_trimming_frees_memory_and_leaves_disk_alone)
{
    ks_compile compile = {0};
    kiln_origin origin;
    uint64_t bytes, count;
    kiln_cache *cache = open_with(*state, (limits){0});
    for (int i = 0; i < 50; i++) {
        (void)ks_get(cache, name_of(i), &compile);
    }
    kn_mem_size(cache->stack.memory, &bytes, &count);
    assert_int_equal(count, 50);
    kiln_cache_trim(cache, bytes / 2);
    kn_mem_size(cache->stack.memory, &bytes, &count);
    assert_true(count > 0 && count <= 25);
    kiln_cache_trim(cache, 0);
    kn_mem_size(cache->stack.memory, &bytes, &count);
    assert_int_equal(count, 0);
    assert_int_equal(bytes, 0);
    assert_int_equal(get(cache, "n7", &origin), KILN_OK);
    assert_int_equal(origin, KILN_ORIGIN_DISK);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(pinned_entries_stay_in_memory)
{
    ks_compile compile = {0};
    kiln_origin origin;
    kiln_cache *cache = open_with(*state, (limits){0});
    kiln_key key = ks_key("n1"), none = ks_key("none");
    for (int i = 0; i < 10; i++) {
        (void)ks_get(cache, name_of(i), &compile);
    }
    assert_int_equal(kiln_cache_pin(cache, &none, NULL), KILN_MISS);
    assert_int_equal(kiln_cache_pin(cache, &key, NULL), KILN_OK);
    assert_int_equal(kiln_cache_pin(cache, &key, NULL), KILN_OK);
    kiln_cache_trim(cache, 0);
    assert_int_equal(get(cache, "n1", &origin), KILN_OK);
    assert_int_equal(origin, KILN_ORIGIN_MEMORY);
    assert_int_equal(get(cache, "n2", &origin), KILN_OK);
    assert_int_equal(origin, KILN_ORIGIN_DISK);
    kiln_cache_unpin(cache, &key); /* one of two */
    kiln_cache_trim(cache, 0);
    assert_int_equal(get(cache, "n1", &origin), KILN_OK);
    assert_int_equal(origin, KILN_ORIGIN_MEMORY);
    kiln_cache_unpin(cache, &key);
    kiln_cache_unpin(cache, &key); /* nothing left to unpin */
    kiln_cache_unpin(cache, &none);
    kiln_cache_trim(cache, 0);
    assert_int_equal(get(cache, "n1", &origin), KILN_OK);
    assert_int_equal(origin, KILN_ORIGIN_DISK);
    /* Pinning reads what only disk has, whatever its size. */
    kiln_cache_destroy(cache);
    cache = open_with(*state, (limits){.memory = 1});
    assert_int_equal(kiln_cache_pin(cache, &key, NULL), KILN_OK);
    assert_int_equal(get(cache, "n1", &origin), KILN_OK);
    assert_int_equal(origin, KILN_ORIGIN_MEMORY);
    /* Replacing keeps the pin, removing ends it. */
    kiln_recipe *recipe = ks_recipe("n1");
    kiln_blob *blob = ks_blob("n1");
    assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
    assert_true(kn_mem_is_pinned(cache->stack.memory, &key));
    assert_int_equal(kiln_cache_remove(cache, &key, NULL), KILN_OK);
    assert_false(kn_mem_is_pinned(cache->stack.memory, &key));
    assert_int_equal(get(cache, "n1", &origin), KILN_MISS);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

/* --- disk ------------------------------------------------------------------------------------- */

KT_TEST_IN_DIR(pinned_entries_stay_on_disk)
{
    ks_compile compile = {0};
    kiln_prune_result result = {.struct_size = sizeof(result)};
    kiln_cache *cache = open_with(*state, (limits){.bytes = 20 * KN_DISK_BLOCK});
    kiln_key key = ks_key("pinned");
    (void)ks_get(cache, "pinned", &compile);
    char *path = path_of(cache, "pinned");
    set_age(path, 86400); /* the very first to go */
    assert_int_equal(kiln_cache_pin(cache, &key, NULL), KILN_OK);
    for (int i = 0; i < 60; i++) {
        (void)ks_get(cache, name_of(i), &compile);
    }
    assert_true(ks_own(cache).evicted >= 40);
    assert_true(kt_file_exists(path));
    const kiln_prune_options all = {.struct_size = sizeof(all), .max_bytes = 0};
    assert_int_equal(kiln_cache_prune(cache, &all, &result, NULL), KILN_OK);
    assert_true(kt_file_exists(path));
    assert_int_equal(result.entries_seen - result.entries_removed, 1);
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK); /* this is meant */
    assert_false(kt_file_exists(path));
    assert_false(kn_mem_is_pinned(cache->stack.memory, &key));
    free(path);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S2_entries_hot_in_memory_keep_their_stamp)
{
    ks_compile compile = {0};
    kiln_key keys[8];
    struct stat facts;
    kiln_cache *cache = open_with(*state, (limits){0});
    (void)ks_get(cache, "hot", &compile);
    (void)ks_get(cache, "cold", &compile);
    char *hot = path_of(cache, "hot"), *cold = path_of(cache, "cold");
    set_age(hot, 7200);
    set_age(cold, 7200);
    assert_int_equal(ks_get(cache, "hot", &compile), KILN_ORIGIN_MEMORY);
    /* Nothing is due within the hour. */
    assert_int_equal(kn_mem_take_hot(cache->stack.memory, (uint64_t)KN_HOUR_NS, keys, 8), 0);
    /* What was hit since it was put is returned, once. */
    assert_int_equal(kn_mem_take_hot(cache->stack.memory, 0, keys, 8), 1);
    kn_disk_stamp(cache->disk, &keys[0]);
    assert_int_equal(kn_mem_take_hot(cache->stack.memory, 0, keys, 8), 0);
    assert_int_equal(stat(hot, &facts), 0);
    assert_true(facts.st_mtim.tv_sec > kn_clock_wall() / 1000000000 - 60);
    assert_int_equal(stat(cold, &facts), 0);
    assert_true(facts.st_mtim.tv_sec < kn_clock_wall() / 1000000000 - 7000);
    free(hot);
    free(cold);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S1_entries_go_when_they_are_too_old)
{
    ks_compile compile = {0};
    kiln_cache *cache = open_with(*state, (limits){0});
    (void)ks_get(cache, "old", &compile);
    (void)ks_get(cache, "new", &compile);
    char *old = path_of(cache, "old"), *new = path_of(cache, "new");
    char *stats = kt_at(*state, "stats");
    kiln_cache_destroy(cache);
    set_age(old, 40 * 86400);
    assert_int_equal(unlink(stats), 0); /* so that the next put counts afresh, as once a day */
    cache = open_with(*state, (limits){.age_s = UINT64_C(30) * 86400});
    (void)ks_get(cache, "newest", &compile);
    assert_false(kt_file_exists(old));
    assert_true(kt_file_exists(new));
    assert_int_equal(ks_own(cache).evicted, 1);
    free(old);
    free(new);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S1_S4_puts_leave_a_floor_of_free_space)
{
    ks_compile compile = {0};
    kiln_origin origin;
    listener log = {.part = "left free"};
    kiln_log_set(listen, &log, KILN_LOG_WARN);
    kiln_cache *cache = open_with(*state, (limits){.min_free = UINT64_C(1) << 60});
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ks_get(cache, name_of(i), &compile), KILN_ORIGIN_COMPILED);
    }
    assert_int_equal(ks_own(cache).put_failures, 5);
    assert_int_equal(log.lines, 1); /* one line */
    char *v1 = kt_at(*state, "v1");
    assert_int_equal(kt_file_count(v1), 0);
    assert_int_equal(get(cache, "n3", &origin), KILN_OK); /* memory has it */
    kiln_cache_destroy(cache);
    cache = open_with(*state, (limits){.min_free = UINT64_MAX});
    (void)ks_get(cache, "x", &compile);
    assert_int_equal(kt_file_count(v1), 1);
    kiln_cache_destroy(cache);
    kiln_log_set(NULL, NULL, KILN_LOG_WARN);
}

KT_TEST_IN_DIR(S1_a_cache_below_its_working_set_says_so_and_still_hits)
{
    enum { CAP = 40, KEYS = 60, ROUNDS = 12 };
    ks_compile compile = {0};
    listener log = {.part = "too small"};
    kiln_log_set(listen, &log, KILN_LOG_WARN);
    kiln_cache *cache =
        open_with(*state, (limits){.bytes = CAP * KN_DISK_BLOCK, .memory = 1, .min_free = 0});
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KEYS; i++) { /* in circles: the worst for least recently used */
            (void)ks_get(cache, name_of(i), &compile);
        }
    }
    assert_int_equal(log.lines, 1);
    assert_non_null(strstr(log.last, "KILN_CACHE_MAX_SIZE"));
    uint64_t hits = ks_own(cache).hits_disk;
    assert_true(hits * 10 >= (uint64_t)KEYS * (ROUNDS - 1) * 4); /* 40 %, not 0 */
    kiln_log_set(NULL, NULL, KILN_LOG_WARN);
    kiln_cache_destroy(cache);
}

/* Fills a target with entries by hand: what they hold does not matter to eviction. */
static void plant(const char *root, int count)
{
    char path[KN_DISK_PATH], bytes[64] = "";
    assert_int_equal(snprintf(path, sizeof path, "%s/v1", root) > 0, 1);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/v1/planted", root);
    (void)mkdir(path, 0700);
    for (int dir = 0; dir < 256; dir++) {
        (void)snprintf(path, sizeof path, "%s/v1/planted/%02x", root, dir);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/v1/planted/%02x/%062x.kiln", root, i % 256, i);
        kt_file_write(path, bytes, sizeof bytes);
        set_age(path, 7200 + i);
    }
}

KT_TEST_IN_DIR(S3_a_large_store_is_evicted_in_slices)
{
    enum { COUNT = 6000 };
    ks_compile compile = {0};
    kn_record record;
#ifdef _WIN32
    skip(); /* minutes under Wine */
#endif
    plant(*state, COUNT);
    kiln_cache *cache = open_with(*state, (limits){.files = COUNT + 5});
    for (int i = 0; i < 5; i++) {
        (void)ks_get(cache, name_of(i), &compile); /* the first one counts */
    }
    assert_int_equal(ks_own(cache).evicted, 0);
    (void)ks_get(cache, "one more", &compile);
    uint64_t evicted = ks_own(cache).evicted;
    assert_true(evicted >= 1 && evicted <= 30); /* from one directory of some twenty-four */
    for (int i = 100; i < 140; i++) {
        (void)ks_get(cache, name_of(i), &compile);
        assert_int_equal(kn_stats_flush(cache->stats, 0, &record, NULL), KILN_OK);
        assert_true(record.files <= COUNT + 5);
    }
    char *v1 = kt_at(*state, "v1");
    assert_int_equal(kt_file_count(v1), record.files);
    kiln_cache_destroy(cache);
}

/* --- the root is exchanged -------------------------------------------------------------------- */

KT_TEST_IN_DIR(S6_a_root_made_again_is_checked_again)
{
    ks_compile compile = {0};
    listener log = {.part = "-writable"};
    char *root = kt_at(*state, "root"), *aside = kt_at(*state, "aside");
    kiln_log_set(listen, &log, KILN_LOG_WARN);
    kiln_cache *cache = open_with(root, (limits){.memory = 1});
    (void)ks_get(cache, "x", &compile);
    assert_int_equal(rename(root, aside), 0);
    assert_int_equal(mkdir(root, 0700), 0);
    assert_int_equal(chmod(root, 0777), 0);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).put_failures, 1);
    assert_int_equal(log.lines, 1);
    char *v1 = kt_at(root, "v1");
    assert_false(kt_file_exists(v1));
    /* A link in its place is not followed. */
    assert_int_equal(kt_file_count(root), 0); /* nor was anything made in the stranger's */
    char command[2200];
    (void)snprintf(command, sizeof command, "rm -r '%s' && ln -s '%s' '%s'", root, aside, root);
    assert_int_equal(system(command), 0);
    assert_int_equal(ks_get(cache, "y", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).put_failures, 2);
    assert_int_equal(unlink(root), 0);
    assert_int_equal(ks_get(cache, "y", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_get(cache, "y", &compile), KILN_ORIGIN_DISK); /* made again, and ours */
    kiln_log_set(NULL, NULL, KILN_LOG_WARN);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S6_entries_of_another_user_are_not_read)
{
    ks_compile compile = {0};
    kiln_cache *cache = open_with(*state, (limits){.memory = 1});
    (void)ks_get(cache, "x", &compile);
    char *path = path_of(cache, "x");
    if (chown(path, 12345, (gid_t)-1) != 0) {
        free(path);
        kiln_cache_destroy(cache);
        skip(); /* only root can give files away */
    }
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).corrupt, 1);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    free(path);
    kiln_cache_destroy(cache);
}

/* --- progress --------------------------------------------------------------------------------- */

typedef struct progress {
    int calls;
    uint64_t done, total;
} progress;

static void count_calls(void *user, uint64_t done, uint64_t total)
{
    progress *p = user;
    assert_true(done <= total);
    p->calls++;
    p->done = done;
    p->total = total;
}

static kiln_status ignore(void *user, const kiln_entry_info *info)
{
    (void)user;
    (void)info;
    return KILN_OK;
}

KT_TEST_IN_DIR(long_work_tells_how_far_it_is)
{
    ks_compile compile = {0};
    progress told = {0};
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    kiln_prune_result result = {.struct_size = sizeof(result)};
    const kiln_prune_options none = {.struct_size = sizeof(none), .max_bytes = UINT64_MAX};
    kiln_cache *cache = open_with(*state, (limits){0});
    for (int i = 0; i < 40; i++) {
        (void)ks_get(cache, name_of(i), &compile);
    }
    kiln_cache_on_progress(cache, count_calls, &told);
    assert_int_equal(kiln_cache_walk(cache, NULL, ignore, NULL, NULL), KILN_OK);
    assert_true(told.calls >= 1 && told.done == 40 && told.total == 40);
    told = (progress){0};
    assert_int_equal(kiln_cache_verify(cache, false, &verified, NULL), KILN_OK);
    assert_true(told.calls >= 1 && told.done == 40 && told.total == 40);
    told = (progress){0};
    assert_int_equal(kiln_cache_prune(cache, &none, &result, NULL), KILN_OK);
    assert_true(told.calls >= 1 && told.done == 40);
    told = (progress){0};
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
    assert_true(told.calls >= 1 && told.done == 40);
    kiln_cache_on_progress(cache, NULL, NULL);
    told = (progress){0};
    assert_int_equal(kiln_cache_walk(cache, NULL, ignore, NULL, NULL), KILN_OK);
    assert_int_equal(told.calls, 0);
    kiln_cache_destroy(cache);
}

/* Any thread may put, and a caller that asked for reports of a walk does not expect them there. */
KT_TEST_IN_DIR(puts_that_make_room_tell_no_progress)
{
    ks_compile compile = {0};
    progress told = {0};
    kiln_cache *cache = open_with(*state, (limits){.files = 40});
    kiln_cache_on_progress(cache, count_calls, &told);
    for (int i = 0; i < 60; i++) {
        (void)ks_get(cache, name_of(i), &compile);
    }
    assert_true(ks_own(cache).evicted > 0);
    assert_int_equal(told.calls, 0);
    kiln_cache_destroy(cache);
}

#ifndef _WIN32 /* where files have no such limit */
#include <sys/resource.h>

/* A write past the limit would end this program by SIGXFSZ. */
KT_TEST_IN_DIR(S4_a_limit_on_the_size_of_files_kills_nobody)
{
    static const rlim_t bounds[] = {0, 100, 600, 4096, 16384, 300000};
    struct rlimit before;
    char name[20001];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const struct rlimit low = {.rlim_cur = bounds[i], .rlim_max = before.rlim_max};
        char dir[16];
        (void)snprintf(dir, sizeof dir, "limit%zu", i);
        char *root = kt_at(*state, dir);
        ks_compile compile = {0};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
        kiln_cache *cache = ks_cache(root);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
        assert_int_equal(ks_get(cache, "small", &compile), KILN_ORIGIN_COMPILED);
        const kt_counters own = ks_own(cache);
        kiln_cache_destroy(cache);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(own.puts, (bounds[i] > 500) + (bounds[i] > 30000));
        assert_int_equal(own.puts + own.put_failures, 2);
    }
}
#endif

KT_MAIN(NULL, NULL)
