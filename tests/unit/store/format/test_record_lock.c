/* A process that stands still with the record of statistics: nobody waits for it, nothing of the
 * others is lost, and the cap holds. */
#include "unit/store/support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "store/format/record_lock.h"
#include "support/counters.h"
#include "support/suite.h"
#include "sys/clock.h"

#define MS UINT64_C(1000000)
enum { PUTS = 60, FEW = 20 };

static kiln_cache *open_small(const char *root, uint64_t max_files)
{
    kiln_cache_options options = ks_options(root);
    options.disk_max_files = max_files;
    return ks_open(&options);
}

/* A process that takes a byte and is stopped. */
static pid_t start_sleeper(const char *path, uint64_t byte)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        kn_lock_file *lock = NULL;
        const bool held = kn_record_lock(path, byte, 0, &lock) == KILN_OK;
        (void)raise(SIGSTOP);
        /* Long after: it has been passed over. */
        _exit(held && !kn_record_is_locked(lock, path) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    return child;
}

static void wake(pid_t child)
{
    int status = 1;
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static kiln_status count_entry(void *user, const kiln_entry_info *info)
{
    (void)info;
    ++*(uint64_t *)user;
    return KILN_OK;
}

static uint64_t count_entries(kiln_cache *cache)
{
    uint64_t count = 0;
    assert_int_equal(kiln_cache_walk(cache, NULL, count_entry, &count, NULL), KILN_OK);
    return count;
}

static void fill(kiln_cache *cache, const char *prefix)
{
    ks_compile compile = {0};
    for (int i = 0; i < PUTS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%s%d", prefix, i);
        (void)ks_get(cache, name, &compile);
    }
}

static kn_record read_record(kiln_cache *cache)
{
    kn_record record;
    assert_int_equal(kn_stats_read(cache->stats, &record, NULL), KILN_OK);
    return record;
}

/* TORTURE D7, byte 1: 41 ms a put, and the totals given up at the end. */
KT_TEST_IN_DIR(D7_a_writer_that_stands_still_loses_nothing)
{
    char *path = kt_at(*state, "stats");
    kiln_cache *cache = ks_cache(*state);
    fill(cache, "a");
    const pid_t sleeper = start_sleeper(path, KN_RECORD_STATS);
    fill(cache, "b");
    const kn_record record = read_record(cache); /* while it stands still */
    assert_int_equal(record.counters[KN_COUNT_puts], 2 * PUTS);
    assert_int_equal(record.files, 2 * PUTS);
    assert_int_not_equal(record.copied[0], 0); /* it was passed over */
    wake(sleeper);
    kiln_cache_destroy(cache);
}

/* Byte 0: 250 ms a put, and nothing evicted. */
KT_TEST_IN_DIR(D7_an_evictor_that_stands_still_suspends_no_cap)
{
    char *path = kt_at(*state, "stats");
    kiln_cache *cache = open_small(*state, FEW);
    fill(cache, "a");
    const pid_t sleeper = start_sleeper(path, KN_RECORD_EVICT);
    fill(cache, "b");
    assert_true(count_entries(cache) <= FEW);
    assert_true(read_record(cache).files >= count_entries(cache));
    wake(sleeper);
    kiln_cache_destroy(cache);
}

/* Both at once, and the one who was to put it right stands still, too. */
KT_TEST_IN_DIR(D7_several_that_stand_still_are_passed_over)
{
    char *path = kt_at(*state, "stats");
    kiln_cache *cache = open_small(*state, FEW);
    fill(cache, "a");
    const pid_t sleepers[] = {
        start_sleeper(path, KN_RECORD_EVICT), start_sleeper(path, KN_RECORD_STATS),
        start_sleeper(path, KN_RECORD_REPLACE), start_sleeper(path, KN_RECORD_REPLACE + 1)};
    fill(cache, "b");
    assert_true(count_entries(cache) <= FEW);
    assert_int_equal(read_record(cache).counters[KN_COUNT_puts], 2 * PUTS);
    for (size_t i = 0; i < sizeof sleepers / sizeof *sleepers; i++) {
        wake(sleepers[i]);
    }
    kiln_cache_destroy(cache);
}

/* Where the file cannot be replaced, what could not be added waits for the next one. */
KT_TEST_IN_DIR(what_cannot_be_added_stays_pending)
{
    char *path = kt_at(*state, "stats"), *tmp = kt_at(*state, "tmp");
    ks_compile compile = {0};
    kt_counters total;
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "w", &compile);
    const pid_t sleeper = start_sleeper(path, KN_RECORD_STATS);
    assert_int_equal(rmdir(tmp), 0);
    kt_file_write(tmp, "x", 1);
    (void)ks_get(cache, "x", &compile);
    assert_int_equal(read_record(cache).counters[KN_COUNT_compiles], 1);
    assert_int_equal(kill(sleeper, SIGKILL), 0);
    assert_int_equal(waitpid(sleeper, NULL, 0), sleeper);
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_int_equal(total.compiles, 2);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
