/* Every file system call of a cold and of a warm request fails once, in each way it can: the caller
 * gets the right bytes all the same, nothing wrong is stored, and no litter is left. */
#include "unit/store/support.h"

#include <unistd.h>

#include "kiln/unstable/pack.h"

#include "support/counters.h"
#include "support/faultfs.h"
#include "support/suite.h"

static const char *const ops[] = {"open", "write", "read",   "writeback", "rename",
                                  "lock", "mkdir", "unlink", "link",      "tmpfile"};
static const char *const effects[] = {"ENOSPC", "EIO",    "EDQUOT",   "EROFS", "ESTALE", "EEXIST",
                                      "EACCES", "EMFILE", "late-EIO", "short", "ENOLCK", "EINTR"};

/* Only where that fails is the disk asked to write: a thousand times take their time. */
static bool syncing = true;

static kiln_cache *open_cache(const char *root)
{
    kiln_cache_options options = ks_options(root);
    options.no_fsync = !syncing;
    return ks_open(&options);
}

/* Cold, warm, warm after damage, removed; each in a cache object of its own. */
static void live(const char *root, const char *entry)
{
    ks_compile compile = {0};
    kiln_cache *cache = open_cache(root);
    (void)ks_get(cache, "x", &compile);
    kiln_cache_destroy(cache);
    cache = open_cache(root);
    (void)ks_get(cache, "x", &compile);
    kiln_cache_destroy(cache);
    if (entry != NULL && kt_file_exists(entry)) {
        kt_file_write(entry, "damaged", 7);
    }
    cache = open_cache(root);
    (void)ks_get(cache, "x", &compile);
    kiln_recipe *recipe = ks_recipe("x");
    kiln_key key = kiln_recipe_key(recipe);
    kiln_status removed = kiln_cache_remove(cache, &key, NULL);
    assert_true(removed == KILN_OK || removed == KILN_MISS || removed == KILN_E_IO);
    (void)ks_get(cache, "x", &compile);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

/* Without faults: whole entries (but for the damage that the test did itself, where the disk tier
 * was off just then), no temporaries, and requests are hits again. */
static void expect_sound(const char *root, const char *entry, const char *rule)
{
    ks_compile compile = {0};
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    kiln_cache *cache = open_cache(root);
    assert_int_equal(kiln_cache_verify(cache, false, &verified, NULL), KILN_OK);
    if (verified.entries_bad != 0) {
        char *bytes = kt_file_read(entry, NULL);
        if (bytes == NULL || strcmp(bytes, "damaged") != 0) {
            fail_msg("%s left a damaged entry", rule);
        }
        free(bytes);
    }
    (void)ks_get(cache, "x", &compile);
    kiln_cache_destroy(cache);
    cache = open_cache(root);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_DISK);
    kiln_cache_destroy(cache);
    char *tmp = kt_at(root, "tmp");
    /* A file whose removal fails, or whose making is reported as failed, is for the sweep. */
    if (kt_file_count(tmp) != 0 && strncmp(rule, "unlink", 6) != 0 &&
        strstr(rule, ":late-") == NULL) {
        fail_msg("%s left temporaries", rule);
    }
}

/* The path of the test's entry below any root. */
static char *where_it_lies(const char *dir)
{
    ks_compile compile = {0};
    char *root = kt_at(dir, "pattern");
    kiln_cache *cache = open_cache(root);
    (void)ks_get(cache, "x", &compile);
    char *path = ks_only_entry(cache);
    char *relative = strdup(path + strlen(root) + 1);
    kiln_cache_destroy(cache);
    free(path);
    return relative;
}

KT_TEST_IN_DIR(S4_D1_any_failing_call_leaves_the_caller_unharmed)
{
    char rule[64], name[64];
    uint64_t injected = 0;
    int runs = 0;
    char *relative = where_it_lies(*state);
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        syncing = strcmp(ops[o], "writeback") == 0;
        for (size_t e = 0; e < sizeof effects / sizeof *effects; e++) {
            for (int n = 1;; n++) {
                (void)snprintf(name, sizeof name, "root%d", runs++);
                (void)snprintf(rule, sizeof rule, "%s:%d:%s", ops[o], n, effects[e]);
                char *root = kt_at(*state, name);
                char *entry = kt_at(root, relative);
                kt_faultfs_set(*state, rule);
                live(root, entry);
                uint64_t hits = kt_faultfs_hits();
                kt_faultfs_set(NULL, NULL);
                expect_sound(root, entry, rule);
                injected += hits;
                if (hits == 0) {
                    break;
                }
            }
        }
    }
    syncing = true;
    free(relative);
    print_message("%d runs, %llu faults\n", runs, (unsigned long long)injected);
    assert_true(injected > 300);
}

/* Everything of a kind fails for as long as the program runs. */
KT_TEST_IN_DIR(S4_a_store_that_never_works_is_only_slow)
{
    const char *rules[] = {
        "open:*:EACCES", "write:*:ENOSPC",  "rename:*:EROFS",
        "mkdir:*:EROFS", "writeback:*:EIO", "read:*:EIO",
        "lock:*:ENOLCK", "unlink:*:EACCES", "open:*:EROFS;mkdir:*:EROFS;unlink:*:EROFS",
        "write:*:short", "read:*:short",
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        ks_compile compile = {0};
        char name[32];
        (void)snprintf(name, sizeof name, "never%zu", i);
        char *root = kt_at(*state, name);
        kt_faultfs_set(*state, rules[i]);
        for (int round = 0; round < 3; round++) {
            kiln_cache *cache = open_cache(root);
            (void)ks_get(cache, "x", &compile);
            (void)ks_get(cache, "y", &compile);
            assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_MEMORY);
            kiln_cache_destroy(cache);
        }
        kt_faultfs_set(NULL, NULL);
    }
}

KT_TEST_IN_DIR(S8_what_could_not_be_stored_is_counted)
{
    ks_compile compile = {0};
    kiln_cache *cache = open_cache(*state);
    kt_faultfs_set(*state, "write:*:ENOSPC:tmp");
    (void)ks_get(cache, "x", &compile);
    (void)ks_get(cache, "y", &compile);
    kt_faultfs_set(NULL, NULL);
    assert_int_equal(ks_own(cache).put_failures, 2);
    assert_int_equal(ks_own(cache).puts, 0);
    assert_int_equal(ks_own(cache).compiles, 2);
    kt_counters total;
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_int_equal(total.put_failures, 2);
    kiln_cache_destroy(cache);
}

static uint64_t count_calls(kiln_cache *cache, const char *root, const char *stage,
                            const char *rule)
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    assert_int_equal(kiln_recipe_create(stage, 1, &recipe, NULL), KILN_OK);
    kiln_recipe_set_target(recipe, "any");
    assert_int_equal(kiln_blob_create("x", 1, NULL, 0, &blob, NULL), KILN_OK);
    kt_faultfs_set(root, rule);
    assert_int_equal(kiln_cache_put(cache, recipe, blob, 0, NULL), KILN_OK);
    const uint64_t hits = kt_faultfs_hits();
    kt_faultfs_set(NULL, NULL);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return hits;
}

/* What is compiled is written at once; a note is made again in no time, and so is a list of
 * headers.
 */
KT_TEST_IN_DIR(S3_no_put_waits_for_the_disk)
{
    static const struct {
        const char *stage;
        uint64_t written;
    } rows[] = {{"compiled", 1}, {"kiln.noted", 0}, {"headers", 0}, {"headers2", 1}};
    kiln_cache *cache = open_cache(*state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(count_calls(cache, *state, rows[i].stage, "writeback:*:sleep-1"),
                         rows[i].written);
    }
    assert_int_equal(count_calls(cache, *state, "compiled2", "fsync:*:sleep-1"), 0);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(C2_a_lost_rename_race_is_no_failure)
{
    ks_compile compile = {0};
    kiln_cache *cache = open_cache(*state), *other = open_cache(*state);
    (void)ks_get(cache, "x", &compile);
    kiln_cache_destroy(cache);
    for (int i = 0; i < 3; i++) {
        const char *rules[] = {"rename:*:EEXIST", "rename:*:ESTALE", "rename:*:EBUSY"};
        cache = ks_cache_with(*state, KILN_CACHE_RECACHE);
        kt_faultfs_set(*state, rules[i]);
        assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
        kt_faultfs_set(NULL, NULL);
        assert_int_equal(ks_own(cache).put_failures, 0);
        kiln_cache_destroy(cache);
    }
    assert_int_equal(ks_get(other, "x", &compile), KILN_ORIGIN_DISK);
    kiln_cache_destroy(other);
    char *tmp = kt_at(*state, "tmp");
    assert_int_equal(kt_file_count(tmp), 0);
}

/* What cannot be read just now (no descriptor left, a network that is down) is not damaged. */
KT_TEST_IN_DIR(verifying_removes_nothing_that_it_could_not_read)
{
    static const char *const rules[] = {"open:*:EMFILE:.kiln", "read:*:EIO:.kiln",
                                        "open:*:EACCES:.kiln"};
    ks_compile compile = {0};
    kiln_verify_result result = {.struct_size = sizeof(result)};
    kiln_cache *cache = open_cache(*state);
    (void)ks_get(cache, "x", &compile);
    (void)ks_get(cache, "y", &compile);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        kt_faultfs_set(*state, rules[i]);
        assert_int_equal(kiln_cache_verify(cache, true, &result, &diag), KILN_E_IO);
        assert_true(kt_faultfs_hits() > 0);
        kt_faultfs_set(NULL, NULL);
        assert_int_equal(result.entries_bad, 0);
        assert_int_equal(diag.status, KILN_E_IO);
        assert_true(diag.vendor_code != 0);
        kiln_diag_clear(&diag);
        assert_int_equal(kiln_cache_verify(cache, true, &result, NULL), KILN_OK);
        assert_int_equal(result.entries_good, 2);
    }
    assert_int_equal(ks_own(cache).corrupt, 0);
    kiln_cache_destroy(cache);
}

/* By its key alone an entry is looked for in each target's directory. */
KT_TEST_IN_DIR(one_dir_that_cannot_be_read_hides_no_other)
{
    static const char *const targets[] = {"first", "second", "third"};
    kiln_key keys[3];
    kiln_cache *cache = open_cache(*state);
    for (size_t i = 0; i < 3; i++) {
        kiln_recipe *recipe = NULL;
        kiln_blob *blob = ks_blob("x");
        assert_int_equal(kiln_recipe_create("test", 1, &recipe, NULL), KILN_OK);
        kiln_recipe_set_target(recipe, targets[i]);
        keys[i] = kiln_recipe_key(recipe);
        assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    kiln_cache_destroy(cache);
    for (size_t bad = 0; bad < 3; bad++) {
        char rule[64];
        (void)snprintf(rule, sizeof rule, "open:*:EACCES:/%s/", targets[bad]);
        cache = open_cache(*state);
        kt_faultfs_set(*state, rule);
        for (size_t i = 0; i < 3; i++) {
            kiln_blob *blob = NULL;
            assert_int_equal(kiln_cache_get(cache, &keys[i], &blob, NULL, NULL),
                             i == bad ? KILN_MISS : KILN_OK);
            kiln_blob_release(blob);
        }
        kt_faultfs_set(NULL, NULL);
        assert_true(ks_own(cache).io_errors >= 1);
        kiln_cache_destroy(cache);
    }
}

/* A store that cannot list one of its directories is kept within its cap all the same. */
KT_TEST_IN_DIR(S1_one_dir_that_cannot_be_listed_stops_no_eviction)
{
    ks_compile compile = {0};
    kiln_prune_result result = {.struct_size = sizeof(result)};
    kiln_diag diag = KILN_DIAG_INIT;
    char name[16];
    kiln_cache_options options = ks_options(*state);
    options.disk_max_files = 20;
    kiln_cache *cache = ks_open(&options);
    (void)ks_get(cache, "in the way", &compile);
    char *bad = ks_only_entry(cache);
    *strrchr(bad, '/') = '\0';
    char rule[1200];
    (void)snprintf(rule, sizeof rule, "open:*:EIO:%s", bad);
    kt_faultfs_set(*state, rule);
    for (int i = 0; i < 60; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)ks_get(cache, name, &compile);
    }
    assert_true(kt_faultfs_hits() > 0);
    assert_true(ks_own(cache).evicted >= 39);
    assert_true(ks_own(cache).io_errors > 0);
    assert_int_equal(kiln_cache_clear(cache, &result, &diag), KILN_E_IO);
    assert_int_equal(diag.status, KILN_E_IO);
    kt_faultfs_set(NULL, NULL);
    free(ks_only_entry(cache)); /* all but that one are gone */
    kiln_diag_clear(&diag);
    kiln_cache_destroy(cache);
    free(bad);
}

static kiln_status write_pack(const char *path, kiln_cache *cache, kiln_diag *diag)
{
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    assert_int_equal(kiln_pack_writer_create(path, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, NULL),
                     KILN_OK);
    kiln_status status = kiln_pack_writer_finish(writer, NULL, diag);
    kiln_pack_writer_destroy(writer);
    return status;
}

/* A container's file that is mounted over the pack's name answers every rename with EBUSY. */
KT_TEST_IN_DIR(a_pack_that_could_not_be_put_in_place_says_so)
{
    ks_compile compile = {0};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_pack *pack = NULL;
    char *path = kt_at(*state, "app.kpack"), *root = kt_at(*state, "root");
    kiln_cache *cache = open_cache(root);
    (void)ks_get(cache, "x", &compile);
    assert_int_equal(write_pack(path, cache, NULL), KILN_OK);
    (void)ks_get(cache, "y", &compile);
    kt_faultfs_set(*state, "rename:*:EBUSY");
    const kiln_status status = write_pack(path, cache, &diag);
    kt_faultfs_set(NULL, NULL);
    assert_int_equal(status, KILN_E_IO);
    assert_non_null(strstr(diag.fix, "mounted"));
    assert_int_equal(kiln_pack_open(path, &pack, NULL), KILN_OK);
    assert_int_equal(kiln_pack_get_info(pack)->entries, 1);
    kiln_pack_close(pack);
    kiln_diag_clear(&diag);
    kiln_cache_destroy(cache);
}

/* Where a removal takes long, a put removes no more than it must: the rest is for those after it.
 */
KT_TEST_IN_DIR(S3_no_put_waits_for_a_slow_eviction)
{
    enum { FILES = 40 };
    ks_compile compile = {0};
    kiln_cache_options options = ks_options(*state);
    options.disk_max_files = FILES;
    kiln_cache *cache = ks_open(&options);
    for (int i = 0; i < FILES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)ks_get(cache, name, &compile);
    }
    assert_int_equal(ks_own(cache).evicted, 0);
    kt_faultfs_set(*state, "unlink:*:sleep-50");
    (void)ks_get(cache, "one more", &compile);
    assert_int_equal(ks_own(cache).evicted, 1);
    kt_faultfs_set("", "");
    (void)ks_get(cache, "another", &compile);
    assert_true(ks_own(cache).evicted > 1); /* down to 90 % */
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
