/* What bench_cache measures in processes of their own: opening, a cold start of many, memory. */
#include "bench/cache.h"

#include <fcntl.h>
#include <kiln/cache.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/rivals.h"

static kiln_cache *open_cache(const char *root)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
        return NULL;
    }
    options.root = root;
    options.no_fsync = true;
    return kiln_cache_create(&options, &cache, NULL) == KILN_OK ? cache : NULL;
}

static kiln_recipe *recipe_of(uint32_t n)
{
    kiln_recipe *recipe = NULL;
    if (kiln_recipe_create("bench", 1, &recipe, NULL) != KILN_OK) {
        exit(1);
    }
    kiln_recipe_add_u64(recipe, "n", n);
    return recipe;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Prints the time to open, and to open and hit. */
int cache_child_open(const char *rival, const char *root)
{
    unsigned char bytes[4096];
    const rival_ops *ops = NULL;
    for (int i = 0; i < RIVALS; i++) {
        ops = strcmp(rivals[i]->name, rival) == 0 ? rivals[i] : ops;
    }
    if (ops == NULL) {
        return 1;
    }
    if (ops == &rival_kiln) { /* without the thousand keys that other parts compute */
        kiln_recipe *recipe = recipe_of(0);
        const kiln_key key = kiln_recipe_key(recipe);
        kiln_blob *blob = NULL;
        const double start = bench_now();
        kiln_cache *cache = open_cache(root);
        const double opened = bench_now();
        if (cache == NULL || kiln_cache_get(cache, &key, &blob, NULL, NULL) != KILN_OK) {
            return 1;
        }
        printf("%.3f %.3f\n", (opened - start) * 1e6, (bench_now() - start) * 1e6);
        return 0;
    }
    const double start = bench_now();
    void *self = ops->open(root, false);
    const double opened = bench_now();
    if (self == NULL || ops->get(self, 0, bytes, sizeof(bytes)) == 0) {
        return 1;
    }
    printf("%.3f %.3f\n", (opened - start) * 1e6, (bench_now() - start) * 1e6);
    return 0;
}

static bool plant_files(const char *root, int entries)
{
    char path[700];
    (void)snprintf(path, sizeof(path), "%s/v1/planted", root);
    (void)mkdir(path, 0700);
    for (int i = 0; i < 256; i++) {
        (void)snprintf(path, sizeof(path), "%s/v1/planted/%02x", root, (unsigned)i);
        (void)mkdir(path, 0700);
    }
    for (int i = 0; i < entries; i++) {
        (void)snprintf(path, sizeof(path), "%s/v1/planted/%02x/%062x.kiln", root, (unsigned)i % 256,
                       (unsigned)i);
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, path, 64) != 64 || close(fd) != 0) {
            return false;
        }
    }
    return true;
}

/* A store with one entry to hit and `entries` others. kiln's need not be whole to be in the way. */
static bool prepare(const rival_ops *ops, const char *root, int entries)
{
    unsigned char bytes[1000] = "some bytes";
    (void)mkdir(root, 0700);
    void *self = ops->open(root, false);
    bool good = self != NULL && ops->put(self, 0, bytes, sizeof(bytes));
    for (int i = 1; good && ops != &rival_kiln && i < entries; i++) {
        good = ops->put(self, (uint32_t)i, bytes, 64);
    }
    if (self != NULL) {
        ops->close(self);
    }
    return good && (ops != &rival_kiln || plant_files(root, entries));
}

bool cache_bench_open(const char *self, const char *root, int entries, int rounds)
{
    static bench_samples samples[RIVALS][2][2];
    bool there[RIVALS][2];
    char paths[RIVALS][2][600];
    for (int i = 0; i < RIVALS; i++) {
        for (int full = 0; full < 2; full++) {
            (void)snprintf(paths[i][full], sizeof(paths[i][full]), "%s/open-%s-%d", root,
                           rivals[i]->name, full);
            /* A directory of files has nothing to open. */
            there[i][full] = rivals[i] != &rival_files &&
                             prepare(rivals[i], paths[i][full], full != 0 ? entries : 0);
        }
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < RIVALS; i++) {
            for (int full = 0; full < 2; full++) {
                double values[BENCH_MAX_VALUES];
                char *argv[] = {(char *)(uintptr_t)self, (char *)"open",
                                (char *)(uintptr_t)rivals[i]->name, paths[i][full], NULL};
                if (there[i][full] && bench_child(argv, values) == 2) {
                    bench_add(&samples[i][full][0], values[0]);
                    bench_add(&samples[i][full][1], values[1]);
                }
            }
        }
    }
    printf(
        "\n| fresh process, us | open, empty | open, %d entries | and first hit, empty | and first "
        "hit, %d entries |\n| --- | --- | --- | --- | --- |\n",
        entries, entries);
    for (int i = 0; i < RIVALS; i++) {
        if (there[i][0]) {
            printf("| %s |", rivals[i]->name);
            for (int what = 0; what < 4; what++) {
                printf(" ");
                cache_print_spread(&samples[i][what % 2][what / 2], 1, "%.0f");
                printf(" |");
            }
            printf("\n");
        }
    }
    cache_judge("opening a full store over an empty one",
                bench_median(&samples[0][1][0]) / bench_median(&samples[0][0][0]), 1.25, false);
    cache_judge("opening a full store, us", bench_median(&samples[0][1][0]), 1000, false);
    return true;
}

/* --- a cold start of many --------------------------------------------------------------------- */

typedef struct storm {
    _Atomic int ready, go, compiles, failed;
    int compile_ms;
    double last; /* seconds on the monotonic clock */
    double ends[64];
} storm;

static kiln_status compile(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    static const unsigned char bytes[100000] = "a kernel";
    storm *s = user;
    const struct timespec pause = {s->compile_ms / 1000, (long)(s->compile_ms % 1000) * 1000000};
    atomic_fetch_add(&s->compiles, 1);
    (void)nanosleep(&pause, NULL);
    return kiln_blob_create(bytes, sizeof(bytes), NULL, 0, out_blob, diag);
}

static void storm_child(storm *s, const char *root, int who)
{
    const struct timespec pause = {0, 200000};
    kiln_recipe *recipe = recipe_of(1);
    kiln_blob *blob = NULL;
    atomic_fetch_add(&s->ready, 1);
    while (atomic_load(&s->go) == 0) {
        (void)nanosleep(&pause, NULL);
    }
    kiln_cache *cache = open_cache(root);
    if (cache == NULL ||
        kiln_cache_get_or_compile(cache, recipe, compile, s, &blob, NULL, NULL) != KILN_OK) {
        atomic_fetch_add(&s->failed, 1);
    }
    s->ends[who] = bench_now();
    _exit(0);
}

/* Seconds from the start until the last is ready; negative where it went wrong. */
static double one_storm(const char *root, int processes, int compile_ms, int *out_compiles)
{
    const struct timespec pause = {0, 1000000};
    storm *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        return -1;
    }
    s->compile_ms = compile_ms;
    for (int i = 0; i < processes; i++) {
        if (fork() == 0) {
            storm_child(s, root, i);
        }
    }
    while (atomic_load(&s->ready) < processes) {
        (void)nanosleep(&pause, NULL);
    }
    const double start = bench_now();
    atomic_store(&s->go, 1);
    while (wait(NULL) > 0) {
    }
    double last = start;
    for (int i = 0; i < processes; i++) {
        last = s->ends[i] > last ? s->ends[i] : last;
    }
    *out_compiles = atomic_load(&s->compiles);
    const double took = atomic_load(&s->failed) == 0 ? last - start : -1;
    (void)munmap(s, sizeof(*s));
    return took;
}

bool cache_bench_storm(const char *root, int processes, int compile_ms, int rounds)
{
    static bench_samples samples;
    int most = 0;
    for (int round = 0; round < rounds; round++) {
        char path[600];
        int compiles = 0;
        (void)snprintf(path, sizeof(path), "%s/storm-%d", root, round);
        (void)mkdir(path, 0700);
        const double took = one_storm(path, processes, compile_ms, &compiles);
        if (took < 0) {
            return false;
        }
        bench_add(&samples, took * 1000 / compile_ms);
        most = compiles > most ? compiles : most;
    }
    printf("\n| cold start of %d processes on one compile of %d ms | |\n| --- | --- |\n"
           "| compiles (at most, of %d runs) | %d |\n| last ready, in compiles | ",
           processes, compile_ms, rounds, most);
    cache_print_spread(&samples, 1, "%.3f");
    printf(" |\n");
    cache_judge("compiles in a cold start of many", most, 1, false);
    cache_judge("last ready in a cold start, in compiles", bench_median(&samples), 1.15, false);
    return true;
}

/* --- memory ----------------------------------------------------------------------------------- */

static double resident_mb(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) { // NOLINT(cert-err34-c)
        resident = 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

int cache_child_size(const char *root)
{
    static unsigned char bytes[100000];
    kiln_cache *cache = open_cache(root);
    for (uint32_t i = 0; i < 100; i++) {
        kiln_recipe *recipe = recipe_of(i);
        kiln_blob *blob = NULL;
        memset(bytes, (int)i, sizeof(bytes));
        if (kiln_blob_create(bytes, sizeof(bytes), NULL, 0, &blob, NULL) != KILN_OK ||
            kiln_cache_put(cache, recipe, blob, 1, NULL) != KILN_OK) {
            return 1;
        }
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    printf("%.3f\n", resident_mb());
    kiln_cache_destroy(cache);
    return 0;
}

bool cache_bench_size(const char *self, const char *root)
{
    double values[BENCH_MAX_VALUES];
    char path[600];
    (void)snprintf(path, sizeof(path), "%s/size", root);
    (void)mkdir(path, 0700);
    char *argv[] = {(char *)(uintptr_t)self, (char *)"size", path, NULL};
    if (bench_child(argv, values) != 1) {
        return false;
    }
    printf("\n| resident with 100 programs of 100 KB in memory, whole process | |\n| --- | --- |\n"
           "| MB | %.1f |\n",
           values[0]);
    cache_judge("resident with 100 programs of 100 KB, MB", values[0], 50, false);
    return true;
}
