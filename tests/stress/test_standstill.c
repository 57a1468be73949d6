/* Writers that are stopped at any moment and go on: what they count is counted once, and the totals
 * of the store are never too low. */
#include "stress/crowd.h"

#include "store/format/stats.h"
#include "support/suite.h"

enum { WRITERS = 4, STOPS = 150, STOP_MS = 30 };

static kiln_status give_bytes(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    char bytes[6000];
    crowd *c = user;
    atomic_fetch_add(&c->compiles, 1);
    memset(bytes, 'w', sizeof bytes);
    return kiln_blob_create(bytes, sizeof bytes, NULL, 0, out_blob, diag);
}

static void put_one(crowd *c, kiln_cache *cache, int writer, int n)
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    char text[32];
    const int length = snprintf(text, sizeof text, "%d %d", writer, n);
    bool good = kiln_recipe_create("standstill", 1, &recipe, NULL) == KILN_OK;
    if (good) {
        kiln_recipe_set_target(recipe, "test");
        kiln_recipe_add_text(recipe, "text", text, (size_t)length);
        good =
            kiln_cache_get_or_compile(cache, recipe, give_bytes, c, &blob, NULL, NULL) == KILN_OK;
    }
    atomic_fetch_add(&c->failed, !good);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

static pid_t start_writer(crowd *c, uint64_t max_files, int writer)
{
    const pid_t child = fork();
    if (child == 0) {
        kiln_cache_options options;
        kiln_cache *cache = NULL;
        if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
            _exit(90);
        }
        options.root = c->root;
        options.no_fsync = true;
        options.disk_max_files = max_files;
        if (kiln_cache_create(&options, &cache, NULL) != KILN_OK) {
            _exit(91);
        }
        for (int n = 0; !atomic_load(&c->stop); n++) {
            put_one(c, cache, writer, n);
        }
        kiln_cache_destroy(cache);
        _exit(0);
    }
    return child;
}

static kiln_status count_entry(void *user, const kiln_entry_info *info)
{
    (void)info;
    ++*(uint64_t *)user;
    return KILN_OK;
}

/* The first put counts what is there. A count during which others put may take theirs twice: it is
 * over before they start. */
static void count_first(crowd *c, uint64_t max_files)
{
    int status = 1;
    const pid_t first = start_writer(c, max_files, WRITERS);
    while (atomic_load(&c->compiles) == 0) {
        crowd_pause(2);
    }
    atomic_store(&c->stop, 1);
    assert_int_equal(waitpid(first, &status, 0), first);
    assert_int_equal(status, 0);
    atomic_store(&c->stop, 0);
}

/* The record at the end, and how many entries there are. */
static kn_record stop_and_go(crowd *c, uint64_t max_files, uint64_t *out_entries)
{
    pid_t writers[WRITERS];
    kn_record record;
    size_t size = 0;
    count_first(c, max_files);
    const int before = atomic_load(&c->compiles);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = start_writer(c, max_files, i);
    }
    while (atomic_load(&c->compiles) < before + WRITERS) {
        crowd_pause(2);
    }
    for (int i = 0; i < STOPS; i++) {
        /* Two at a time: one of them may be putting right what the other holds up. */
        const pid_t one = writers[i % WRITERS], two = writers[(i + 1 + i / 7 % 3) % WRITERS];
        assert_int_equal(kill(one, SIGSTOP), 0);
        assert_int_equal(kill(two, SIGSTOP), 0);
        crowd_pause(STOP_MS);
        assert_int_equal(kill(one, SIGCONT), 0);
        assert_int_equal(kill(two, SIGCONT), 0);
        crowd_pause(1 + i % 5);
    }
    atomic_store(&c->stop, 1);
    for (int i = 0; i < WRITERS; i++) {
        int status = 1;
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(c->failed, 0);
    char *path = kt_at(c->root, "stats"), *bytes = kt_file_read(path, &size);
    assert_int_equal(kn_record_parse(kn_span_of(bytes, size), &record), KILN_OK);
    free(bytes);
    kiln_cache *cache = NULL;
    kiln_cache_options options;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = c->root;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    *out_entries = 0;
    assert_int_equal(kiln_cache_walk(cache, NULL, count_entry, out_entries, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    print_message("%d compiles, %llu entries, totals say %llu, copied %s\n", c->compiles,
                  (unsigned long long)*out_entries, (unsigned long long)record.files,
                  record.copied[0] != 0 ? "yes" : "no");
    return record;
}

KT_TEST_IN_DIR(D7_what_stopped_writers_count_is_counted_once)
{
    crowd *c = crowd_create(*state);
    uint64_t entries = 0;
    const kn_record record = stop_and_go(c, UINT64_MAX, &entries);
    assert_int_equal(record.counters[KN_COUNT_compiles], c->compiles);
    assert_int_equal(record.counters[KN_COUNT_puts], c->compiles);
    assert_int_equal(entries, c->compiles);
    assert_int_equal(record.files, entries);
    assert_int_not_equal(record.copied[0], 0); /* a holder was passed over */
    crowd_destroy(c);
}

KT_TEST_IN_DIR(D7_the_cap_holds_and_totals_are_not_too_low)
{
    crowd *c = crowd_create(*state);
    uint64_t entries = 0;
    const kn_record record = stop_and_go(c, 100, &entries);
    assert_int_equal(record.counters[KN_COUNT_compiles], c->compiles);
    assert_true(c->compiles > 200);
    assert_true(entries <= 100 + WRITERS);
    assert_true(record.files >= entries);
    crowd_destroy(c);
}

KT_MAIN(NULL, NULL)
