/* Loads of cached binaries that did not end: two in a row bar an entry, a killed process alone
 * costs nothing. Each load is a child's, which leaves in the middle of it. */
#include "unit/store/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "support/skip.h"
#include "support/suite.h"
#include "sys/clock.h"
#include "sys/thread.h"

#define DAY_NS (INT64_C(86400) * 1000000000)
#define KILLS 100
#define MANY 8
#define PAGE 4096

/* How a child leaves. */
enum { ENDS, CRASHES, WAITS, EXITS, BARRED = 42 };

typedef struct loading {
    const char *root, *name;
    int how;
    int ready;    /* a pipe's end: one byte when the load has begun */
    bool unasked; /* work that can be left out */
} loading;

typedef union mark {
    kn_load load;
    kn_cache_work work;
} mark;

static bool begin_one(const loading *l, kiln_cache *cache, const kiln_key *key, mark *out)
{
    return l->unasked ? kn_cache_work_begin(cache, key, l->name, &out->work)
                      : kn_cache_load_begin(cache, key, l->name, &out->load);
}

static int load_in_child(const loading *l)
{
    kiln_cache *cache = ks_cache(l->root);
    const kiln_key key = ks_key(l->name);
    mark one;
    if (!begin_one(l, cache, &key, &one)) {
        kiln_cache_destroy(cache);
        return BARRED;
    }
    if (l->ready >= 0 && write(l->ready, "x", 1) != 1) {
        return 9;
    }
    if (l->how == CRASHES) {
        (void)signal(SIGSEGV, SIG_DFL); /* whatever the test's runner has set */
        (void)raise(SIGSEGV);
    } else if (l->how == EXITS) {
        _exit(3);
    }
    while (l->how == WAITS) {
        (void)pause();
    }
    if (l->unasked) {
        kn_cache_work_end(cache, &one.work);
    } else {
        kn_cache_load_end(cache, &key, &one.load);
    }
    kiln_cache_destroy(cache);
    return 0;
}

static pid_t start(const loading *l)
{
    (void)fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        _exit(load_in_child(l));
    }
    return pid;
}

static int end_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int load(const char *root, const char *name, int how)
{
    const loading l = {root, name, how, -1, false};
    return end_of(start(&l));
}

static int work(const char *root, const char *name, int how)
{
    const loading l = {root, name, how, -1, true};
    return end_of(start(&l));
}

static pid_t start_and_wait(const char *root, const char *name)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    const loading l = {root, name, WAITS, ends[1], false};
    const pid_t pid = start(&l);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(close(ends[0]), 0);
    return pid;
}

static void kill_in_load(const char *root, const char *name)
{
    const pid_t pid = start_and_wait(root, name);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(end_of(pid), -SIGKILL);
}

/* Days go by for what was noted. */
static void age_rows(const char *root, int64_t days)
{
    char *path = kt_at(root, "loads");
    size_t size = 0;
    char *bytes = kt_file_read(path, &size);
    assert_int_equal(size, PAGE);
    for (size_t at = 32 * 4 * 16; at + 32 <= PAGE - 32; at += 32) {
        int64_t noted = 0;
        memcpy(&noted, bytes + at + 8, sizeof(noted));
        noted -= noted != 0 ? days * DAY_NS : 0;
        memcpy(bytes + at + 8, &noted, sizeof(noted));
    }
    kt_file_write(path, bytes, size);
    free(bytes);
}

static uint64_t count_unended(const char *root)
{
    kt_counters stats;
    kiln_cache *cache = ks_cache(root);
    assert_int_equal(kt_counters_total(cache, &stats, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    return stats.unended;
}

static void make_root(const char *root)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(root);
    assert_int_equal(ks_get(cache, "k", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(two_loads_in_a_row_that_crash_bar_an_entry)
{
    make_root(*state);
    assert_int_equal(load(*state, "k", CRASHES), -SIGSEGV);
    assert_int_equal(load(*state, "k", CRASHES), -SIGSEGV);
    assert_int_equal(load(*state, "k", CRASHES), BARRED);
    assert_int_equal(load(*state, "k", CRASHES), BARRED);
    assert_int_equal(load(*state, "other", ENDS), 0);
    assert_int_equal(count_unended(*state), 2);
}

/* A driver that leaves with a code, and one that hangs until it is killed, are the same. */
KT_TEST_IN_DIR(so_do_loads_that_exit_or_hang)
{
    make_root(*state);
    assert_int_equal(load(*state, "k", EXITS), 3);
    kill_in_load(*state, "k");
    assert_int_equal(load(*state, "k", ENDS), BARRED);
}

/* For a day, and on that item alone; loads of the same entry go on. */
KT_TEST_IN_DIR(K6_work_that_nobody_asked_for_rests_after_one_crash)
{
    make_root(*state);
    assert_int_equal(work(*state, "k", CRASHES), -SIGSEGV);
    assert_int_equal(work(*state, "k", CRASHES), BARRED);
    assert_int_equal(work(*state, "k", ENDS), BARRED);
    assert_int_equal(work(*state, "other", ENDS), 0);
    assert_int_equal(load(*state, "k", ENDS), 0);
    assert_int_equal(work(*state, "k", ENDS), BARRED);
    age_rows(*state, 1);
    assert_int_equal(work(*state, "k", CRASHES), -SIGSEGV);
    assert_int_equal(work(*state, "k", ENDS), BARRED);
    age_rows(*state, 1);
    assert_int_equal(work(*state, "k", ENDS), 0);
    assert_int_equal(work(*state, "k", CRASHES), -SIGSEGV); /* the count began again */
    assert_int_equal(work(*state, "k", ENDS), BARRED);
    age_rows(*state, 1);
    assert_int_equal(work(*state, "k", ENDS), 0);
}

KT_TEST_IN_DIR(a_good_entry_survives_a_hundred_kills)
{
    make_root(*state);
    for (int i = 0; i < KILLS; i++) {
        kill_in_load(*state, "k");
        assert_int_equal(load(*state, "k", ENDS), 0);
    }
    assert_int_equal(count_unended(*state), 0);
}

/* One event, whose victims are found one after the other. */
KT_TEST_IN_DIR(many_that_are_killed_together_count_once)
{
    pid_t pids[MANY];
    make_root(*state);
    for (int i = 0; i < MANY; i++) {
        pids[i] = start_and_wait(*state, "k");
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(end_of(pids[i]), -SIGKILL);
        if (i == MANY / 2) { /* who comes now finds half of them dead */
            assert_int_equal(load(*state, "other", ENDS), 0);
        }
    }
    assert_int_equal(load(*state, "k", ENDS), 0);
}

/* While others load the same and go on. */
KT_TEST_IN_DIR(a_living_load_is_none_that_did_not_end)
{
    make_root(*state);
    const pid_t slow = start_and_wait(*state, "k");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(load(*state, "k", ENDS), 0);
    }
    assert_int_equal(kill(slow, SIGKILL), 0);
    assert_int_equal(end_of(slow), -SIGKILL);
    assert_int_equal(load(*state, "k", ENDS), 0);
}

/* The bar falls after a day, for one load. */
KT_TEST_IN_DIR(a_bar_ends_and_comes_back)
{
    make_root(*state);
    (void)load(*state, "k", CRASHES);
    (void)load(*state, "k", CRASHES);
    assert_int_equal(load(*state, "k", ENDS), BARRED);
    age_rows(*state, 1);
    assert_int_equal(load(*state, "k", CRASHES), -SIGSEGV);
    assert_int_equal(load(*state, "k", ENDS), BARRED);
    age_rows(*state, 1);
    assert_int_equal(load(*state, "k", ENDS), 0);
    assert_int_equal(load(*state, "k", CRASHES), -SIGSEGV); /* all is forgotten */
    assert_int_equal(load(*state, "k", ENDS), 0);
}

KT_TEST_IN_DIR(clear_forgets)
{
    kiln_prune_result result = {.struct_size = sizeof(result)};
    make_root(*state);
    (void)load(*state, "k", CRASHES);
    (void)load(*state, "k", CRASHES);
    kiln_cache *cache = ks_cache(*state);
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    assert_int_equal(load(*state, "k", ENDS), 0);
}

/* Parent and child share what is open; the parent's end is seen while the child lives. */
KT_TEST_IN_DIR(a_forked_child_does_not_keep_its_parents_load)
{
    int ends[2];
    pid_t child = 0;
    if (kn_test_is_emulated()) {
        print_message("SKIP: QEMU does not follow MADV_DONTFORK\n");
        skip();
    }
    make_root(*state);
    assert_int_equal(load(*state, "k", CRASHES), -SIGSEGV);
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    const pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        kiln_cache *cache = ks_cache(*state);
        const kiln_key key = ks_key("k");
        kn_load one;
        if (!kn_cache_load_begin(cache, &key, "k", &one)) {
            _exit(9);
        }
        const pid_t living = fork();
        if (living == 0) {
            /* It speaks for itself: before it runs, it has not let go of what it shares. */
            const pid_t self = getpid();
            (void)alarm(60); /* the test kills it before */
            (void)!write(ends[1], &self, sizeof(self));
            for (;;) {
                (void)pause();
            }
        }
        _exit(3);
    }
    assert_int_equal(read(ends[0], &child, sizeof(child)), (ssize_t)sizeof(child));
    assert_int_equal(end_of(parent), 3);
    assert_int_equal(load(*state, "k", ENDS), BARRED);
    assert_int_equal(kill(child, SIGKILL), 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Where this process has the table mapped. */
static unsigned char *find_table(void)
{
    char line[1024];
    unsigned long at = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (at == 0 && fgets(line, sizeof(line), maps) != NULL) {
        if (strstr(line, "/loads\n") != NULL) {
            at = strtoul(line, NULL, 16);
        }
    }
    assert_int_equal(fclose(maps), 0);
    assert_true(at != 0);
    return (unsigned char *)at; /* NOLINT(performance-no-int-to-ptr): as the system names it */
}

/* A driver forks in a load, and comes back in the child, too: what the child has put where its
 * parent has the table stays as it is. */
KT_TEST_IN_DIR(a_load_that_forked_does_not_end_in_the_child)
{
    enum { FILLER = 0xA5 };
    if (kn_test_is_emulated()) {
        print_message("SKIP: QEMU does not follow MADV_DONTFORK\n");
        skip();
    }
    make_root(*state);
    kiln_cache *cache = ks_cache(*state);
    const kiln_key key = ks_key("k");
    kn_load one;
    assert_true(kn_cache_load_begin(cache, &key, "k", &one));
    unsigned char *table = find_table();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const void *own = mmap(table, PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (own != table) {
            _exit(9);
        }
        memset(table, FILLER, PAGE);
        kn_cache_load_end(cache, &key, &one);
        for (size_t i = 0; i < PAGE; i++) {
            if (table[i] != FILLER) {
                _exit(1);
            }
        }
        _exit(0);
    }
    assert_int_equal(end_of(child), 0);
    kn_cache_load_end(cache, &key, &one);
    kiln_cache_destroy(cache);
    assert_int_equal(load(*state, "k", ENDS), 0);
}

/* A root that is gone when the driver is opened, and back when the first binary is loaded. */
KT_TEST_IN_DIR(preparing_makes_no_root_and_is_tried_again)
{
    kn_load one;
    char *root = kt_at(*state, "root");
    char *aside = kt_at(*state, "aside");
    char *table = kt_at(root, "loads");
    const kiln_key key = ks_key("k");
    make_root(root);
    kiln_cache *cache = ks_cache(root);
    assert_int_equal(rename(root, aside), 0);
    kn_cache_load_prepare(cache);
    assert_int_equal(access(root, F_OK), -1);
    assert_int_equal(rename(aside, root), 0);
    kn_cache_load_prepare(cache);
    assert_int_equal(access(table, F_OK), 0);
    assert_true(kn_cache_load_begin(cache, &key, "k", &one));
    assert_int_not_equal(one.cell, 0);
    kn_cache_load_end(cache, &key, &one);
    kiln_cache_destroy(cache);
}

static kiln_cache *shared;
static _Atomic int begun;

static void load_for_ever(void *name)
{
    const kiln_key key = ks_key(name);
    kn_load one;
    (void)kn_cache_load_begin(shared, &key, name, &one);
    (void)atomic_fetch_add(&begun, 1);
    for (;;) {
        (void)pause();
    }
}

/* Two threads load; the process ends as `end` says. */
static void end_with_threads(const char *root, void (*end)(int))
{
    (void)fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        kn_thread *threads[2];
        shared = ks_cache(root);
        if (kn_thread_start(load_for_ever, "k", &threads[0], NULL) != KILN_OK ||
            kn_thread_start(load_for_ever, "other", &threads[1], NULL) != KILN_OK) {
            _exit(9);
        }
        while (atomic_load(&begun) < 2) {
            kn_clock_sleep(1000000);
        }
        (void)fclose(stdout); /* what the runner holds back is not the child's to print */
        end(0);
    }
    assert_int_equal(end_of(pid), 0);
}

KT_TEST_IN_DIR(every_thread_has_a_load_of_its_own)
{
    make_root(*state);
    end_with_threads(*state, _exit);
    end_with_threads(*state, _exit);
    assert_int_equal(load(*state, "k", ENDS), BARRED);
    assert_int_equal(load(*state, "other", ENDS), BARRED);
}

/* A program that ends while its threads load is not a driver's fault. */
KT_TEST_IN_DIR(an_orderly_end_is_no_crash)
{
    make_root(*state);
    for (int i = 0; i < 3; i++) {
        end_with_threads(*state, exit);
    }
    assert_int_equal(load(*state, "k", ENDS), 0);
    assert_int_equal(load(*state, "other", ENDS), 0);
}

/* What others do to the file costs the watching, and never the process. */
KT_TEST_IN_DIR(a_file_that_is_cut_short_ends_nobody)
{
    if (kn_test_is_emulated()) {
        print_message(
            "SKIP: QEMU itself writes what a call of the system returns, and is killed\n");
        skip();
    }
    make_root(*state);
    kiln_cache *cache = ks_cache(*state);
    const kiln_key key = ks_key("k");
    char *path = kt_at(*state, "loads");
    kn_load one;
    assert_true(kn_cache_load_begin(cache, &key, "k", &one));
    assert_int_equal(truncate(path, 0), 0);
    kn_cache_load_end(cache, &key, &one);
    assert_true(kn_cache_load_begin(cache, &key, "k", &one));
    kn_cache_load_end(cache, &key, &one);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(junk_in_its_place_is_lived_with)
{
    char junk[PAGE + 100];
    char *path = kt_at(*state, "loads");
    static const size_t sizes[] = {0, 1, 700, PAGE, PAGE + 100};
    make_root(*state);
    memset(junk, 0xa5, sizeof(junk));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        kt_file_write(path, junk, sizes[i]);
        assert_int_equal(load(*state, "k", ENDS), 0);
        assert_int_equal(load(*state, "k", CRASHES), -SIGSEGV);
        assert_int_equal(load(*state, "k", CRASHES), -SIGSEGV);
        assert_int_equal(load(*state, "k", ENDS), BARRED);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(load(*state, "k", ENDS), 0);
}

/* The system would end a process that makes a file longer than it may. */
KT_TEST_IN_DIR(a_limit_for_files_ends_nobody)
{
    make_root(*state);
    (void)fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct rlimit small = {100, 100};
        const loading l = {*state, "k", ENDS, -1, false};
        _exit(setrlimit(RLIMIT_FSIZE, &small) != 0 ? 9 : load_in_child(&l));
    }
    assert_int_equal(end_of(pid), 0);
}

KT_TEST_IN_DIR(what_is_only_read_is_not_watched)
{
    make_root(*state);
    kiln_cache *cache = ks_cache_with(*state, KILN_CACHE_READONLY);
    const kiln_key key = ks_key("k");
    char *path = kt_at(*state, "loads");
    kn_load one;
    assert_true(kn_cache_load_begin(cache, &key, "k", &one));
    kn_cache_load_end(cache, &key, &one);
    kiln_cache_destroy(cache);
    assert_false(kt_file_exists(path));
}

/* A cell more than a process has is not watched, and takes nobody else's. */
KT_TEST_IN_DIR(more_loads_at_once_than_cells)
{
    make_root(*state);
    kiln_cache *cache = ks_cache(*state);
    const kiln_key key = ks_key("k");
    kn_load loads[MANY];
    for (int i = 0; i < MANY; i++) {
        assert_true(kn_cache_load_begin(cache, &key, "k", &loads[i]));
    }
    for (int i = 0; i < MANY; i++) {
        kn_cache_load_end(cache, &key, &loads[i]);
    }
    assert_true(kn_cache_load_begin(cache, &key, "k", &loads[0]));
    assert_int_not_equal(loads[0].cell, 0);
    kn_cache_load_end(cache, &key, &loads[0]);
    kiln_cache_destroy(cache);
    assert_int_equal(load(*state, "k", ENDS), 0);
}

KT_MAIN(NULL, NULL)
