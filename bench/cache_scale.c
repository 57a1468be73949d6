/* A large store, of bench_cache: what everything costs with 100,000 entries, next to the same store
 * when it was empty. Wall clock; entries of one block, without fsync, in the system's page cache.
 */
#include "bench/cache.h"

#include <kiln/cache.h>
#include <kiln/unstable/admin.h>
#include <kiln/unstable/counters.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PAYLOAD = 3500, BATCH = 500 };

typedef struct scale {
    char root[600];
    int entries;
    unsigned char payload[PAYLOAD];
    bool good;
} scale;

static kiln_recipe *recipe_of(uint32_t n)
{
    kiln_recipe *recipe = NULL;
    if (kiln_recipe_create("bench.scale", 1, &recipe, NULL) != KILN_OK) {
        exit(1);
    }
    kiln_recipe_add_u64(recipe, "n", n);
    return recipe;
}

static kiln_key key_of(uint32_t n)
{
    kiln_recipe *recipe = recipe_of(n);
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    return key;
}

static kiln_cache *open_scale(const scale *s, uint64_t max_files)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
        exit(1);
    }
    options.root = s->root;
    options.no_fsync = true;
    options.disk_max_files = (uint32_t)max_files;
    options.disk_max_bytes = UINT64_C(1) << 40;
    options.memory_max_bytes = 1; /* every hit is one on disk */
    if (kiln_cache_create(&options, &cache, NULL) != KILN_OK) {
        exit(1);
    }
    return cache;
}

static double put(scale *s, kiln_cache *cache, uint32_t n)
{
    kiln_recipe *recipe = recipe_of(n);
    kiln_blob *blob = NULL;
    memcpy(s->payload, &n, sizeof(n));
    s->good = s->good &&
              kiln_blob_create(s->payload, sizeof(s->payload), NULL, 0, &blob, NULL) == KILN_OK;
    const double start = bench_now();
    s->good = s->good && kiln_cache_put(cache, recipe, blob, 1, NULL) == KILN_OK;
    const double took = bench_now() - start;
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return took;
}

/* Puts `count` from `first` on and tells the median of the last BATCH, and the slowest of all. */
static void put_many(scale *s, kiln_cache *cache, int first, int count, const char *what)
{
    static bench_samples last;
    double slowest = 0;
    last.count = 0;
    for (int i = 0; i < count; i++) {
        const double took = put(s, cache, (uint32_t)(first + i));
        slowest = took > slowest ? took : slowest;
        if (i >= count - BATCH) {
            bench_add(&last, took);
        }
    }
    printf("| %s | %.0f us, 99 %% within %.0f us, slowest of all %.1f ms |\n", what,
           bench_median(&last) * 1e6, bench_quantile(&last, 0.99) * 1e6, slowest * 1e3);
}

static void get_many(scale *s, kiln_cache *cache, uint32_t of, uint32_t first, kiln_status expected,
                     const char *what)
{
    static bench_samples samples;
    samples.count = 0;
    for (uint32_t i = 0; i < BATCH; i++) {
        kiln_blob *blob = NULL;
        const kiln_key key = key_of(first + i * 7919 % of);
        const double start = bench_now();
        s->good = s->good && kiln_cache_get(cache, &key, &blob, NULL, NULL) == expected;
        bench_add(&samples, bench_now() - start);
        kiln_blob_release(blob);
    }
    printf("| %s | %.1f us, 99 %% within %.1f us |\n", what, bench_median(&samples) * 1e6,
           bench_quantile(&samples, 0.99) * 1e6);
}

static kiln_status count_one(void *user, const kiln_entry_info *info)
{
    (void)info;
    ++*(uint64_t *)user;
    return KILN_OK;
}

static double told(const char *what, double since)
{
    const double now = bench_now();
    if (since > 0) {
        printf("| %s | %.3f s |\n", what, now - since);
    }
    return bench_now();
}

static void look_at_all(scale *s, kiln_cache *cache)
{
    uint64_t counters[KILN_COUNTERS];
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    uint64_t count = 0;
    double at = told("", 0);
    s->good = s->good && kiln_cache_get_totals(cache, counters, KILN_COUNTERS, NULL) == KILN_OK;
    at = told("statistics", at);
    s->good = s->good && kiln_cache_walk(cache, NULL, count_one, &count, NULL) == KILN_OK &&
              count == (uint64_t)s->entries;
    at = told("walk (ls)", at);
    s->good = s->good && kiln_cache_verify(cache, false, &verified, NULL) == KILN_OK &&
              verified.entries_good == (uint64_t)s->entries;
    (void)told("verify, every byte", at);
}

static void remove_most(scale *s, kiln_cache *cache)
{
    kiln_prune_result result = {.struct_size = sizeof(result)};
    const kiln_prune_options half = {.struct_size = sizeof(half),
                                     .max_bytes = (uint64_t)s->entries * 4096 / 2};
    double at = told("", 0);
    s->good = s->good && kiln_cache_prune(cache, &half, &result, NULL) == KILN_OK &&
              result.entries_removed >= (uint64_t)s->entries / 2 - 1;
    at = told("prune to half", at);
    s->good = s->good && kiln_cache_clear(cache, &result, NULL) == KILN_OK;
    (void)told("clear the other half", at);
}

bool cache_bench_scale(const char *root, int entries)
{
    static scale s;
    s = (scale){.entries = entries, .good = true};
    (void)snprintf(s.root, sizeof(s.root), "%s/scale", root);
    (void)mkdir(s.root, 0700);
    printf("\n| a store of %d entries | |\n| --- | --- |\n", entries);
    kiln_cache *cache = open_scale(&s, UINT32_MAX);
    put_many(&s, cache, 0, BATCH, "put, empty");
    get_many(&s, cache, BATCH, 0, KILN_OK, "get, a hit, 500 entries");
    put_many(&s, cache, BATCH, entries - BATCH, "put, filling it");
    kiln_cache_destroy(cache);
    cache = open_scale(&s, UINT32_MAX);
    get_many(&s, cache, (uint32_t)entries, 0, KILN_OK, "get, a hit, full");
    get_many(&s, cache, (uint32_t)entries, UINT32_C(1) << 30, KILN_MISS, "get, a miss, full");
    look_at_all(&s, cache);
    kiln_cache_destroy(cache);
    cache = open_scale(&s, (uint64_t)entries);
    put_many(&s, cache, entries, entries / 10, "put, evicting");
    kiln_cache_destroy(cache);
    s.entries = entries / 10 * 9;
    cache = open_scale(&s, UINT32_MAX);
    remove_most(&s, cache);
    kiln_cache_destroy(cache);
    return s.good;
}
