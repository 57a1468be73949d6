/* Temporaries that have a name: they count against the cap, are shown, and go with their writers.
 */
#include "unit/store/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "store/disk/disk.h"
#include "support/faultfs.h"
#include "support/suite.h"
#include "sys/clock.h"
#include "sys/publish.h"

/* A writer that has named its temporary, in a process of its own; it ends when the pipe does. */
typedef struct writer {
    pid_t process;
    int alive;
} writer;

static writer start_writer(const char *root, size_t bytes)
{
    int ready[2], alive[2];
    char byte = 0;
    writer started;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(alive), 0);
    started.process = fork();
    if (started.process == 0) {
        kn_publish publish;
        char *tmp = kt_path(root, "tmp"), *path = kt_path(root, "v1/nothing");
        void *data = calloc(1, bytes);
        (void)close(alive[1]);
        if (data == NULL || kn_publish_begin(&publish, tmp, path, NULL) != KILN_OK) {
            _exit(1);
        }
        kn_publish_write(&publish, data, bytes);
        (void)!write(ready[1], "x", 1);
        (void)!read(alive[0], &byte, 1);
        _exit(0);
    }
    assert_int_equal(close(ready[1]), 0);
    assert_int_equal(close(alive[0]), 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(close(ready[0]), 0);
    started.alive = alive[1];
    return started;
}

static void kill_writer(writer *w)
{
    int status = 0;
    assert_int_equal(kill(w->process, SIGKILL), 0);
    assert_int_equal(waitpid(w->process, &status, 0), w->process);
    assert_int_equal(close(w->alive), 0);
}

KT_TEST_IN_DIR(S5_temporaries_go_with_their_writers)
{
    ks_compile compile = {0};
    uint64_t files = 0, bytes = 0;
    kiln_prune_result result = {.struct_size = sizeof(result)};
    const kiln_prune_options options = {.struct_size = sizeof(options), .max_bytes = UINT64_MAX};
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "x", &compile);
    kiln_cache_get_temporaries(cache, &files, &bytes);
    assert_int_equal(files, 0);
    assert_int_equal(bytes, 0);
    writer dead = start_writer(*state, 100000), living = start_writer(*state, 5000);
    kill_writer(&dead);
    kiln_cache_get_temporaries(cache, &files, &bytes);
    assert_int_equal(files, 2);
    assert_int_equal(bytes, 102400 + 8192);
    /* One that is minutes old and nobody's goes; one that has a writer stays. */
    assert_int_equal(kiln_cache_prune(cache, &options, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_removed, 0);
    assert_int_equal(result.temporaries_removed, 1);
    assert_int_equal(result.bytes_removed, 102400);
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
    assert_int_equal(result.temporaries_removed, 0);
    kill_writer(&living);
    assert_int_equal(kiln_cache_clear(cache, &result, NULL), KILN_OK);
    assert_int_equal(result.temporaries_removed, 1);
    kiln_cache_get_temporaries(cache, &files, &bytes);
    assert_int_equal(files, 0);
    kiln_cache_destroy(cache);
}

static uint64_t bytes_below(const char *root, const char *name)
{
    char command[4200];
    unsigned long long bytes = 0;
    (void)snprintf(command, sizeof command,
                   "find '%s/%s' -type f -printf '%%s\\n' | awk '{n+=$1} END {print n+0}'", root,
                   name);
    FILE *answer = popen(command, "r");
    assert_non_null(answer);
    assert_int_equal(fscanf(answer, "%llu", &bytes), 1);
    assert_int_equal(pclose(answer), 0);
    return bytes;
}

/* As a put does: the totals hear of it before it is written. */
static writer start_put(kiln_cache *cache, size_t bytes)
{
    const kiln_key key = {{0}};
    const kn_totals coming = {.files = 1, .bytes = (int64_t)kn_disk_weight(bytes)};
    uint64_t counts = 0;
    (void)kn_disk_make_room(cache->disk, &key, &coming, &counts);
    return start_writer(cache->disk->root, bytes);
}

/* Writers that are killed over and over, where files cannot be made without a name: what they leave
 * is within the cap, and what living ones write counts as well. */
KT_TEST_IN_DIR(S5_temporaries_count_against_the_cap)
{
    enum { CAP = 1 << 20, KILLED = 40, PIECE = 100000 };
    char *piece = calloc(1, PIECE / 5 + 1);
    assert_non_null(piece);
    memset(piece, 'x', PIECE / 5);
    kiln_blob *blob = ks_blob(piece);
    kiln_cache_options options = ks_options(*state);
    options.disk_max_bytes = CAP;
    options.disk_min_free = UINT64_MAX;
    kiln_cache *cache = ks_open(&options);
    writer living = start_put(cache, CAP / 2);
    for (int i = 0; i < KILLED; i++) {
        char name[32];
        writer dead = start_put(cache, PIECE);
        kill_writer(&dead);
        for (int k = 0; k < 5; k++) {
            (void)snprintf(name, sizeof name, "e%d.%d", i, k);
            kiln_recipe *recipe = ks_recipe(name);
            assert_int_equal(kiln_cache_put(cache, recipe, blob, 1000, NULL), KILN_OK);
            kiln_recipe_destroy(recipe);
        }
        assert_true(bytes_below(*state, "tmp") + bytes_below(*state, "v1") <= CAP + 2 * PIECE);
    }
    /* Half of the cap is the living one's: what is in place has the other half. */
    assert_true(bytes_below(*state, "v1") <= CAP / 2 + PIECE);
    kill_writer(&living);
    kiln_blob_release(blob);
    free(piece);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S5_temporaries_are_swept_hourly)
{
    ks_compile compile = {0};
    kiln_cache *cache = NULL;
    char *young = kt_at(*state, "tmp/1-3-0123456789abcdef");
    kn_record record = {0};
    cache = ks_cache(*state);
    (void)ks_get(cache, "x", &compile);
    kiln_cache_destroy(cache);
    kt_file_write(young, "half", 4);

    /* Nobody calls prune: a put does it, when the last sweep is an hour ago. */
    cache = ks_cache(*state);
    (void)ks_get(cache, "z", &compile);
    char *stats = kt_at(*state, "stats");
    size_t size;
    char *bytes = kt_file_read(stats, &size);
    assert_int_equal(kn_record_parse(kn_span_of(bytes, size), &record), KILN_OK);
    assert_true(kt_file_exists(young)); /* the first put swept just now */
    record.swept_ns -= 2 * KN_HOUR_NS;
    unsigned char changed[KN_RECORD_SIZE];
    kn_record_write(&record, changed);
    kt_file_write(stats, changed, sizeof changed);
    (void)ks_get(cache, "y", &compile);
    assert_false(kt_file_exists(young));
    kiln_cache_destroy(cache);
    free(bytes);
}

/* While a put writes, what it is to replace is removed: it is off the totals once. */
/* Of a compiler's process that was killed while it made a precompiled header. One that may still be
 * at work is left alone, and so is what is not a temporary. */
KT_TEST_IN_DIR(S5_halves_of_precompiled_headers_are_swept)
{
    static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *end;
        bool old, stays;
    } rows[] = {{"-00000001.pch.77.tmp", true, false},
                {"-00000001.pch.making", true, false},
                {"-00000002.pch.78.tmp", false, true},
                {"-00000003.pch", true, true},
                {"-00000004.pch.no", true, true}};
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    char *paths[ROWS];
    uint64_t files = 0, bytes = 0;
    kiln_prune_result result = {.struct_size = sizeof(result)};
    const kiln_prune_options all = {.struct_size = sizeof(all), .max_bytes = UINT64_MAX};
    kiln_cache *cache = ks_cache(*state);
    ks_compile compile = {0};
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    char *dir = kt_at(*state, "pch");
    assert_int_equal(mkdir(dir, 0700), 0);
    for (size_t i = 0; i < ROWS; i++) {
        char name[128];
        const struct timespec ago = {.tv_sec = kn_clock_wall() / 1000000000 - 600};
        const struct timespec times[2] = {ago, ago};
        (void)snprintf(name, sizeof(name), "%s%s", digest, rows[i].end);
        paths[i] = kt_path(dir, name);
        kt_file_write(paths[i], "half", 4);
        assert_int_equal(rows[i].old ? utimensat(AT_FDCWD, paths[i], times, 0) : 0, 0);
    }
    kiln_cache_get_temporaries(cache, &files, &bytes);
    assert_int_equal(files, 2);
    assert_int_equal(kiln_cache_prune(cache, &all, &result, NULL), KILN_OK);
    assert_int_equal(result.temporaries_removed, 2);
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(kt_file_exists(paths[i]), rows[i].stays);
        free(paths[i]);
    }
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(S3_what_is_removed_under_a_put_is_subtracted_once)
{
    if (!kt_faultfs_available()) {
        skip();
    }
    ks_compile compile = {0};
    kn_record record = {0};
    int status = 0;
    kiln_cache *cache = ks_cache(*state);
    (void)ks_get(cache, "x", &compile);
    (void)ks_get(cache, "y", &compile);
    const pid_t child = fork();
    if (child == 0) {
        kiln_cache *own = ks_cache_with(*state, KILN_CACHE_RECACHE);
        kt_faultfs_set(*state, "link:1:sleep-400");
        (void)ks_get(own, "x", &compile);
        kiln_cache_destroy(own);
        _exit(0);
    }
    const struct timespec pause = {.tv_nsec = 200000000};
    (void)nanosleep(&pause, NULL);
    kiln_recipe *recipe = ks_recipe("x");
    const kiln_key key = kiln_recipe_key(recipe);
    (void)!kiln_cache_remove(cache, &key, NULL);
    kiln_recipe_destroy(recipe);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    kiln_cache_destroy(cache);
    char *stats = kt_at(*state, "stats"), *v1 = kt_at(*state, "v1");
    size_t size = 0;
    char *bytes = kt_file_read(stats, &size);
    assert_int_equal(kn_record_parse(kn_span_of(bytes, size), &record), KILN_OK);
    assert_int_equal(record.files, kt_file_count(v1));
    free(bytes);
}

KT_MAIN(NULL, NULL)
