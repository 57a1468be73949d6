/* bench_cache [--quick] [--only PART] [DIRECTORY]: the cache of level 1 side by
 * side in one run with plain files, LMDB, SQLite in WAL mode and a hash map
 * under a read-write lock; tables in Markdown, and the ratios against DESIGN's
 * budgets. DIRECTORY chooses the file system (default: the temporary directory).
 * --quick shows only that all of it runs. PART: storm, memory, disk, put, open,
 * size or scale. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cache.h"

static struct {
    const char *what;
    double value, budget;
    bool at_least;
} verdicts[16];
static size_t verdict_count;

void cache_judge(const char *what, double value, double budget, bool at_least)
{
    if (verdict_count < sizeof(verdicts) / sizeof(*verdicts)) {
        verdicts[verdict_count].what = what;
        verdicts[verdict_count].value = value;
        verdicts[verdict_count].budget = budget;
        verdicts[verdict_count++].at_least = at_least;
    }
}

void cache_print_spread(const bench_samples *samples, double unit, const char *format)
{
    if (samples->count == 0) {
        printf("-");
        return;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    printf(format, bench_median(samples) / unit);
    printf(" (");
    printf(format, bench_quantile(samples, 0.25) / unit);
    printf("..");
    printf(format, bench_quantile(samples, 0.75) / unit);
    printf(")");
#pragma GCC diagnostic pop
}

static void print_verdicts(void)
{
    printf("\n| budget | measured | allowed | |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < verdict_count; i++) {
        const bool kept = verdicts[i].at_least ? verdicts[i].value >= verdicts[i].budget
                                               : verdicts[i].value <= verdicts[i].budget;
        printf("| %s | %.2f | %s %g | %s |\n", verdicts[i].what, verdicts[i].value,
               verdicts[i].at_least ? "at least" : "at most", verdicts[i].budget,
               kept ? "kept" : "MISSED");
    }
}

static void print_load(void)
{
    double load[3] = {0, 0, 0};
    if (getloadavg(load, 3) == 3) {
        printf("load %.1f; medians with quartiles\n", load[0]);
    }
}

static bool storm(const char *self, const char *root, bool quick)
{
    (void)self;
    return cache_bench_storm(root, quick ? 4 : 16, quick ? 50 : 500, quick ? 1 : 7);
}

static bool memory(const char *self, const char *root, bool quick)
{
    (void)self;
    (void)root;
    return cache_bench_memory(quick ? 2 : 31);
}

static bool disk(const char *self, const char *root, bool quick)
{
    (void)self;
    return cache_bench_disk(root, quick ? 2 : 31);
}

static bool put(const char *self, const char *root, bool quick)
{
    (void)self;
    return cache_bench_put(root, quick ? 3 : 61);
}

static bool opening(const char *self, const char *root, bool quick)
{
    return cache_bench_open(self, root, quick ? 500 : 100000, quick ? 2 : 31);
}

static bool size(const char *self, const char *root, bool quick)
{
    (void)quick;
    return cache_bench_size(self, root);
}

static bool scale(const char *self, const char *root, bool quick)
{
    (void)self;
    return cache_bench_scale(root, quick ? 1000 : 100000);
}

/* The storm first: it forks, and no thread has run yet. */
static const struct part {
    const char *name;
    bool (*measure)(const char *self, const char *root, bool quick);
} parts[] = {{"storm", storm},  {"memory", memory}, {"disk", disk},  {"put", put},
             {"open", opening}, {"size", size},     {"scale", scale}};

static bool measure_all(const char *self, const char *root, bool quick, const char *only)
{
    bool good = true;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (only == NULL || strcmp(only, parts[i].name) == 0) {
            good = parts[i].measure(self, root, quick) && good;
        }
    }
    return good;
}

int main(int argc, char **argv)
{
    char self[512];
    char root[512];
    if (argc == 4 && strcmp(argv[1], "open") == 0) {
        return cache_child_open(argv[2], argv[3]);
    }
    if (argc == 3 && strcmp(argv[1], "size") == 0) {
        return cache_child_size(argv[2]);
    }
    int at = 1;
    const bool quick = at < argc && strcmp(argv[at], "--quick") == 0;
    at += (int)quick;
    const char *only = NULL;
    if (at + 1 < argc && strcmp(argv[at], "--only") == 0) {
        only = argv[at + 1];
        at += 2;
    }
    const char *dir = at < argc ? argv[at] : NULL;
    if ((dir != NULL && setenv("TMPDIR", dir, 1) != 0) || !bench_self(self, sizeof(self)) ||
        !bench_dir(root, sizeof(root))) {
        fprintf(stderr, "bench_cache: no temporary directory\n");
        return 1;
    }
    bench_print_machine();
    print_load();
    const bool good = measure_all(self, root, quick, only);
    print_verdicts();
    bench_remove(root);
    if (!good) {
        fprintf(stderr, "bench_cache: a measurement failed\n");
    }
    return good ? 0 : 1;
}
