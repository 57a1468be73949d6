/* Packs: round trips, golden files, damage, several in order, and what the cache makes of them. */
#include "unit/store/support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "kiln/unstable/pack.h"

#include "base/checked.h"
#include "key/recipe.h"
#include "store/format/blob.h"
#include "store/pack/pack.h"
#include "support/counters.h"
#include "support/failalloc.h"
#include "support/suite.h"
#include "sys/file.h"
#include "sys/thread.h"

#define SEP KN_PATH_LIST_SEPARATOR

/* A pack whose records need its dictionary. */
static const char with_dictionary[] = KILN_GOLDEN "/pack-v1-zstd.kpack";
enum { GOLDEN = 40 }; /* its entries */

/* A recipe like those of real kernels: most of it is the same in each. */
static kiln_recipe *kernel_recipe(unsigned index)
{
    char text[128];
    kiln_recipe *recipe = ks_recipe("kernel");
    int length = snprintf(text, sizeof text, "__kernel void k%u(__global float *x) {}", index);
    kiln_recipe_add_text(recipe, "source", text, (size_t)length);
    return recipe;
}

/* Bytes that share phrases between kernels and have some of their own. */
static size_t kernel_bytes(unsigned index, char *out, size_t size)
{
    size_t at = 0;
    uint32_t state = index * 2654435761u + 1;
    while (at + 64 < size) {
        state = state * 1664525u + 1013904223u;
        at += (size_t)snprintf(out + at, size - at, "OpLoad %%float %%%u; OpFMul %%float %%a%u; ",
                               state >> 28, (state >> 20) & 7);
    }
    return at;
}

static kiln_blob *kernel_blob(unsigned index)
{
    char bytes[3000];
    kiln_blob *blob = NULL;
    size_t size = kernel_bytes(index, bytes, 1000 + index % 2000);
    assert_int_equal(kiln_blob_create(bytes, size, "facts", 5, &blob, NULL), KILN_OK);
    atomic_store(&blob->compile_ns, 1000000 + index);
    return blob;
}

static kiln_pack *open_pack(const char *path)
{
    kiln_pack *pack = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = kiln_pack_open(path, &pack, &diag);
    if (status != KILN_OK) {
        print_message("%s: %s\n", diag.what, diag.why);
    }
    assert_int_equal(status, KILN_OK);
    return pack;
}

static kiln_pack_info write_pack(const char *path, unsigned first, unsigned end, bool raw)
{
    kiln_pack_writer *writer = NULL;
    kiln_pack_info info = {.struct_size = sizeof(info)};
    const kiln_pack_writer_options options = {.struct_size = sizeof options, .raw = raw};
    assert_int_equal(kiln_pack_writer_create(path, &options, &writer, NULL), KILN_OK);
    for (unsigned i = first; i < end; i++) {
        kiln_recipe *recipe = kernel_recipe(i);
        kiln_blob *blob = kernel_blob(i);
        bool added = false;
        assert_int_equal(kiln_pack_writer_add_blob(writer, recipe, blob, &added, NULL), KILN_OK);
        assert_true(added);
        assert_int_equal(kiln_pack_writer_add_blob(writer, recipe, blob, &added, NULL), KILN_OK);
        assert_false(added);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    assert_int_equal(kiln_pack_writer_finish(writer, &info, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    return info;
}

/* Entry `index` of the pack, or that it has none. */
static void assert_has(kiln_pack *pack, unsigned index, bool expected)
{
    kiln_recipe *recipe = kernel_recipe(index);
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *found = NULL, *wanted = kernel_blob(index);
    kiln_status status = kiln_pack_get(pack, &key, &found, NULL);
    assert_int_equal(status, expected ? KILN_OK : KILN_MISS);
    if (expected) {
        assert_int_equal(kiln_blob_size(found), kiln_blob_size(wanted));
        assert_memory_equal(kiln_blob_data(found), kiln_blob_data(wanted), kiln_blob_size(wanted));
        assert_int_equal((uintptr_t)kiln_blob_data(found) % 16, 0);
        assert_int_equal((uintptr_t)kiln_blob_facts(found) % 16, 0);
        assert_int_equal(kiln_blob_facts_size(found), 5);
        assert_memory_equal(kiln_blob_facts(found), "facts", 5);
        assert_int_equal(kiln_blob_compile_ns(found), 1000000 + index);
        assert_true(kn_span_equal(found->recipe, kn_recipe_span(recipe)));
    }
    kiln_blob_release(found);
    kiln_blob_release(wanted);
    kiln_recipe_destroy(recipe);
}

static void round_trip(const char *dir, unsigned count, bool raw)
{
    char *path = kt_at(dir, "a.kpack");
    kiln_pack_info written = write_pack(path, 0, count, raw);
    assert_int_equal(kt_file_count(dir), 1); /* no temporary is left */
    kiln_pack *pack = open_pack(path);
    const kiln_pack_info read = *kiln_pack_get_info(pack);
    assert_int_equal(read.entries, count);
    assert_int_equal(read.file_bytes, written.file_bytes);
    assert_int_equal(read.dictionary_bytes, written.dictionary_bytes);
    assert_string_equal(read.kiln_version, written.kiln_version);
    for (unsigned i = 0; i < count; i++) {
        assert_has(pack, i, true);
    }
    for (unsigned i = count; i < count + 20; i++) {
        assert_has(pack, i, false);
    }
    kiln_verify_result result = {.struct_size = sizeof(result)};
    assert_int_equal(kiln_pack_verify(pack, &result, NULL), KILN_OK);
    assert_int_equal(result.entries_good, count);
    assert_int_equal(result.entries_bad, 0);
    kiln_pack_close(pack);
}

KT_TEST_IN_DIR(packs_round_trip)
{
    static const unsigned counts[] = {0, 1, 7, 8, 300, 3000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        round_trip(*state, counts[i], false);
        round_trip(*state, counts[i], true);
    }
}

KT_TEST_IN_DIR(a_dictionary_makes_small_entries_smaller)
{
    char *path = kt_at(*state, "a.kpack");
    kiln_pack_info raw = write_pack(path, 0, 400, true);
    kiln_pack_info packed = write_pack(path, 0, 400, false);
    assert_int_equal(raw.dictionary_bytes, 0);
    assert_true(packed.dictionary_bytes > 0);
    assert_true(packed.file_bytes * 4 < raw.file_bytes);
}

KT_TEST_IN_DIR(a_blob_outlives_its_pack)
{
    char *path = kt_at(*state, "a.kpack");
    (void)write_pack(path, 0, 3, true);
    kiln_pack *pack = open_pack(path);
    kiln_recipe *recipe = kernel_recipe(1);
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *found = NULL, *wanted = kernel_blob(1);
    assert_int_equal(kiln_pack_get(pack, &key, &found, NULL), KILN_OK);
    kiln_pack_close(pack);
#ifdef _WIN32
    skip(); /* a mapped file may be replaced and not removed */
#endif
    assert_int_equal(unlink(path), 0); /* replacing and removing are fine, changing is not */
    assert_memory_equal(kiln_blob_data(found), kiln_blob_data(wanted), kiln_blob_size(wanted));
    kiln_blob_release(found);
    kiln_blob_release(wanted);
    kiln_recipe_destroy(recipe);
}

/* The dictionary is made at its first use, and contexts are handed on, without a lock. */
static void read_all(void *user)
{
    for (unsigned i = 0; i < GOLDEN; i++) {
        assert_has(user, i, true);
    }
}

KT_TEST_IN_DIR(threads_share_a_pack)
{
    enum { THREADS = 4 };
    kn_thread *threads[THREADS];
    kiln_pack *pack = open_pack(with_dictionary);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(kn_thread_start(read_all, pack, &threads[i], NULL), KILN_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
    }
    kiln_pack_close(pack);
}

KT_TEST_IN_DIR(a_pack_depends_on_its_entries_alone)
{
    char *one = kt_at(*state, "1.kpack"), *two = kt_at(*state, "2.kpack");
    kiln_pack_writer *writers[2] = {NULL, NULL};
    kiln_cache *cache = ks_cache(*state);
    ks_compile compile = {.fail = KILN_OK};
    char name[32];
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "entry %u", i);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kiln_pack_writer_create(i == 0 ? one : two, NULL, &writers[i], NULL),
                         KILN_OK);
    }
    assert_int_equal(kiln_pack_writer_add_all(writers[0], cache, NULL, NULL, NULL, &copied, NULL),
                     KILN_OK);
    assert_int_equal(copied.added, 20);
    for (unsigned i = 20; i-- > 0;) { /* the other one in another order */
        (void)snprintf(name, sizeof name, "entry %u", i);
        kiln_recipe *recipe = ks_recipe(name);
        kiln_key key = kiln_recipe_key(recipe);
        assert_int_equal(kiln_pack_writer_add(writers[1], cache, &key, NULL, NULL), KILN_OK);
        kiln_recipe_destroy(recipe);
    }
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kiln_pack_writer_finish(writers[i], NULL, NULL), KILN_OK);
        kiln_pack_writer_destroy(writers[i]);
    }
    char *first = kt_file_read(one, &sizes[0]), *second = kt_file_read(two, &sizes[1]);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(first, second, sizes[0]);
    free(first);
    free(second);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(adding_keeps_what_is_there)
{
    char *path = kt_at(*state, "a.kpack");
    kiln_pack *base = open_pack(with_dictionary);
    kiln_pack_writer *writer = NULL;
    const kiln_pack_writer_options options = {.struct_size = sizeof options, .base = base};
    assert_int_equal(kiln_pack_writer_create(path, &options, &writer, NULL), KILN_OK);
    for (unsigned i = GOLDEN - 10; i < 60; i++) {
        kiln_recipe *recipe = kernel_recipe(i);
        kiln_blob *blob =
            kernel_blob(i < GOLDEN ? i + 1000 : i); /* others' bytes for what is there */
        bool added = false;
        assert_int_equal(kiln_pack_writer_add_blob(writer, recipe, blob, &added, NULL), KILN_OK);
        assert_int_equal(added, i >= GOLDEN);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    kiln_pack_info info = {.struct_size = sizeof(info)};
    assert_int_equal(kiln_pack_writer_finish(writer, &info, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    assert_int_equal(info.entries, 60);
    assert_has(base, 35, true); /* the old one is still open */
    assert_has(base, 45, false);
    kiln_pack_close(base);
    kiln_pack *pack = open_pack(path);
    for (unsigned i = 0; i < 60; i++) {
        assert_has(pack, i, true);
    }
    kiln_pack_close(pack);
}

/* --- the cache -------------------------------------------------------------------------------- */

static kiln_cache *cache_with_packs(const char *root, const char *packs, uint32_t flags)
{
    kiln_cache_options options = ks_options(root);
    options.flags = flags;
    options.packs = packs;
    return ks_open(&options);
}

/* A pack at `path` of entries with these names, compiled in a cache of its own. */
static void pack_of_names(const char *dir, const char *path, const char *const *names)
{
    char *root = kt_at(dir, "maker");
    kiln_cache *cache = ks_cache(root);
    ks_compile compile = {.fail = KILN_OK};
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    for (; *names != NULL; names++) {
        (void)ks_get(cache, *names, &compile);
    }
    assert_int_equal(kiln_pack_writer_create(path, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, NULL),
                     KILN_OK);
    assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(a_pack_hit_is_kept_in_memory_and_not_on_disk)
{
    char *path = kt_at(*state, "a.kpack"), *root = kt_at(*state, "user");
    pack_of_names(*state, path, (const char *const[]){"one", "two", NULL});
    kiln_cache *cache = cache_with_packs(root, path, 0);
    ks_compile compile = {.fail = KILN_OK};
    assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_PACK);
    assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_MEMORY);
    assert_int_equal(ks_get(cache, "three", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(compile.runs, 1);
    kt_counters stats = ks_own(cache);
    assert_int_equal(stats.hits_pack, 1);
    assert_int_equal(stats.hits_memory, 1);
    assert_int_equal(stats.puts, 1);
    assert_true(stats.saved_ns > 0);
    free(ks_only_entry(cache)); /* "three" alone */
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(packs_work_without_a_disk_and_read_only)
{
    static const uint32_t flags[] = {KILN_CACHE_NO_DISK, KILN_CACHE_READONLY};
    char *path = kt_at(*state, "a.kpack"), *root = kt_at(*state, "none");
    pack_of_names(*state, path, (const char *const[]){"one", NULL});
    for (size_t i = 0; i < 2; i++) {
        kiln_cache *cache = cache_with_packs(root, path, flags[i]);
        ks_compile compile = {.fail = KILN_OK};
        assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_PACK);
        kiln_cache_destroy(cache);
    }
    kiln_cache *off = cache_with_packs(root, path, KILN_CACHE_DISABLED);
    ks_compile compile = {.fail = KILN_OK};
    assert_int_equal(ks_get(off, "one", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(off);
    assert_false(kt_file_exists(root));
}

KT_TEST_IN_DIR(a_bad_pack_is_left_out)
{
    char *good = kt_at(*state, "good.kpack"), *bad = kt_at(*state, "bad.kpack");
    char *root = kt_at(*state, "user");
    char list[4096];
    pack_of_names(*state, good, (const char *const[]){"one", NULL});
    kt_file_write(bad, "not a pack at all", 17);
    (void)snprintf(list, sizeof list, "%s" SEP "%s/absent.kpack" SEP SEP "relative.kpack" SEP "%s",
                   bad, (const char *)*state, good);
    kiln_cache *cache = cache_with_packs(root, list, 0);
    ks_compile compile = {.fail = KILN_OK};
    assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_PACK);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(a_pack_that_everybody_may_write_is_refused)
{
    char *path = kt_at(*state, "a.kpack");
    kiln_pack *pack = NULL;
    struct stat facts;
#ifdef _WIN32
    skip(); /* tests/windows/test_places.c */
#endif
    (void)write_pack(path, 0, 3, false);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0644); /* other users read it */
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(kiln_pack_open(path, &pack, NULL), KILN_E_UNSUPPORTED);
    assert_null(pack);
}

KT_TEST_IN_DIR(extracting_never_replaces)
{
    char *path = kt_at(*state, "a.kpack"), *root = kt_at(*state, "user");
    pack_of_names(*state, path, (const char *const[]){"one", "two", NULL});
    kiln_cache *cache = ks_cache(root);
    kiln_recipe *recipe = ks_recipe("one");
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *fresh = ks_blob("fresher than what was shipped"), *found = NULL;
    assert_int_equal(kiln_cache_put(cache, recipe, fresh, 1, NULL), KILN_OK);
    kiln_pack *pack = open_pack(path);
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    assert_int_equal(kiln_pack_extract(pack, cache, NULL, &copied, NULL), KILN_OK);
    assert_int_equal(copied.added, 1);
    assert_int_equal(copied.present, 1);
    assert_int_equal(kiln_pack_extract(pack, cache, NULL, &copied, NULL), KILN_OK);
    assert_int_equal(copied.added, 0);
    assert_int_equal(copied.present, 2);
    assert_int_equal(kiln_pack_extract(pack, cache, "another-target", &copied, NULL), KILN_OK);
    assert_int_equal(copied.present, 0);
    kiln_cache_destroy(cache);
    cache = ks_cache(root);
    assert_int_equal(kiln_cache_get(cache, &key, &found, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_blob_size(found), kiln_blob_size(fresh));
    ks_compile compile = {.fail = KILN_OK};
    assert_int_equal(ks_get(cache, "two", &compile), KILN_ORIGIN_DISK);
    kiln_blob_release(found);
    kiln_blob_release(fresh);
    kiln_recipe_destroy(recipe);
    kiln_pack_close(pack);
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(notes_of_one_machine_stay_there)
{
    char *path = kt_at(*state, "a.kpack");
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = ks_blob("a note");
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    assert_int_equal(kiln_recipe_create("kiln.memo", 1, &recipe, NULL), KILN_OK);
    assert_int_equal(kiln_cache_put(cache, recipe, blob, 1, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_create(path, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, NULL),
                     KILN_OK);
    assert_int_equal(copied.added, 0);
    assert_int_equal(copied.skipped, 1);
    kiln_pack_writer_destroy(writer); /* unfinished: nothing is left of it */
    assert_false(kt_file_exists(path));
    kiln_recipe_destroy(recipe);
    kiln_blob_release(blob);
    kiln_cache_destroy(cache);
}

/* --- damage ----------------------------------------------------------------------------------- */

/* Every byte in turn is changed: an entry comes out as it went in or not at all, and verify tells.
 */
KT_TEST_IN_DIR(no_changed_byte_gives_wrong_bytes)
{
    size_t size = 0;
    char *bytes = kt_file_read(with_dictionary, &size);
    kiln_recipe *recipe = kernel_recipe(5);
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *wanted = kernel_blob(5);
    for (size_t i = 0; i < size; i++) {
        kiln_pack *pack = NULL;
        kiln_blob *found = NULL;
        kiln_verify_result result = {.struct_size = sizeof(result)};
        bytes[i] = (char)(bytes[i] ^ 0x20);
        if (kn_pack_of(kn_span_of(bytes, size), &pack, NULL) == KILN_OK) {
            if (kiln_pack_get(pack, &key, &found, NULL) == KILN_OK) {
                assert_int_equal(kiln_blob_size(found), kiln_blob_size(wanted));
                assert_memory_equal(kiln_blob_data(found), kiln_blob_data(wanted),
                                    kiln_blob_size(wanted));
            }
            kiln_blob_release(found);
            kn_ignore(kiln_pack_verify(pack, &result, NULL)); /* in bounds is all that it must be */
        }
        kn_pack_release(pack);
        bytes[i] = (char)(bytes[i] ^ 0x20);
    }
    free(bytes);
    kiln_blob_release(wanted);
    kiln_recipe_destroy(recipe);
}

KT_TEST_IN_DIR(a_cut_pack_is_refused)
{
    char *path = kt_at(*state, "a.kpack");
    size_t size = 0;
    (void)write_pack(path, 0, 4, false);
    char *bytes = kt_file_read(path, &size);
    for (size_t cut = 0; cut < size; cut += 7) {
        kiln_pack *pack = NULL;
        assert_int_equal(kn_pack_of(kn_span_of(bytes, cut), &pack, NULL), KILN_E_CORRUPT);
        assert_null(pack);
    }
    free(bytes);
}

KT_TEST_IN_DIR(a_damaged_entry_is_compiled_anew)
{
    char *path = kt_at(*state, "a.kpack"), *root = kt_at(*state, "user");
    size_t size = 0;
    pack_of_names(*state, path, (const char *const[]){"one", NULL});
    char *bytes = kt_file_read(path, &size);
    bytes[16 + 112 + 1] ^= 1; /* in the only record's body */
    kt_file_write(path, bytes, size);
    kiln_cache *cache = cache_with_packs(root, path, 0);
    ks_compile compile = {.fail = KILN_OK};
    assert_int_equal(ks_get(cache, "one", &compile), KILN_ORIGIN_COMPILED);
    assert_true(ks_own(cache).corrupt > 0);
    assert_true(kt_file_exists(path));
    kiln_cache_destroy(cache);
    free(bytes);
}

KT_TEST_IN_DIR(a_failed_pack_leaves_the_old_one)
{
    char *path = kt_at(*state, "a.kpack");
    (void)write_pack(path, 0, 3, false);
    kiln_pack_writer *writer = NULL;
    kiln_recipe *recipe = kernel_recipe(9);
    kiln_blob *blob = kernel_blob(9);
    bool fired = true;
    for (uint64_t n = 1; fired; n++) { /* the n-th allocation fails */
        kt_failalloc_arm(n, false);
        kiln_status status = kiln_pack_writer_create(path, NULL, &writer, NULL);
        if (status == KILN_OK) {
            status = kiln_pack_writer_add_blob(writer, recipe, blob, NULL, NULL);
        }
        if (status == KILN_OK) {
            status = kiln_pack_writer_finish(writer, NULL, NULL);
        }
        fired = kt_failalloc_fired();
        kt_failalloc_disarm();
        kiln_pack_writer_destroy(writer);
        writer = NULL;
        assert_int_equal(kt_file_count(*state), 1);
        if (status ==
            KILN_OK) { /* what it could do without was missing: smaller is all it is for */
            (void)write_pack(path, 0, 3, false);
            continue;
        }
        assert_int_equal(status, KILN_E_NOMEM);
        kiln_pack *pack = open_pack(path);
        assert_has(pack, 2, true);
        kiln_pack_close(pack);
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

/* --- golden ----------------------------------------------------------------------------------- */

KT_TEST_IN_DIR(golden_packs_stay_readable)
{
    static const char *const names[] = {KILN_GOLDEN "/pack-v1-raw.kpack", with_dictionary};
    for (size_t i = 0; i < 2; i++) {
        const unsigned count = i == 0 ? 8 : GOLDEN;
        if (i == 0 && getenv("KILN_UPDATE_GOLDEN") != NULL) {
            (void)write_pack(names[i], 0, count, true);
        }
        kiln_pack *pack = open_pack(names[i]);
        const kiln_pack_info info = *kiln_pack_get_info(pack);
        assert_int_equal(info.entries, count);
        assert_int_equal(info.dictionary_bytes > 0, i == 1);
        for (unsigned j = 0; j < count; j++) {
            assert_has(pack, j, true);
        }
        kiln_pack_close(pack);
    }
}

KT_MAIN(NULL, NULL)
