/* What is due once a day: that it is done in parallel with the puts, by one process, and ends with
 * the cache.
 */
#include "unit/store/support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "store/cache/cache.h"
#include "support/suite.h"
#include "sys/clock.h"
#include "sys/lock.h"

#define DAY_NS (24 * KN_HOUR_NS)

/* Wrong totals that were last counted two days ago, with two entries there. */
static void make_due(const char *root)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(root);
    (void)ks_get(cache, "a", &compile);
    (void)ks_get(cache, "b", &compile);
    kn_stats_moved(
        cache->stats,
        &(kn_totals){.files = 7, .bytes = 70000, .counted_ns = kn_clock_wall() - 2 * DAY_NS});
    kiln_cache_destroy(cache);
}

static kiln_cache *open_patient(const char *root, uint64_t max_age_s)
{
    kiln_cache_options options = ks_options(root);
    options.disk_max_age_s = max_age_s;
    kiln_cache *cache = ks_open(&options);
    cache->disk->janitor.grace_ns = UINT64_MAX; /* closing waits until it is done */
    return cache;
}

static kn_record record_of(const char *root)
{
    kn_record record;
    kiln_cache *cache = ks_cache(root);
    assert_int_equal(kn_stats_read(cache->stats, &record, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    return record;
}

KT_TEST_IN_DIR(S3_a_days_count_is_taken_beside_the_puts)
{
    ks_compile compile = {0};
    make_due(*state);
    assert_int_equal(record_of(*state).files, 9);
    kiln_cache *cache = open_patient(*state, 0);
    (void)ks_get(cache, "c", &compile);
    kiln_cache_destroy(cache);
    const kn_record record = record_of(*state);
    assert_int_equal(record.files, 3);
    assert_int_equal(record.bytes, 3 * 4096);
    assert_true(record.counted_ns > kn_clock_wall() - DAY_NS);
}

KT_TEST_IN_DIR(S1_what_is_too_old_goes_with_it)
{
    ks_compile compile = {0};
    make_due(*state);
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("a");
    const kiln_key key = kiln_recipe_key(recipe);
    char path[KN_DISK_PATH];
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = 1000000000}};
    kn_disk_entry_path(cache->disk, "test-target", &key, path);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    kiln_cache_destroy(cache);
    cache = open_patient(*state, 1000000);
    (void)ks_get(cache, "c", &compile);
    kiln_cache_destroy(cache);
    assert_false(kt_file_exists(path));
    assert_int_equal(record_of(*state).files, 2);
    cache = ks_cache(*state); /* and is known to have been there */
    (void)ks_get(cache, "a", &compile);
    assert_int_equal(ks_own(cache).misses_evicted, 1);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

typedef struct interruption {
    kn_disk *disk;
    int asked;
} interruption;

/* Asked before each removal: after the third the cache closes. */
static bool stop_after_three(void *user, const kiln_key *key)
{
    interruption *in = user;
    (void)key;
    if (++in->asked == 3) {
        atomic_store(&in->disk->janitor.stop, true);
    }
    return false;
}

KT_TEST_IN_DIR(S1_a_janitor_that_is_stopped_accounts_for_what_it_removed)
{
    ks_compile compile = {0};
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = 1000000000}};
    kiln_cache *cache = ks_cache(*state);
    for (int i = 0; i < 8; i++) {
        char name[16], path[KN_DISK_PATH];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)ks_get(cache, name, &compile);
        kiln_recipe *recipe = ks_recipe(name);
        const kiln_key key = kiln_recipe_key(recipe);
        kn_disk_entry_path(cache->disk, "test-target", &key, path);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        kiln_recipe_destroy(recipe);
    }
    kn_stats_moved(cache->stats, &(kn_totals){.counted_ns = kn_clock_wall() - 2 * DAY_NS});
    kiln_cache_destroy(cache);
    cache = open_patient(*state, 1000000);
    interruption in = {.disk = cache->disk};
    cache->disk->is_pinned = stop_after_three;
    cache->disk->pinned_user = &in;
    (void)ks_get(cache, "new", &compile);
    kiln_cache_destroy(cache);
    assert_int_equal(in.asked, 3);
    assert_int_equal(record_of(*state).files, 6);
    assert_int_equal(record_of(*state).bytes, 6 * 4096);
    assert_int_equal(record_of(*state).counters[KN_COUNT_evicted], 3);
}

KT_TEST_IN_DIR(S3_one_process_counts_and_others_leave_it_to_that)
{
    ks_compile compile = {0};
    kn_lock_file *lock = NULL;
    make_due(*state);
    char *path = kt_at(*state, "lock");
    assert_int_equal(kn_lock_file_open(path, &lock, NULL), KILN_OK);
    const bool locks = kn_lock_try(lock, KN_LOCK_COUNT) == KILN_OK;
    kiln_cache *cache = open_patient(*state, 0);
    (void)ks_get(cache, "c", &compile);
    kiln_cache_destroy(cache);
    assert_int_equal(record_of(*state).files, locks ? 10 : 3);
    kn_lock_drop(lock, KN_LOCK_COUNT);
    kn_lock_file_close(lock);
}

/* Without patience the count is given up, or was quick: either way the cache closes and the totals
 * are not too low. */
KT_TEST_IN_DIR(S3_closing_waits_for_no_count)
{
    ks_compile compile = {0};
    make_due(*state);
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        kiln_cache *cache = ks_cache(*state);
        cache->disk->janitor.grace_ns = 0;
        (void)ks_get(cache, name, &compile);
        kiln_cache_destroy(cache);
        assert_true(record_of(*state).files >= (uint64_t)i + 3);
    }
}

/* After a week without a count a put takes it upon itself. */
KT_TEST_IN_DIR(S3_what_is_long_overdue_is_done_at_once)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "a", &compile);
    kn_stats_moved(cache->stats,
                   &(kn_totals){.files = 7, .counted_ns = kn_clock_wall() - 8 * DAY_NS});
    (void)ks_get(cache, "b", &compile);
    assert_null(cache->disk->janitor.thread);
    assert_int_equal(record_of(*state).files, 2);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
