/* The store alone, of bench_thousand: a fresh process gets each of so many entries of 4 KB once, in
 * random order, from the disk tier and from a pack, next to as many files read by hand. */
#include <kiln/cache.h>
#include <kiln/unstable/pack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/bench.h"
#include "bench/thousand.h"

enum { VALUE = 4096, STEP = 7919, RUNS = 7 };

static kiln_recipe *entry_recipe(int number)
{
    kiln_recipe *recipe = NULL;
    if (kiln_recipe_create("bench.thousand", 1, &recipe, NULL) != KILN_OK) {
        exit(1);
    }
    kiln_recipe_add_u64(recipe, "n", (uint64_t)number);
    return recipe;
}

static kiln_cache *open_store(void)
{
    kiln_cache *cache = NULL;
    if (kiln_cache_create(NULL, &cache, NULL) != KILN_OK) {
        exit(1);
    }
    return cache;
}

static void make_value(int number, unsigned char *value)
{
    uint64_t state = (uint64_t)number + 1;
    for (size_t i = 0; i < VALUE; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        value[i] = i % 2 == 0 ? (unsigned char)(state >> 56) : (unsigned char)(i & 15);
    }
}

static bool fill_store(const char *root, int count)
{
    char path[700];
    unsigned char value[VALUE];
    kiln_cache *cache = open_store();
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof copied};
    const kiln_pack_writer_options options = {.struct_size = sizeof options, .raw = true};
    (void)snprintf(path, sizeof(path), "%s/files", root);
    bool good = mkdir(path, 0700) == 0;
    for (int i = 0; i < count && good; i++) {
        kiln_recipe *recipe = entry_recipe(i);
        kiln_blob *blob = NULL;
        make_value(i, value);
        (void)snprintf(path, sizeof(path), "%s/files/%06d", root, i);
        FILE *file = fopen(path, "wb");
        good = file != NULL && fwrite(value, VALUE, 1, file) == 1 && fclose(file) == 0 &&
               kiln_blob_create(value, VALUE, NULL, 0, &blob, NULL) == KILN_OK &&
               kiln_cache_put(cache, recipe, blob, 0, NULL) == KILN_OK;
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    (void)snprintf(path, sizeof(path), "%s/all.kpack", root);
    good = good && kiln_pack_writer_create(path, &options, &writer, NULL) == KILN_OK &&
           kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, NULL) == KILN_OK &&
           kiln_pack_writer_finish(writer, NULL, NULL) == KILN_OK;
    kiln_pack_writer_destroy(writer);
    kiln_cache_destroy(cache);
    return good;
}

static bool read_all(const char *root, int count)
{
    char path[700];
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        size_t size = 0;
        (void)snprintf(path, sizeof(path), "%s/files/%06d", root, (i * STEP) % count);
        unsigned char *data = bench_read(path, &size); /* and kept, as a program is */
        good = data != NULL && size == VALUE;
    }
    return good;
}

static bool get_all(const kiln_key *keys, int count)
{
    bool good = true;
    kiln_cache *cache = open_store();
    for (int i = 0; i < count && good; i++) {
        kiln_blob *blob = NULL;
        good = kiln_cache_get(cache, &keys[(i * STEP) % count], &blob, NULL, NULL) == KILN_OK &&
               kiln_blob_size(blob) == VALUE;
    }
    return good; /* the blobs stay */
}

/* Prints microseconds of processor time an entry, the opening of the cache included. */
int thousand_store_child(const char *way, const char *root, int count)
{
    if (strcmp(way, "fill") == 0) {
        printf("%d\n", fill_store(root, count) ? 1 : 0);
        return 0;
    }
    kiln_key *keys = calloc((size_t)count, sizeof(*keys));
    for (int i = 0; i < count && keys != NULL; i++) {
        kiln_recipe *recipe = entry_recipe(i);
        keys[i] = kiln_recipe_key(recipe);
        kiln_recipe_destroy(recipe);
    }
    const double start = bench_own();
    const bool good =
        strcmp(way, "files") == 0 ? read_all(root, count) : keys != NULL && get_all(keys, count);
    printf("%.3f\n", (bench_own() - start) * 1e6 / count);
    (void)fflush(stdout);
    _Exit(good ? 0 : 1);
}

static double measure_way(const char *self, const char *way, const char *root, const char *number)
{
    double values[BENCH_MAX_VALUES];
    char empty[700];
    char *argv[] = {(char *)(uintptr_t)self,   "store",
                    (char *)(uintptr_t)way,    (char *)(uintptr_t)root,
                    (char *)(uintptr_t)number, NULL};
    if (strcmp(way, "pack") == 0) {
        (void)snprintf(empty, sizeof(empty), "%s/all.kpack", root);
        (void)setenv("KILN_PACKS", empty, 1);
        (void)snprintf(empty, sizeof(empty), "%s/empty", root);
        bench_remove(empty);
        (void)setenv("KILN_CACHE_DIR", empty, 1);
    }
    return bench_child(argv, values) == 1 ? values[0] : -1;
}

int thousand_store(const char *self, const char *root)
{
    static const char *const numbers[] = {"10", "100", "1000", "10000"};
    static const char *const ways[] = {"files", "disk", "pack"};
    puts("| entries | files by hand, us each | disk, us each | of files | pack, us each | of files "
         "|\n| ---: | ---: | ---: | ---: | ---: | ---: |");
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char dir[600], cache[700];
        bench_samples samples[3] = {0};
        (void)snprintf(dir, sizeof(dir), "%s/%s", root, numbers[i]);
        (void)snprintf(cache, sizeof(cache), "%s/cache", dir);
        (void)mkdir(dir, 0700);
        for (int run = -1; run < RUNS; run++) {
            for (size_t way = 0; way < 3; way++) {
                (void)unsetenv("KILN_PACKS");
                (void)setenv("KILN_CACHE_DIR", cache, 1);
                const double took =
                    measure_way(self, run < 0 ? "fill" : ways[way], dir, numbers[i]);
                if (took < 0) {
                    (void)fprintf(stderr, "bench_thousand: %s of %s failed\n", ways[way],
                                  numbers[i]);
                    return 1;
                }
                if (run < 0) {
                    break;
                }
                bench_add(&samples[way], took);
            }
        }
        const double files = bench_median(&samples[0]);
        printf("| %s | %.1f | %.1f | %.2f | %.1f | %.2f |\n", numbers[i], files,
               bench_median(&samples[1]), bench_median(&samples[1]) / files,
               bench_median(&samples[2]), bench_median(&samples[2]) / files);
        (void)fflush(stdout);
    }
    return 0;
}
