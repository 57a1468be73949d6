/* Memory hits of bench_cache: kiln against a hash map under a read-write lock, with one thread and
 * with two. Time is that of the threads' processors, so that other programs on the machine do not
 * count. */
#include "bench/cache.h"

#include <kiln/cache.h>
#include <kiln/unstable/memory.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 1024, BYTES = 256, HITS = 20000, BURSTS = 20 };
/* A burst is shorter than a time slice, and begins when all threads are at work: so they run side
 * by side even on a machine that has other things to do. */

typedef struct map_node {
    struct map_node *next;
    kiln_key key;
    unsigned char bytes[BYTES];
} map_node;

typedef struct rig {
    kiln_cache *cache;
    kiln_key keys[KEYS];
    map_node *buckets[2 * KEYS];
    pthread_rwlock_t lock;
} rig;

typedef struct worker {
    rig *rig;
    void (*work)(rig *rig, uint64_t *sum);
    _Atomic int *arrived;
    int threads;
    uint64_t sum;
    double seconds[BURSTS];
} worker;

static void add_up(void *user, kiln_blob *blob)
{
    *(uint64_t *)user += *(const unsigned char *)kiln_blob_data(blob);
}

static void hit_in_place(rig *r, uint64_t *sum)
{
    for (uint32_t i = 0; i < HITS; i++) {
        if (kiln_cache_use(r->cache, &r->keys[i * 617 % KEYS], add_up, sum, NULL, NULL) !=
            KILN_OK) {
            abort();
        }
    }
}

static void hit_by_reference(rig *r, uint64_t *sum)
{
    for (uint32_t i = 0; i < HITS; i++) {
        kiln_blob *blob = NULL;
        if (kiln_cache_get(r->cache, &r->keys[i * 617 % KEYS], &blob, NULL, NULL) == KILN_OK) {
            add_up(sum, blob);
        }
        kiln_blob_release(blob);
    }
}

static size_t bucket_of(const kiln_key *key)
{
    uint64_t hash;
    memcpy(&hash, key->bytes, sizeof(hash));
    return (size_t)(hash % (uint64_t)(2 * KEYS));
}

static void hit_under_lock(rig *r, uint64_t *sum)
{
    for (uint32_t i = 0; i < HITS; i++) {
        const kiln_key *key = &r->keys[i * 617 % KEYS];
        (void)pthread_rwlock_rdlock(&r->lock);
        const map_node *n = r->buckets[bucket_of(key)];
        while (n != NULL && memcmp(&n->key, key, sizeof(*key)) != 0) {
            n = n->next;
        }
        *sum += n != NULL ? n->bytes[0] : 0;
        (void)pthread_rwlock_unlock(&r->lock);
    }
}

static void *run(void *user)
{
    worker *w = user;
    for (int burst = 0; burst < BURSTS; burst++) {
        atomic_fetch_add(w->arrived, 1);
        while (atomic_load(w->arrived) < (burst + 1) * w->threads) {
        }
        const double start = bench_own();
        w->work(w->rig, &w->sum);
        w->seconds[burst] = bench_own() - start;
    }
    return NULL;
}

/* Nanoseconds of a thread's time for one hit: the median of all bursts. */
static double measure(rig *r, void (*work)(rig *, uint64_t *), int threads)
{
    static worker workers[2];
    pthread_t ids[2];
    _Atomic int arrived = 0;
    bench_samples bursts = {.count = 0};
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){.rig = r, .work = work, .arrived = &arrived, .threads = threads};
        if (pthread_create(&ids[i], NULL, run, &workers[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(ids[i], NULL);
        for (int burst = 0; burst < BURSTS; burst++) {
            bench_add(&bursts, workers[i].seconds[burst]);
        }
    }
    return bench_median(&bursts) / (double)HITS * 1e9;
}

static bool fill(rig *r)
{
    unsigned char bytes[BYTES];
    kiln_cache_options options;
    if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
        return false;
    }
    options.flags = KILN_CACHE_NO_DISK;
    if (kiln_cache_create(&options, &r->cache, NULL) != KILN_OK ||
        pthread_rwlock_init(&r->lock, NULL) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        kiln_recipe *recipe = NULL;
        kiln_blob *blob = NULL;
        map_node *n = calloc(1, sizeof(*n));
        memset(bytes, (int)i, sizeof(bytes));
        const bool began = kiln_recipe_create("bench", 1, &recipe, NULL) == KILN_OK;
        if (began) {
            kiln_recipe_add_u64(recipe, "n", i);
        }
        if (n == NULL || !began ||
            kiln_blob_create(bytes, sizeof(bytes), NULL, 0, &blob, NULL) != KILN_OK ||
            kiln_cache_put(r->cache, recipe, blob, 1, NULL) != KILN_OK) {
            free(n);
            kiln_blob_release(blob);
            kiln_recipe_destroy(recipe);
            return false;
        }
        r->keys[i] = n->key = kiln_recipe_key(recipe);
        memcpy(n->bytes, bytes, sizeof(bytes));
        n->next = r->buckets[bucket_of(&n->key)];
        r->buckets[bucket_of(&n->key)] = n;
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    return true;
}

bool cache_bench_memory(int rounds)
{
    static const struct {
        const char *name;
        void (*work)(rig *, uint64_t *);
    } ways[3] = {{"kiln, used in place", hit_in_place},
                 {"kiln, a reference", hit_by_reference},
                 {"map under a read-write lock", hit_under_lock}};
    static rig r; /* lives as long as the program: nothing is freed */
    static bench_samples samples[3][2];
    if (!fill(&r)) {
        return false;
    }
    for (int round = 0; round < rounds; round++) {
        for (int way = 0; way < 3; way++) {
            bench_add(&samples[way][0], measure(&r, ways[way].work, 1));
            bench_add(&samples[way][1], measure(&r, ways[way].work, 2));
        }
    }
    printf(
        "\n| memory hit, ns of a thread's time | one thread | two threads, each | rate of two |\n"
        "| --- | --- | --- | --- |\n");
    for (int way = 0; way < 3; way++) {
        const double one = bench_median(&samples[way][0]), two = bench_median(&samples[way][1]);
        printf("| %s | ", ways[way].name);
        cache_print_spread(&samples[way][0], 1, "%.1f");
        printf(" | ");
        cache_print_spread(&samples[way][1], 1, "%.1f");
        printf(" | %.2fx |\n", 2 * one / two);
    }
    const double mine = bench_median(&samples[0][0]), pair = bench_median(&samples[0][1]);
    const double locked = bench_median(&samples[2][1]);
    cache_judge("memory hit, ns", mine, 25, false);
    cache_judge("two threads over one", 2 * mine / pair, 1.9, true);
    cache_judge("two threads over a read-write lock's", locked / pair, 5, true);
    kiln_cache_destroy(r.cache);
    return true;
}
