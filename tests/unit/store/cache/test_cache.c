/* The public cache: origins, counters, flags, and what happens without a usable root. */
#include "unit/store/support.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "support/counters.h"
#include "support/failalloc.h"
#include "support/suite.h"

KT_TEST_IN_DIR(a_compile_happens_once)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_MEMORY);
    assert_int_equal(ks_get(cache, "two", &compile), KILN_ORIGIN_COMPILED);
    kt_counters own = ks_own(cache);
    assert_int_equal(own.compiles, 2);
    assert_int_equal(own.misses, 2);
    assert_int_equal(own.puts, 2);
    assert_int_equal(own.hits_memory, 1);
    assert_true(own.saved_ns > 0);
    kiln_cache_destroy(cache);

    cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_DISK);
    assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_MEMORY);
    assert_int_equal(ks_own(cache).compiles, 0);
    assert_int_equal(compile.runs, 2);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(D6_an_entry_is_there_before_the_program_ends)
{
    ks_compile compile = {0};
    kiln_cache *writer = ks_cache(*state), *reader = ks_cache(*state);
    assert_int_equal(ks_get(writer, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_get(reader, "x", &compile), KILN_ORIGIN_DISK);
    kiln_cache_destroy(reader);
    kiln_cache_destroy(writer);
}

KT_TEST_IN_DIR(D3_a_failed_or_empty_compile_is_never_stored)
{
    ks_compile compile = {.text = "x", .fail = KILN_E_COMPILE};
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("x");
    kiln_blob *blob = NULL;
    for (int i = 0; i < 2; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(
            kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob, NULL, &diag),
            KILN_E_COMPILE);
        assert_null(blob);
        assert_string_equal(diag.why, "it is broken");
        assert_string_equal(diag.log, "line 1: broken");
        kiln_diag_clear(&diag);
    }
    compile.fail = KILN_OK;
    compile.text = "";
    assert_int_equal(
        kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob, NULL, NULL),
        KILN_E_COMPILE);
    assert_int_equal(compile.runs, 3);
    assert_int_equal(ks_own(cache).compile_failures, 3);
    assert_int_equal(ks_own(cache).puts, 0);
    char *v1 = kt_at(*state, "v1");
    assert_int_equal(kt_file_count(v1), 0);

    kiln_blob *empty = NULL;
    assert_int_equal(kiln_blob_create("", 0, NULL, 0, &empty, NULL), KILN_OK);
    assert_int_equal(kiln_cache_put(cache, recipe, empty, 1, NULL), KILN_E_INVALID);
    kiln_blob_release(empty);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(get_put_and_remove_work_by_key_alone)
{
    kiln_cache *cache = ks_cache(*state), *other = ks_cache(*state);
    const char *targets[] = {"t-a", "t-b", "t-c"};
    kiln_key keys[3];
    for (int i = 0; i < 3; i++) {
        kiln_recipe *recipe = NULL;
        kiln_blob *blob = ks_blob(targets[i]), *got = NULL;
        kiln_origin origin;
        assert_int_equal(kiln_recipe_create("s", 1, &recipe, NULL), KILN_OK);
        kiln_recipe_set_target(recipe, targets[i]);
        keys[i] = kiln_recipe_key(recipe);
        assert_int_equal(kiln_cache_get(other, &keys[i], &got, NULL, NULL), KILN_MISS);
        assert_int_equal(kiln_cache_put(cache, recipe, blob, 77, NULL), KILN_OK);
        /* `other` has listed the targets before this one was made. */
        assert_int_equal(kiln_cache_get(other, &keys[i], &got, &origin, NULL), KILN_OK);
        assert_int_equal(origin, KILN_ORIGIN_DISK);
        assert_int_equal(kiln_blob_compile_ns(got), 77);
        assert_string_equal(kiln_origin_name(origin), "disk");
        kiln_blob_release(got);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    for (int i = 0; i < 3; i++) {
        kiln_blob *got = NULL;
        assert_int_equal(kiln_cache_remove(other, &keys[i], NULL), KILN_OK);
        assert_int_equal(kiln_cache_get(other, &keys[i], &got, NULL, NULL), KILN_MISS);
        assert_int_equal(kiln_cache_remove(other, &keys[i], NULL), KILN_MISS);
        assert_null(got);
    }
    kiln_cache_destroy(cache);
    kiln_cache_destroy(other);
}

typedef struct visit {
    kiln_cache *cache;
    const kiln_recipe *recipe;
    int seen;
} visit;

/* Replaces and removes the very entry it works with. */
static void look(void *user, kiln_blob *blob)
{
    visit *v = user;
    kiln_key key = kiln_recipe_key(v->recipe);
    kiln_blob *other = ks_blob("other");
    if (v->seen++ > 0) {
        assert_int_equal(kiln_cache_put(v->cache, v->recipe, other, 1, NULL), KILN_OK);
        assert_int_equal(kiln_cache_remove(v->cache, &key, NULL), KILN_OK);
    }
    assert_int_equal(kiln_blob_size(blob), 1);
    assert_memory_equal(kiln_blob_data(blob), "x", 1);
    kiln_blob_release(other);
}

KT_TEST_IN_DIR(an_entry_can_be_used_in_place)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "x", &compile);
    kiln_cache_destroy(cache);
    cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("x");
    kiln_key key = kiln_recipe_key(recipe);
    visit v = {.cache = cache, .recipe = recipe};
    kiln_origin origin;
    assert_int_equal(kiln_cache_use(cache, &key, look, &v, &origin, NULL), KILN_OK);
    assert_int_equal(origin, KILN_ORIGIN_DISK);
    assert_int_equal(kiln_cache_use(cache, &key, look, &v, &origin, NULL), KILN_OK);
    assert_int_equal(origin, KILN_ORIGIN_MEMORY);
    assert_int_equal(kiln_cache_use(cache, &key, look, &v, &origin, NULL), KILN_MISS);
    assert_int_equal(v.seen, 2);
    assert_int_equal(ks_own(cache).hits_memory, 1);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(K5_a_cache_hits_after_it_has_moved)
{
    ks_compile compile = {0};
    char *before = kt_at(*state, "before"), *after = kt_at(*state, "after");
    kiln_cache *cache = ks_cache(before);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
    assert_int_equal(rename(before, after), 0);
    cache = ks_cache(after);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(a_disabled_cache_opens_nothing)
{
    ks_compile compile = {0};
    char *root = kt_at(*state, "never-made");
    kiln_cache *cache = ks_cache_with(root, KILN_CACHE_DISABLED);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    kiln_blob *blob = ks_blob("y");
    kiln_recipe *recipe = ks_recipe("y");
    kiln_key key = kiln_recipe_key(recipe);
    assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
    kiln_blob_release(blob);
    assert_int_equal(kiln_cache_get(cache, &key, &blob, NULL, NULL), KILN_MISS);
    assert_int_equal(ks_own(cache).compiles, 2);
    assert_string_equal(kiln_cache_root(cache), "");
    assert_true(kiln_cache_disk_reason(cache)[0] != '\0');
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
    assert_false(kt_file_exists(root));
}

KT_TEST_IN_DIR(recache_compiles_and_replaces)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
    cache = ks_cache_with(*state, KILN_CACHE_RECACHE);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).puts, 1);
    kiln_cache_destroy(cache);
    cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    char *entry = ks_only_entry(cache);
    free(entry);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(a_read_only_cache_reads_and_writes_memory_only)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(*state);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    char *entry = ks_only_entry(cache);
    kiln_cache_destroy(cache);
    size_t files = kt_file_count(*state);
    struct stat before, after;
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(0, entry, old, 0), 0);
    assert_int_equal(stat(entry, &before), 0);

    cache = ks_cache_with(*state, KILN_CACHE_READONLY);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    assert_int_equal(ks_get(cache, "y", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_get(cache, "y", &compile), KILN_ORIGIN_MEMORY);
    kiln_prune_result result = {.struct_size = sizeof(result)};
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_E_UNSUPPORTED);
    kiln_cache_destroy(cache);
    assert_int_equal(kt_file_count(*state), files);
    assert_int_equal(stat(entry, &after), 0);
    assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec); /* no stamp */
    free(entry);

    char *missing = kt_at(*state, "missing");
    cache = ks_cache_with(missing, KILN_CACHE_READONLY);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
    assert_false(kt_file_exists(missing));
}

/* --- without a usable root -------------------------------------------------------------------- */

typedef struct lines {
    int count;
    char last[2048];
} lines;

static void take_line(void *user, kiln_log_level level, const char *line)
{
    lines *l = user;
    if (level <= KILN_LOG_WARN) {
        l->count++;
        (void)snprintf(l->last, sizeof l->last, "%s", line);
    }
}

/* The cache works, and says once which path it could not use and why. */
static void expect_refused(const char *root, const char *why)
{
    ks_compile compile = {0};
    lines l = {0};
    kiln_log_set(take_line, &l, KILN_LOG_WARN);
    kiln_cache *cache = ks_cache(root);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_MEMORY);
    assert_string_equal(kiln_cache_root(cache), "");
    assert_non_null(strstr(kiln_cache_disk_reason(cache), why));
    assert_non_null(strstr(kiln_cache_disk_reason(cache), root));
    assert_int_equal(l.count, 1);
    assert_non_null(strstr(l.last, root));
    assert_non_null(strstr(l.last, why));
    kiln_prune_result result = {.struct_size = sizeof(result)};
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_cache_clear(cache, &result, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, why));
    kiln_diag_clear(&diag);
    kt_counters total;
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    kiln_log_set(NULL, NULL, KILN_LOG_OFF);
}

KT_TEST_IN_DIR(S6_a_root_that_others_can_write_is_refused)
{
    char *root = kt_at(*state, "open");
    assert_int_equal(mkdir(root, 0777), 0);
    assert_int_equal(chmod(root, 0777), 0);
    expect_refused(root, "world-writable");
    assert_int_equal(kt_file_count(root), 0);
}

KT_TEST_IN_DIR(S6_a_link_as_root_is_refused)
{
    char *root = kt_at(*state, "link");
    assert_int_equal(symlink(*state, root), 0);
    expect_refused(root, "link");
}

KT_TEST_IN_DIR(S6_a_root_of_somebody_else_is_refused)
{
    if (geteuid() != 0) {
        skip(); /* only root can give directories away */
    }
    char *root = kt_at(*state, "theirs");
    assert_int_equal(mkdir(root, 0700), 0);
    assert_int_equal(chown(root, 12345, 12345), 0);
    expect_refused(root, "belongs to user 12345");
}

static int read_only_child(const char *root)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(root);
    bool right = ks_get(cache, "x", &compile) == KILN_ORIGIN_DISK &&
                 ks_get(cache, "y", &compile) == KILN_ORIGIN_COMPILED &&
                 strstr(kiln_cache_disk_reason(cache), root) != NULL &&
                 strcmp(kiln_cache_root(cache), root) == 0 && ks_own(cache).put_failures == 0;
    kiln_cache_destroy(cache);
    return right ? 0 : 1;
}

KT_TEST_IN_DIR(S4_S8_a_root_that_cannot_be_written_is_read_and_told)
{
    ks_compile compile = {0};
    char *root = kt_at(*state, "root");
    int status = 0;
    assert_int_equal(chmod(*state, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        /* Root may write anywhere: become a user who may not. */
        if (geteuid() == 0 && (mkdir(root, 0700) != 0 || chown(root, 65534, 65534) != 0 ||
                               setresuid(65534, 65534, 65534) != 0)) {
            _exit(2);
        }
        kiln_cache *cache = ks_cache(root);
        (void)ks_get(cache, "x", &compile);
        kiln_cache_destroy(cache);
        if (chmod(root, 0500) != 0) {
            _exit(3);
        }
        size_t before = kt_file_count(root);
        int result = read_only_child(root);
        _exit(chmod(root, 0700) != 0 || kt_file_count(root) != before ? 4 : result);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

KT_TEST_IN_DIR(S8_a_file_in_the_way_is_told)
{
    char *root = kt_at(*state, "file");
    kt_file_write(root, "x", 1);
    expect_refused(root, "");
}

KT_TEST_IN_DIR(S4_missing_home_is_no_obstacle)
{
    ks_compile compile = {0};
    char *tmp = kt_at(*state, "tmp");
    assert_int_equal(mkdir(tmp, 0700), 0);
    assert_int_equal(setenv("HOME", "/nonexistent/home", 1), 0);
    assert_int_equal(setenv("TMPDIR", tmp, 1), 0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    kiln_cache *cache = ks_cache_with(NULL, KILN_CACHE_READONLY);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* --- options ---------------------------------------------------------------------------------- */

KT_TEST(malformed_variables_are_named)
{
    const char *bad[][2] = {
        {"KILN_CACHE_DIR", "relative/path"},
        {"KILN_CACHE_MAX_SIZE", "many"},
        {"KILN_CACHE_MAX_SIZE", "0"},
        {"KILN_CACHE_MAX_SIZE", "-1"},
        {"KILN_NO_CACHE", "maybe"},
        {"KILN_RECACHE", "2"},
        {"KILN_READONLY", "x"},
        {"KILN_FSYNC", "?"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kiln_cache_options options;
        kiln_cache *cache = NULL;
        kiln_diag diag = KILN_DIAG_INIT;
        char line[2048];
        assert_int_equal(setenv(bad[i][0], bad[i][1], 1), 0);
        assert_int_equal(kiln_cache_options_init(&options, &diag), KILN_E_INVALID);
        (void)kiln_diag_format(&diag, line, sizeof line);
        assert_non_null(strstr(line, bad[i][0]));
        assert_true(options.disk_max_bytes > 0);
        assert_int_equal(options.flags, 0);
        assert_int_equal(kiln_cache_create(NULL, &cache, &diag), KILN_E_INVALID);
        assert_null(cache);
        kiln_diag_clear(&diag);
        assert_int_equal(unsetenv(bad[i][0]), 0);
    }
}

KT_TEST_IN_DIR(variables_are_taken)
{
    kiln_cache_options options;
    assert_int_equal(setenv("KILN_CACHE_DIR", *state, 1), 0);
    assert_int_equal(setenv("KILN_CACHE_MAX_SIZE", "3M", 1), 0);
    assert_int_equal(setenv("KILN_NO_CACHE", "1", 1), 0);
    assert_int_equal(setenv("KILN_RECACHE", "yes", 1), 0);
    assert_int_equal(setenv("KILN_READONLY", "on", 1), 0);
    assert_int_equal(setenv("KILN_FSYNC", "0", 1), 0);
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    assert_string_equal(options.root, *state);
    assert_int_equal(options.disk_max_bytes, 3 << 20);
    assert_int_equal(options.flags, KILN_CACHE_DISABLED | KILN_CACHE_RECACHE | KILN_CACHE_READONLY);
    assert_true(options.no_fsync);
    const char *names[] = {"KILN_CACHE_DIR", "KILN_CACHE_MAX_SIZE", "KILN_NO_CACHE",
                           "KILN_RECACHE",   "KILN_READONLY",       "KILN_FSYNC"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(unsetenv(names[i]), 0);
    }
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    assert_int_equal(options.disk_max_bytes, UINT64_C(2) << 30);

    kiln_cache *cache = NULL;
    options.struct_size = 8;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_E_INVALID);
    options.struct_size = sizeof options;
    options.root = "relative";
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_E_INVALID);
}

KT_TEST_IN_DIR(the_floor_of_free_space_is_what_was_asked_for)
{
    static const struct {
        const char *text;
        uint64_t floor;
    } rows[] = {{"", 0}, {"0", UINT64_MAX}, {"1", 1}, {"2G", UINT64_C(2) << 30}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_cache_options options;
        assert_int_equal(setenv("KILN_CACHE_MIN_FREE", rows[i].text, 1), 0);
        assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
        assert_int_equal(options.disk_min_free, rows[i].floor);
    }
    assert_int_equal(unsetenv("KILN_CACHE_MIN_FREE"), 0);
}

KT_TEST_IN_DIR(S8_bypasses_and_rejections_are_counted)
{
    kiln_cache *cache = ks_cache(*state);
    kt_counters total;
    kiln_cache_count_bypass(cache, "k.cl", "__DATE__ is used");
    kn_cache_count_rejected(cache);
    assert_int_equal(ks_own(cache).bypassed, 1);
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_int_equal(total.bypassed, 1);
    assert_int_equal(total.rejected, 1);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(a_broken_recipe_is_refused)
{
    ks_compile compile = {.text = "x"};
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("x");
    kiln_blob *blob = NULL;
    kiln_recipe_add_text(recipe, "bad name", "", 0);
    assert_int_equal(
        kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob, NULL, NULL),
        KILN_E_INVALID);
    assert_int_equal(compile.runs, 0);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

/* A field of length 0 is empty: its pointer is not read, and may be NULL. */
KT_TEST_IN_DIR(fields_are_as_long_as_they_say)
{
    kiln_cache *cache = ks_cache(*state);
    const char unended[] = {'x', 'y', 'z'};
    const char *const texts[] = {"", unended, NULL, unended};
    ks_compile compile = {.text = "x"};
    for (size_t i = 0; i < 4; i++) {
        const kiln_field fields[] = {{"source", texts[i], i / 3}, {"options", "-O", 2}};
        kiln_blob *blob = NULL;
        assert_int_equal(
            kiln_cache_compile(cache, "test", fields, 2, ks_compile_run, &compile, &blob, NULL),
            KILN_OK);
        assert_int_equal(compile.runs, 1 + i / 3);
        kiln_blob_release(blob);
    }
    kiln_cache_destroy(cache);
}

/* --- out of memory ---------------------------------------------------------------------------- */

typedef struct without_memory {
    const char *dir;
    int round;
} without_memory;

/* Cold and warm, each in a cache object of its own: either the right bytes or KILN_E_NOMEM. */
static bool live_without_memory(void *user)
{
    without_memory *w = user;
    char root[1024];
    bool worked = true;
    (void)snprintf(root, sizeof root, "%s/root%d", w->dir, w->round++ / 2);
    for (int i = 0; i < 2 && worked; i++) {
        kiln_cache_options options;
        kiln_cache *cache = NULL;
        kiln_recipe *recipe = NULL;
        kiln_blob *blob = NULL, *again = NULL;
        kiln_diag diag = KILN_DIAG_INIT;
        ks_compile compile = {.text = "x"};
        kiln_status status = kiln_cache_options_init(&options, &diag);
        options.root = root;
        options.no_fsync = true;
        if (status == KILN_OK) {
            status = kiln_cache_create(&options, &cache, &diag);
        }
        if (status == KILN_OK) {
            status = kiln_recipe_create("test", 1, &recipe, &diag);
        }
        if (status == KILN_OK) {
            status = kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob, NULL,
                                               &diag);
        }
        if (status == KILN_OK) {
            assert_memory_equal(kiln_blob_data(blob), "x", 1);
            kiln_key key = kiln_recipe_key(recipe);
            status = kiln_cache_get(cache, &key, &again, NULL, &diag);
            assert_true(status == KILN_OK || status == KILN_MISS);
            status = KILN_OK;
        }
        assert_true(status == KILN_OK || status == KILN_E_NOMEM);
        worked = status == KILN_OK;
        kiln_diag_clear(&diag);
        kiln_blob_release(blob);
        kiln_blob_release(again);
        kiln_recipe_destroy(recipe);
        kiln_cache_destroy(cache);
    }
    return worked;
}

KT_TEST_IN_DIR(S4_the_cache_survives_failing_allocations)
{
    without_memory w = {.dir = *state};
    assert_true(kt_failalloc_each(live_without_memory, &w) > 20);
}

KT_TEST(every_origin_has_its_name)
{
    static const char *const names[] = {"none", "compiled", "memory", "disk",
                                        "pack", "remote",   "shared", "unknown"};
    for (int i = 0; i < 8; i++) {
        assert_string_equal(kiln_origin_name((kiln_origin)i), names[i]);
    }
}

KT_MAIN(NULL, NULL)
