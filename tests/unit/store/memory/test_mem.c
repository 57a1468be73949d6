/* The memory tier: bounds, order of eviction, and readers that run while everything changes. */
#include "unit/store/support.h"

#include "store/format/blob.h"
#include "store/memory/mem.h"
#include "support/failalloc.h"
#include "support/suite.h"
#include "sys/thread.h"

static kiln_key key_of(uint64_t n)
{
    kiln_key key = {{0}};
    uint64_t mixed = n * UINT64_C(0x9e3779b97f4a7c15);
    memcpy(key.bytes, &mixed, sizeof mixed);
    memcpy(key.bytes + 24, &n, sizeof n);
    return key;
}

/* A blob that says which key it is for, all over. */
static kiln_blob *blob_of(uint64_t n, size_t size)
{
    uint64_t *words = malloc(size);
    kiln_blob *blob = NULL;
    assert_non_null(words);
    for (size_t i = 0; i < size / 8; i++) {
        words[i] = n;
    }
    assert_int_equal(kiln_blob_create(words, size, NULL, 0, &blob, NULL), KILN_OK);
    free(words);
    return blob;
}

static void put(kn_mem *mem, uint64_t n)
{
    kiln_key key = key_of(n);
    kiln_blob *blob = blob_of(n, 64);
    assert_true(kn_mem_put(mem, &key, blob));
    kiln_blob_release(blob);
}

static bool has(kn_mem *mem, uint64_t n)
{
    kiln_key key = key_of(n);
    kiln_blob *blob = kn_mem_get(mem, &key);
    if (blob != NULL) {
        assert_int_equal(*(const uint64_t *)kiln_blob_data(blob), n);
    }
    kiln_blob_release(blob);
    return blob != NULL;
}

static kn_mem *make(uint64_t bytes, uint32_t count)
{
    kn_mem *mem = NULL;
    assert_int_equal(kn_mem_create(bytes, count, &mem, NULL), KILN_OK);
    return mem;
}

KT_TEST(bounded_by_count_least_recently_used_first)
{
    kn_mem *mem = make(1 << 20, 4);
    for (uint64_t n = 0; n < 4; n++) {
        put(mem, n);
    }
    assert_true(has(mem, 0)); /* used: gets a second chance */
    put(mem, 4);
    assert_true(has(mem, 0));
    assert_false(has(mem, 1));
    assert_true(has(mem, 4));
    uint64_t bytes, count;
    kn_mem_size(mem, &bytes, &count);
    assert_int_equal(count, 4);
    kn_mem_destroy(mem);
}

KT_TEST(S1_bounded_by_bytes)
{
    kn_mem *mem = make(100000, 1000);
    for (uint64_t n = 0; n < 500; n++) {
        kiln_key key = key_of(n);
        kiln_blob *blob = blob_of(n, 4096);
        assert_true(kn_mem_put(mem, &key, blob));
        kiln_blob_release(blob);
        uint64_t bytes, count;
        kn_mem_size(mem, &bytes, &count);
        assert_true(bytes <= 100000);
    }
    assert_true(has(mem, 499));
    assert_false(has(mem, 0));
    /* Larger than everything: not kept, and an older one of its key does not stay either. */
    kiln_key key = key_of(499);
    kiln_blob *blob = blob_of(499, 200000);
    assert_true(kn_mem_put(mem, &key, blob));
    kiln_blob_release(blob);
    assert_false(has(mem, 499));
    kn_mem_destroy(mem);
}

KT_TEST(replacing_removing_trimming)
{
    kn_mem *mem = make(1 << 20, 100);
    kiln_key key = key_of(1);
    kiln_blob *first = blob_of(1, 64), *second = blob_of(2, 64);
    assert_true(kn_mem_put(mem, &key, first));
    kiln_blob *held = kn_mem_get(mem, &key);
    assert_ptr_equal(held, first);
    assert_true(kn_mem_put(mem, &key, second));
    kiln_blob *now = kn_mem_get(mem, &key);
    assert_ptr_equal(now, second);
    assert_int_equal(*(const uint64_t *)kiln_blob_data(held), 1); /* ours as long as we hold it */
    kiln_blob_release(now);
    kiln_blob_release(held);
    kiln_blob_release(first);
    kiln_blob_release(second);
    assert_true(kn_mem_remove(mem, &key));
    assert_false(kn_mem_remove(mem, &key));
    for (uint64_t n = 0; n < 100; n++) {
        put(mem, n);
    }
    kn_mem_trim(mem, UINT64_MAX, 10);
    uint64_t bytes, count;
    kn_mem_size(mem, &bytes, &count);
    assert_int_equal(count, 10);
    kn_mem_trim(mem, 0, 0);
    kn_mem_size(mem, &bytes, &count);
    assert_int_equal(count, 0);
    assert_int_equal(bytes, 0);
    kn_mem_destroy(mem);
}

static void look(void *user, kiln_blob *blob)
{
    *(uint64_t *)user = *(const uint64_t *)kiln_blob_data(blob);
}

KT_TEST(hits_are_counted)
{
    kn_mem *mem = make(1 << 20, 100);
    uint64_t hits, saved, seen = 0;
    kiln_key key = key_of(7), none = key_of(8);
    put(mem, 7);
    assert_true(has(mem, 7)); /* took no time to compile */
    kiln_blob *blob = kn_mem_get(mem, &key);
    atomic_store(&blob->compile_ns, 1000);
    assert_true(kn_mem_put(mem, &key, blob));
    kiln_blob_release(blob);
    assert_true(has(mem, 7));
    assert_true(kn_mem_visit(mem, &key, look, &seen));
    assert_int_equal(seen, 7);
    assert_false(kn_mem_visit(mem, &none, look, &seen));
    kn_mem_hits(mem, &hits, &saved);
    assert_int_equal(hits, 4);
    assert_int_equal(saved, 2000);
    kn_mem_destroy(mem);
}

/* PINNED is above the keys that writers change: it is always there. */
enum { KEYS = 200, PINNED = KEYS, THREADS = 6, ROUNDS = 20000 };

typedef struct worker {
    kn_mem *mem;
    uint64_t seed;
    bool writes;
    uint64_t found, wrong;
} worker;

static void check(void *user, kiln_blob *blob)
{
    worker *w = user;
    const uint64_t *words = kiln_blob_data(blob);
    for (size_t i = 1; i < kiln_blob_size(blob) / 8; i++) {
        w->wrong += words[i] != words[0];
    }
    w->found++;
}

static void work(void *user)
{
    worker *w = user;
    for (int round = 0; round < ROUNDS; round++) {
        w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t n = !w->writes && round % 64 == 0 ? PINNED : (w->seed >> 33) % KEYS;
        kiln_key key = key_of(n);
        if (w->writes) {
            if ((w->seed >> 20) % 8 == 0) {
                (void)kn_mem_remove(w->mem, &key);
            } else {
                kiln_blob *blob = blob_of(n, 64);
                (void)kn_mem_put(w->mem, &key, blob);
                kiln_blob_release(blob);
            }
        } else if (round % 2 == 0) {
            (void)kn_mem_visit(w->mem, &key, check, w);
        } else {
            kiln_blob *blob = kn_mem_get(w->mem, &key);
            if (blob != NULL) {
                check(w, blob);
                w->wrong += *(const uint64_t *)kiln_blob_data(blob) != n;
            }
            kiln_blob_release(blob);
        }
    }
}

KT_TEST(readers_never_see_what_was_freed)
{
    kn_mem *mem = make(1 << 20, KEYS / 2);
    worker workers[THREADS];
    kn_thread *threads[THREADS];
    uint64_t found = 0, hits, saved;
    kiln_key pinned = key_of(PINNED);
    kiln_blob *blob = blob_of(PINNED, 64);
    assert_true(kn_mem_pin(mem, &pinned, blob));
    kiln_blob_release(blob);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.mem = mem, .seed = (uint64_t)i + 1, .writes = i < 2};
        assert_int_equal(kn_thread_start(work, &workers[i], &threads[i], NULL), KILN_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
        assert_int_equal(workers[i].wrong, 0);
        found += workers[i].found;
    }
    kn_mem_hits(mem, &hits, &saved);
    assert_int_equal(hits, found);           /* none lost, though nobody took a lock to count */
    assert_true(found >= 4 * (ROUNDS / 64)); /* four readers; whatever else ran */
    kn_mem_destroy(mem);
}

static bool use_without_memory(void *user)
{
    (void)user;
    kn_mem *mem = NULL;
    kiln_blob *blob = NULL;
    kiln_key key = key_of(1);
    bool worked = kiln_blob_create("abc", 3, NULL, 0, &blob, NULL) == KILN_OK &&
                  kn_mem_create(1 << 20, 10, &mem, NULL) == KILN_OK && kn_mem_put(mem, &key, blob);
    if (worked) {
        kiln_blob *got = kn_mem_get(mem, &key);
        assert_ptr_equal(got, blob);
        kiln_blob_release(got);
    }
    kiln_blob_release(blob);
    kn_mem_destroy(mem);
    return worked;
}

KT_TEST(the_tier_survives_failing_allocations)
{
    assert_true(kt_failalloc_each(use_without_memory, NULL) >= 5);
}

KT_MAIN(NULL, NULL)
