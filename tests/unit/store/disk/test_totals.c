/* The totals of the store while it is counted next to those who put and remove: never too low. Each
 * order is forced by processes that stop themselves between two calls to the system. */
#include "unit/store/support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "store/format/record_lock.h"
#include "support/faultfs.h"
#include "support/suite.h"
#include "sys/clock.h"

#define MS UINT64_C(1000000)
#define UNANNOUNCED_NS (20 * MS) /* that a put waits to announce itself */
enum { FEW = 20, MANY = 30, ANY = 1 << 20 };

static kiln_cache *open_capped(const char *root, uint64_t max_files)
{
    kiln_cache_options options = ks_options(root);
    options.disk_max_files = max_files;
    return ks_open(&options);
}

static void put_several(kiln_cache *cache, const char *prefix, int count)
{
    ks_compile compile = {0};
    for (int i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%s%d", prefix, i);
        (void)ks_get(cache, name, &compile);
    }
}

static kiln_status put_one(kiln_cache *cache, const char *name)
{
    kiln_recipe *recipe = ks_recipe(name);
    kiln_blob *blob = NULL;
    ks_compile compile = {.text = name};
    const kiln_status status =
        kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob, NULL, NULL);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return status;
}

static kiln_status remove_one(kiln_cache *cache, const char *name)
{
    kiln_recipe *recipe = ks_recipe(name);
    const kiln_key key = kiln_recipe_key(recipe);
    const kiln_status status = kiln_cache_remove(cache, &key, NULL);
    kiln_recipe_destroy(recipe);
    return status;
}

/* A process that does one thing with the cache, stops itself where `rule` says, and ends well when
 * it is woken. */
static pid_t start_stopping(const char *root, uint64_t max_files, const char *rule,
                            kiln_status (*act)(kiln_cache *, const char *), const char *name)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        kiln_cache *cache = open_capped(root, max_files);
        kt_faultfs_set(root, rule);
        const bool good = act(cache, name) == KILN_OK;
        kiln_cache_destroy(cache);
        _exit(good ? 0 : 1);
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

static kn_record read_record(kiln_cache *cache)
{
    kn_record record;
    assert_int_equal(kn_stats_read(cache->stats, &record, NULL), KILN_OK);
    return record;
}

/* Too high by what was under way next to a count, at most. */
static void assert_totals(kiln_cache *cache)
{
    const uint64_t entries = count_entries(cache);
    assert_between(read_record(cache).files, entries, entries + 2);
}

/* The entry is in the totals when the count begins, and not yet where the count looks; it is there,
 * and its writer gone, when the count ends. */
KT_TEST_IN_DIR(D7_an_entry_that_lands_beside_a_count_stays_counted)
{
    kiln_cache *cache = open_capped(*state, ANY);
    put_several(cache, "a", FEW);
    const pid_t writer = start_stopping(*state, ANY, "link:1:stop:/v1/", put_one, "lands");
    const pid_t counter = start_stopping(*state, FEW, "unlink:1:stop-after:/v1/", put_one, "c");
    wake(writer);
    wake(counter);
    assert_totals(cache);
    kiln_cache_destroy(cache);
}

/* A writer stops when it has written that an entry comes, and before it knows that. What it wrote
 * is copied, and lost in a count, meanwhile. */
KT_TEST_IN_DIR(D7_an_announcement_that_was_copied_is_older_than_a_later_count)
{
    kiln_cache *cache = open_capped(*state, FEW);
    put_several(cache, "a", FEW);
    const pid_t writer = start_stopping(*state, ANY, "write:1:stop-after:/stats", put_one, "lands");
    put_several(cache, "b", MANY);
    assert_int_not_equal(read_record(cache).copied[0], 0);
    wake(writer);
    assert_totals(cache);
    kiln_cache_destroy(cache);
}

/* Nobody passes over who holds all of these. */
static void hold_record(const char *path, kn_lock_file *locks[2])
{
    assert_int_equal(kn_record_lock(path, KN_RECORD_STATS, 0, &locks[0]), KILN_OK);
    assert_int_equal(kn_lock_file_open(path, &locks[1], NULL), KILN_OK);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(kn_lock_try(locks[1], KN_RECORD_REPLACE + i), KILN_OK);
    }
}

static void let_record_go(kn_lock_file *locks[2])
{
    kn_lock_file_close(locks[1]);
    kn_record_unlock(locks[0], KN_RECORD_STATS);
}

/* The same, and the writer cannot look whether it came before the copy until its entry is there. */
KT_TEST_IN_DIR(D7_an_announcement_that_may_be_there_is_not_lost)
{
    char *path = kt_at(*state, "stats");
    kn_lock_file *locks[2];
    kiln_cache *cache = open_capped(*state, FEW);
    put_several(cache, "a", FEW);
    const pid_t writer = start_stopping(
        *state, ANY, "write:1:stop-after:/stats;link:1:stop-after:/v1/", put_one, "l");
    put_several(cache, "b", MANY);
    hold_record(path, locks);
    int status = 0;
    assert_int_equal(kill(writer, SIGCONT), 0);
    assert_int_equal(waitpid(writer, &status, WUNTRACED), writer);
    assert_true(WIFSTOPPED(status)); /* its entry is there */
    let_record_go(locks);
    wake(writer);
    assert_totals(cache);
    kiln_cache_destroy(cache);
}

/* A put that could not announce itself: another thread's flush must not do that too early. */
KT_TEST_IN_DIR(D7_what_could_not_be_announced_is_counted_when_it_is_there)
{
    char *path = kt_at(*state, "stats");
    const kn_totals coming = {.files = 1, .bytes = 4096};
    kn_landing landing = {.files = 1, .bytes = 4096};
    kn_lock_file *locks[2];
    kn_record record, before;
    kiln_cache *cache = open_capped(*state, FEW), *other = open_capped(*state, FEW);
    put_several(cache, "a", FEW);
    hold_record(path, locks);
    assert_int_equal(
        kn_stats_announce(cache->stats, &coming, UNANNOUNCED_NS, &record, &landing.counts),
        KILN_E_BUSY);
    let_record_go(locks);
    assert_int_equal(kn_stats_flush(cache->stats, UNANNOUNCED_NS, &record, NULL), KILN_OK);
    assert_int_equal(record.files, FEW);
    assert_int_equal(kn_stats_begin_count(other->stats, UNANNOUNCED_NS, &before), KILN_OK);
    const kn_correction correction = {
        .totals = {.files = FEW - (int64_t)before.files, .counted_ns = kn_clock_wall()},
        .ends_count = before.counts};
    kn_stats_correct(other->stats, &correction, UNANNOUNCED_NS);
    kn_stats_landed(cache->stats, &landing);
    assert_int_equal(kn_stats_flush(cache->stats, UNANNOUNCED_NS, &record, NULL), KILN_OK);
    assert_int_equal(record.files, FEW + 1);
    kiln_cache_destroy(other);
    kiln_cache_destroy(cache);
}

/* A count finds it gone already, and then its remover says that it is. */
KT_TEST_IN_DIR(D7_what_a_count_missed_is_not_subtracted)
{
    kiln_cache *cache = open_capped(*state, FEW);
    put_several(cache, "a", FEW);
    const pid_t remover = start_stopping(*state, ANY, "unlink:1:stop-after:/v1/", remove_one, "a3");
    put_several(cache, "b", MANY);
    wake(remover);
    assert_totals(cache);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(D7_what_is_removed_beside_a_count_is_not_subtracted)
{
    kiln_cache *cache = open_capped(*state, ANY);
    put_several(cache, "a", FEW + 1);
    const pid_t remover = start_stopping(*state, ANY, "unlink:1:stop-after:/v1/", remove_one, "a3");
    const pid_t counter = start_stopping(*state, FEW, "unlink:1:stop-after:/v1/", put_one, "c");
    wake(remover);
    wake(counter);
    assert_totals(cache);
    kiln_cache_destroy(cache);
}

/* Two that count the same excess: it is taken off once. */
KT_TEST_IN_DIR(D7_of_two_counts_the_later_one_corrects)
{
    kn_record one, two;
    kiln_cache *cache = open_capped(*state, ANY), *other = open_capped(*state, ANY);
    put_several(cache, "a", FEW);
    kn_stats_moved(cache->stats, &(kn_totals){.files = 7}); /* of killed writers */
    assert_int_equal(kn_stats_begin_count(cache->stats, UNANNOUNCED_NS, &one), KILN_OK);
    assert_int_equal(kn_stats_begin_count(other->stats, UNANNOUNCED_NS, &two), KILN_OK);
    assert_int_equal(two.files, FEW + 7);
    kn_correction correction = {.totals = {.files = -7}, .ends_count = one.counts};
    kn_stats_correct(cache->stats, &correction, UNANNOUNCED_NS);
    correction.ends_count = two.counts;
    kn_stats_correct(other->stats, &correction, UNANNOUNCED_NS);
    assert_int_equal(read_record(cache).files, FEW);
    kiln_cache_destroy(other);
    kiln_cache_destroy(cache);
}

static pid_t start_sleeper(const char *path, uint64_t byte)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        kn_lock_file *lock = NULL;
        const bool held = kn_record_lock(path, byte, 0, &lock) == KILN_OK;
        (void)raise(SIGSTOP);
        _exit(held ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    return child;
}

/* One who is about to put a copy of the record into its place stops, is passed over, and goes on
 * much later: its copy is too old. */
KT_TEST_IN_DIR(D7_an_old_copy_of_the_record_takes_no_place)
{
    char *path = kt_at(*state, "stats");
    kiln_cache *cache = open_capped(*state, ANY);
    put_several(cache, "a", FEW);
    const pid_t sleeper = start_sleeper(path, KN_RECORD_STATS);
    const pid_t copier = start_stopping(*state, ANY, "rename:1:stop:/stats", put_one, "c");
    put_several(cache, "b", MANY);
    wake(copier);
    wake(sleeper);
    const kn_record record = read_record(cache);
    assert_int_equal(record.counters[KN_COUNT_puts], FEW + MANY + 1);
    assert_int_equal(record.files, FEW + MANY + 1);
    kiln_cache_destroy(cache);
}

/* The same where nobody needs to pass it over: what is written meanwhile is not in its copy. */
KT_TEST_IN_DIR(D7_a_copy_without_what_was_written_since_takes_no_place)
{
    char *path = kt_at(*state, "stats");
    kiln_cache *cache = open_capped(*state, ANY);
    put_several(cache, "a", FEW);
    const pid_t sleeper = start_sleeper(path, KN_RECORD_STATS);
    const pid_t copier = start_stopping(*state, ANY, "rename:1:stop:/stats", put_one, "c");
    wake(sleeper);
    put_several(cache, "b", 3);
    wake(copier);
    const kn_record record = read_record(cache);
    assert_int_equal(record.counters[KN_COUNT_puts], FEW + 3 + 1);
    assert_int_equal(record.files, FEW + 3 + 1);
    kiln_cache_destroy(cache);
}

int main(void)
{
    if (!kt_faultfs_available()) {
        (void)puts("SKIP: the fault injector is not preloaded (sanitizer build)");
        return 77;
    }
    return cmocka_run_group_tests(kt_cases, NULL, NULL);
}
