/* Disk hits and puts of bench_cache: kiln, plain files, LMDB, SQLite. Hits come from the
 * system's page cache and are measured in processor time; no put waits for the disk. */
#include "bench/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/rivals.h"

static void *open_in(const rival_ops *ops, const char *root, const char *name, bool durable)
{
    char path[600];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    (void)mkdir(path, 0700);
    return ops->open(path, durable);
}

static void fill(unsigned char *data, size_t size)
{
    uint64_t seed = 1;
    for (size_t i = 0; i < size; i++) { /* as little compressible as code for a GPU */
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        data[i] = (unsigned char)(seed >> 33);
    }
}

static void *open_filled(const rival_ops *ops, const char *root, size_t size, int count,
                         const unsigned char *data)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "get-%s-%zu", ops->name, size);
    void *self = open_in(ops, root, name, false);
    for (int i = 0; self != NULL && i < count; i++) {
        if (!ops->put(self, (uint32_t)i, data, size)) {
            ops->close(self);
            self = NULL;
        }
    }
    return self;
}

static double read_all(const rival_ops *ops, void *self, int count, unsigned char *into,
                       size_t size)
{
    const double start = bench_own();
    for (int i = 0; i < count; i++) {
        if (ops->get(self, (uint32_t)(i * 37 % count), into, size) != size) {
            fprintf(stderr, "bench_cache: %s lost an entry\n", ops->name);
            exit(1);
        }
    }
    return (bench_own() - start) / count;
}

static bool disk_hits(const char *root, size_t size, int count, int rounds)
{
    static bench_samples samples[RIVALS];
    unsigned char *data = malloc(size), *into = malloc(size);
    void *selves[RIVALS];
    if (data == NULL || into == NULL) {
        free(data);
        free(into);
        return false;
    }
    fill(data, size);
    for (int i = 0; i < RIVALS; i++) {
        selves[i] = open_filled(rivals[i], root, size, count, data);
        samples[i].count = 0;
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < RIVALS; i++) {
            if (selves[i] != NULL) {
                /* Once to have what the others pushed out of the processor's caches. */
                (void)read_all(rivals[i], selves[i], count, into, size);
                bench_add(&samples[i], read_all(rivals[i], selves[i], count, into, size));
            }
        }
    }
    printf("| %zu KB |", size / 1024);
    for (int i = 0; i < RIVALS; i++) {
        printf(" ");
        cache_print_spread(&samples[i], 1e-6, "%.1f");
        printf(" |");
        if (selves[i] != NULL) {
            rivals[i]->close(selves[i]);
        }
    }
    const double ratio = bench_median(&samples[0]) / bench_median(&samples[1]);
    printf(" %.2f |\n", ratio);
    if (size == 65536) {
        cache_judge("disk hit of 64 KB over open, fstat, read, close", ratio, 1.3, false);
    }
    free(data);
    free(into);
    return true;
}

bool cache_bench_disk(const char *root, int rounds)
{
    printf("\n| disk hit, us of processor time | kiln (verified) | files | LMDB | SQLite WAL | "
           "kiln / files |\n"
           "| --- | --- | --- | --- | --- | --- |\n");
    return disk_hits(root, 4096, 400, rounds) && disk_hits(root, 65536, 200, rounds) &&
           disk_hits(root, 1 << 20, 40, rounds);
}

bool cache_bench_put(const char *root, int rounds)
{
    static unsigned char data[65536];
    static bench_samples samples[RIVALS];
    void *selves[RIVALS];
    fill(data, sizeof(data));
    for (int i = 0; i < RIVALS; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "put-%s", rivals[i]->name);
        selves[i] = open_in(rivals[i], root, name, false);
    }
    for (int round = -2; round < rounds; round++) {
        for (int i = 0; i < RIVALS; i++) {
            if (selves[i] == NULL) {
                continue;
            }
            const double start = bench_now();
            if (!rivals[i]->put(selves[i], (uint32_t)(round + 2), data, sizeof(data))) {
                return false;
            }
            if (round >= 0) {
                bench_add(&samples[i], bench_now() - start);
            }
        }
    }
    printf("\n| put, us | kiln | files (write, rename) | LMDB | SQLite WAL | kiln "
           "/ files |\n| --- | --- | --- | --- | --- | --- |\n| 64 KB |");
    for (int i = 0; i < RIVALS; i++) {
        printf(" ");
        cache_print_spread(&samples[i], 1e-6, "%.0f");
        printf(" |");
        if (selves[i] != NULL) {
            rivals[i]->close(selves[i]);
        }
    }
    printf(" %.2f |\n", bench_median(&samples[0]) / bench_median(&samples[1]));
    return true;
}
