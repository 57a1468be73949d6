/* See situations.h. */
#include "unit/engine/situations.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/disk/loads.h"
#include "store/format/blob.h"
#include "support/faultfs.h"
#include "support/unended.h"
#include "unit/store/support.h"

static const kt_frontend *now; /* the frontend whose turn it is */
static char *root, *files;     /* of the cache, and of the program */
static kiln_cache *cache;

static void open_cache(uint32_t flags, bool records)
{
    kiln_cache_options options;
    char *recording = kt_at(root, "recording");
    now->use(NULL);
    kiln_cache_destroy(cache);
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    options.flags = flags;
    options.no_fsync = true;
    options.record = records ? recording : NULL;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    now->use(cache);
}

static void compile_one(void)
{
    now->compile(false);
}

static void compile_another(void)
{
    now->compile(true);
}

static void cause(kt_event event)
{
    if (now->flags[event] != NULL) {
        *now->flags[event] = true;
    } else if (now->events[event] != NULL) {
        now->events[event]();
    }
}

/* Another process has stored it. */
static unsigned seed(uint32_t flags)
{
    compile_one();
    open_cache(flags, false);
    return now->compiles();
}

/* --- situations ------------------------------------------------------------------------------- */

static void act_hit(void)
{
    const unsigned before = seed(0);
    compile_one();
    assert_int_equal(now->compiles(), before);
}

static void act_refused(void)
{
    (void)seed(0);
    cause(KT_REFUSES);
    compile_one();
}

static void act_refused_again(void)
{
    (void)seed(KILN_CACHE_READONLY);
    cause(KT_REFUSES);
    compile_one();
}

static void put_junk(void)
{
    kiln_key key = {{0}};
    kiln_blob *entry = NULL, *junk = ks_blob("junk");
    kiln_origin origin;
    assert_int_equal(kiln_cache_walk(cache, now->target, kt_take_key, &key, NULL), KILN_OK);
    assert_int_equal(kiln_cache_get(cache, &key, &entry, &origin, NULL), KILN_OK);
    const kn_tier_put what = {
        .key = &key, .target = now->target, .recipe = entry->recipe, .blob = junk};
    kn_stack_put(&cache->stack, &what, true);
    kiln_blob_release(entry);
    kiln_blob_release(junk);
    open_cache(0, false);
}

static void act_unsound(void)
{
    (void)seed(0);
    if (now->events[KT_UNSOUND] != NULL) {
        cause(KT_UNSOUND);
    } else {
        put_junk();
    }
    compile_one();
}

static void act_failed_load(void)
{
    (void)seed(0);
    cause(KT_LOAD_FAILS);
    compile_one();
}

static void act_quarantined(void)
{
    compile_one();
    for (unsigned i = 0; i < KN_LOADS_IN_A_ROW; i++) {
        kt_end_in_load(root, now->target);
    }
    open_cache(0, false); /* a process notes at its start which loads did not end */
    compile_one();
}

static void act_full_disk(void)
{
    kt_faultfs_set(root, "write:*:ENOSPC");
    compile_one();
    kt_faultfs_set(NULL, NULL);
}

static void act_read_only(void)
{
    open_cache(KILN_CACHE_READONLY, false);
    compile_one();
}

static void act_recording(void)
{
    open_cache(0, true);
    compile_one();
}

static void act_nested(void)
{
    now->during(compile_another);
    compile_one();
}

static void act_nested_same(void)
{
    now->during(compile_one);
    compile_one();
}

static void await_child(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

static void end_process(void)
{
    _exit(3);
}

static void act_crashed(void)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        now->during(end_process);
        compile_one();
        _exit(4);
    }
    await_child(pid);
    compile_one();
}

static pid_t forked;

static void fork_process(void)
{
    forked = fork();
    assert_true(forked >= 0);
    if (forked > 0) {
        await_child(forked);
    }
}

static void act_fork(void)
{
    now->during(fork_process);
    compile_one();
    if (forked == 0) {
        _exit(3);
    }
}

static pthread_t follower;

static void *follow(void *user)
{
    (void)user;
    compile_one();
    return NULL;
}

static void start_follower(void)
{
    assert_int_equal(pthread_create(&follower, NULL, follow, NULL), 0);
}

/* The second thread begins while the first one compiles. */
static void act_two_threads(void)
{
    const unsigned before = now->compiles();
    now->during(start_follower);
    compile_one();
    assert_int_equal(pthread_join(follower, NULL), 0);
    assert_int_equal(now->compiles(), before + 1);
}

/* --- the table -------------------------------------------------------------------------------- */

enum { ALWAYS = KT_EVENTS };

/* What is in the cache afterwards. */
typedef enum left { NOTHING, ENTRY, BARRED } left;

static const struct {
    const char *name;
    unsigned event;     /* without which it cannot happen */
    void (*act)(void);  /* NULL: the event, then a compile */
    const char *origin; /* in the last report; NULL: either thread's */
    left left;
    kt_counts expected;
} rows[] = {
    {"miss", ALWAYS, compile_one, "compiled", ENTRY, {MISS, .puts = 1}},
    {"hit", ALWAYS, act_hit, "disk", ENTRY, {HIT}},
    {"refused", KT_REFUSES, act_refused, "compiled", ENTRY, {HIT, .rejected = 1, MISS, .puts = 1}},
    {"refused, and found again",
     KT_REFUSES,
     act_refused_again,
     "compiled",
     ENTRY,
     {.hits = 2, .rejected = 1, .compiles = 1}},
    {"unsound", KT_UNSOUND, act_unsound, "compiled", ENTRY, {HIT, MISS, .puts = 1}},
    {"failed load", KT_LOAD_FAILS, act_failed_load, "failed", ENTRY, {HIT}},
    {"quarantined",
     KT_QUARANTINED,
     act_quarantined,
     "compiled",
     BARRED,
     {HIT, .unended = 1, .compiles = 1, .puts = 1}},
    {"header changed", KT_HEADER, NULL, "bypassed", NOTHING, {MISS, .bypassed = 1}},
    {"compiler changed", KT_COMPILER, NULL, "bypassed", NOTHING, {MISS, .bypassed = 1}},
    {"private", KT_PRIVATE, NULL, "bypassed", NOTHING, {MISS, .bypassed = 1}},
    {"failed compile", KT_FAILS, NULL, "failed", NOTHING, {MISS, .failures = 1}},
    {"bypass", KT_BYPASSES, NULL, "bypassed", NOTHING, {.bypassed = 1}},
    {"deferred, never finished", KT_DEFERS, NULL, "compiled", NOTHING, {MISS}},
    {"full disk", ALWAYS, act_full_disk, "compiled", NOTHING, {MISS, .put_failures = 1}},
    {"read-only", ALWAYS, act_read_only, "compiled", NOTHING, {MISS}},
    {"recording", KT_RECORDS, act_recording, "compiled", ENTRY, {MISS, .puts = 1, .recorded = 1}},
    {"nested", KT_NESTS, act_nested, "compiled", ENTRY, {TWICE, .puts = 2}},
    {"nested in itself", KT_NESTS, act_nested_same, "compiled", ENTRY, {TWICE, .puts = 2}},
    {"crashed predecessor", ALWAYS, act_crashed, "compiled", ENTRY, {MISS, .puts = 1}},
    {"fork in between", KT_FORKS, act_fork, "compiled", ENTRY, {MISS, .puts = 1}},
    {"two threads", KT_THREADS, act_two_threads, NULL, ENTRY, {HIT, MISS, .puts = 1}},
};

/* Whether a process that starts now compiles nothing. */
static bool is_stored(void)
{
    open_cache(0, false);
    const unsigned before = now->compiles();
    compile_one();
    return now->compiles() == before;
}

static void check_row(size_t i)
{
    root = kt_tmpdir_create();
    files = kt_tmpdir_create();
    now->begin(files);
    open_cache(0, false);
    if (rows[i].act != NULL) {
        rows[i].act();
    } else {
        cause((kt_event)rows[i].event);
        compile_one();
    }
    kt_check_counts(rows[i].name, kt_count(cache), rows[i].expected);
    if (rows[i].origin != NULL && now->origin != NULL) {
        assert_string_equal(now->origin(), rows[i].origin);
    }
    if (rows[i].left != BARRED && is_stored() != (rows[i].left == ENTRY)) {
        fail_msg("%s: %s: a second process %s", now->name, rows[i].name,
                 rows[i].left == ENTRY ? "compiles again" : "finds an entry");
    }
    now->use(NULL);
    kiln_cache_destroy(cache);
    cache = NULL;
    now->end();
    kt_tmpdir_remove(root);
    kt_tmpdir_remove(files);
}

void kt_check_situations(const kt_frontend *frontend)
{
    now = frontend;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].event != ALWAYS && frontend->impossible[rows[i].event] != NULL) {
            print_message("%s: not %s: %s\n", frontend->name, rows[i].name,
                          frontend->impossible[rows[i].event]);
        } else if (rows[i].act != act_full_disk || kt_faultfs_available()) {
            check_row(i);
        }
    }
}
