/* Compiles that bypass the cache: listed by reason with their time, and reported once to a program
 * that pays for the same one at each start and whose log nobody reads. */
#include "unit/store/support.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "support/counters.h"
#include "support/suite.h"

#define MS UINT64_C(1000000)

typedef struct listing {
    size_t count;
    char reasons[64][64];
    uint64_t counts[64], times[64];
} listing;

static kiln_status list_one(void *user, const kiln_bypass *bypass)
{
    listing *l = user;
    assert_true(l->count < 64);
    (void)snprintf(l->reasons[l->count], sizeof l->reasons[0], "%s|%s", bypass->reason,
                   bypass->what);
    l->counts[l->count] = bypass->count;
    l->times[l->count] = bypass->time_ns;
    assert_true(bypass->last_ns > 0);
    l->count++;
    return KILN_OK;
}

static void list_all(kiln_cache *cache, listing *l)
{
    memset(l, 0, sizeof *l);
    assert_int_equal(kiln_cache_walk_bypasses(cache, list_one, l, NULL), KILN_OK);
}

KT_TEST_IN_DIR(bypasses_are_listed_by_what_they_cost)
{
    listing l;
    kiln_cache *cache = ks_cache(*state);
    list_all(cache, &l);
    assert_int_equal(l.count, 0);
    kn_cache_count_bypass(cache, "a.cl", "cheap", 2 * MS);
    kn_cache_count_bypass(cache, "b.cl", "dear", 30 * MS);
    kn_cache_count_bypass(cache, "c.cl", "cheap", 3 * MS);
    kiln_cache_count_bypass(cache, "d.cl", "unknown");
    list_all(cache, &l);
    assert_int_equal(l.count, 3);
    assert_string_equal(l.reasons[0], "dear|b.cl");
    assert_string_equal(l.reasons[1], "cheap|c.cl");
    assert_string_equal(l.reasons[2], "unknown|d.cl");
    assert_int_equal(l.counts[1], 2);
    assert_int_equal(l.times[1], 5 * MS);
    assert_int_equal(ks_own(cache).bypassed, 4);
    assert_int_equal(ks_own(cache).bypass_ns, 35 * MS);
    kiln_cache_destroy(cache);

    kt_counters total;
    cache = ks_cache(*state); /* another one, as of another process */
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_int_equal(total.bypass_ns, 35 * MS);
    list_all(cache, &l);
    assert_int_equal(l.count, 3);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(a_damaged_list_is_a_shorter_one)
{
    listing l;
    char *path = kt_at(*state, "bypasses");
    kiln_cache *cache = ks_cache(*state);
    char garbage[512 * 64];
    memset(garbage, 'x', sizeof garbage);
    kt_file_write(path, garbage, sizeof garbage);
    list_all(cache, &l);
    assert_int_equal(l.count, 0);
    kn_cache_count_bypass(cache, "a.cl", "a reason", MS);
    list_all(cache, &l);
    assert_int_equal(l.count, 1);
    kt_file_write(path, garbage, 100); /* a torn one */
    list_all(cache, &l);
    assert_int_equal(l.count, 0);
    kn_cache_count_bypass(cache, "a.cl", "a reason", MS);
    list_all(cache, &l);
    assert_int_equal(l.count, 1);
    kiln_cache_destroy(cache);
}

/* The list is older than the first entry. Backup programs must learn of the cache all the same. */
KT_TEST_IN_DIR(a_root_with_a_list_is_tagged_as_a_cache)
{
    ks_compile compile = {0};
    char *list = kt_at(*state, "bypasses"), *tag = kt_at(*state, "CACHEDIR.TAG");
    kiln_cache *cache = ks_cache(*state);
    kn_cache_count_bypass(cache, "a.cl", "a reason", MS);
    assert_true(kt_file_exists(list));
    (void)ks_get(cache, "x", &compile);
    assert_true(kt_file_exists(tag));
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(the_list_is_bounded_and_takes_reasons_of_any_length)
{
    listing l;
    char reason[2000];
    kiln_cache *cache = ks_cache(*state);
    for (int i = 0; i < 200; i++) {
        memset(reason, 'a' + i % 26, sizeof reason);
        (void)snprintf(reason, 32, "reason %d", i);
        reason[strlen(reason)] = i % 2 == 0 ? '\0' : ' ';
        reason[sizeof reason - 1] = '\0';
        kn_cache_count_bypass(cache, reason, reason, MS);
        kn_cache_count_bypass(cache, reason, reason, MS);
        list_all(cache, &l);
        assert_true(l.count >= 1 && l.count <= 64);
    }
    assert_int_equal(ks_own(cache).bypassed, 400);
    for (size_t i = 0; i < l.count; i++) {
        assert_int_equal(l.counts[i], 2); /* a long reason is found again, too */
    }
    kiln_cache_destroy(cache);
}

/* A process that pays for `reason`; what it prints is in `printed`. */
static void pay(const char *root, const char *reason, const char *printed)
{
    int status = 0;
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int file = open(printed, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file < 0 || dup2(file, 2) < 0) {
            _exit(1);
        }
        kiln_cache *cache = ks_cache(root);
        kn_cache_count_bypass(cache, "m00000.cl", reason, 13800 * MS);
        kn_cache_count_bypass(cache, "m00010.cl", reason, 13800 * MS);
        kiln_cache_destroy(cache);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void expect_printed(const char *root, const char *reason, const char *expected)
{
    char *path = kt_at(root, "printed");
    size_t size = 0;
    pay(root, reason, path);
    char *text = kt_file_read(path, &size);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(text, expected, size);
    free(text);
}

KT_TEST_IN_DIR(who_pays_again_hears_it_once)
{
    static const char line[] =
        "kiln: warn: m00000.cl bypasses the cache and is compiled at every start: "
        "computed #include (13.800 s this time; see `kiln stats`)\n";
    (void)unsetenv("KILN_LOG");
    expect_printed(*state, "computed #include", "");
    expect_printed(*state, "computed #include", line);
    expect_printed(*state, "computed #include", "");
    expect_printed(*state, "another reason", "");
}

KT_TEST_IN_DIR(who_wants_to_hear_nothing_does_not)
{
    assert_int_equal(setenv("KILN_LOG", "off", 1), 0);
    expect_printed(*state, "computed #include", "");
    expect_printed(*state, "computed #include", "");
    (void)unsetenv("KILN_LOG");
    expect_printed(*state, "computed #include", ""); /* it was said, to nobody */
}

KT_MAIN(NULL, NULL)
