/* Shared by all benchmarks; see bench.h. */
#include "bench/bench.h"

#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void bench_add(bench_samples *samples, double value)
{
    if (samples->count < BENCH_MAX_SAMPLES) {
        samples->values[samples->count++] = value;
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const bench_samples *samples, double q)
{
    double sorted[BENCH_MAX_SAMPLES];
    if (samples->count == 0) {
        return 0;
    }
    memcpy(sorted, samples->values, samples->count * sizeof(double));
    qsort(sorted, samples->count, sizeof(double), compare);
    const double place = q * (double)(samples->count - 1);
    const size_t low = (size_t)place;
    const size_t high = low + 1 < samples->count ? low + 1 : low;
    return sorted[low] + (sorted[high] - sorted[low]) * (place - (double)low);
}

double bench_median(const bench_samples *samples)
{
    return bench_quantile(samples, 0.5);
}

double bench_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_own(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

size_t bench_child(char *const argv[], double values[BENCH_MAX_VALUES])
{
    int ends[2];
    pid_t child = 0;
    posix_spawn_file_actions_t actions;
    size_t count = 0;
    int status = 0;
    if (pipe(ends) != 0 || posix_spawn_file_actions_init(&actions) != 0) {
        return 0;
    }
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addclose(&actions, ends[0]);
    const int failed = posix_spawn(&child, argv[0], &actions, NULL, argv, environ);
    (void)close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    while (failed == 0 && out != NULL && count < BENCH_MAX_VALUES &&
           fscanf(out, "%lf", &values[count]) == 1) { // NOLINT(cert-err34-c)
        count++;
    }
    if (out != NULL) {
        (void)fclose(out);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed != 0 || waitpid(child, &status, 0) != child || status != 0) {
        return 0;
    }
    return count;
}

bool bench_self(char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0) {
        return false;
    }
    path[length] = '\0';
    return true;
}

bool bench_dir(char *path, size_t size)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(path, size, "%s/kiln-bench-XXXXXX", base != NULL ? base : "/tmp");
    return mkdtemp(path) != NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

void bench_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void bench_print_machine(void)
{
    struct utsname name;
    char date[32] = "";
    char cpu[256] = "unknown processor";
    const time_t now = time(NULL);
    struct tm day;
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info != NULL && fgets(cpu, sizeof(cpu), info) != NULL) {
        const char *value = strchr(cpu, ':');
        if (strncmp(cpu, "model name", 10) == 0 && value != NULL) {
            memmove(cpu, value + 2, strlen(value + 2) + 1);
            cpu[strcspn(cpu, "\n")] = '\0';
            break;
        }
    }
    if (info != NULL) {
        (void)fclose(info);
    }
    if (gmtime_r(&now, &day) != NULL) {
        (void)strftime(date, sizeof(date), "%Y-%m-%d", &day);
    }
    (void)uname(&name);
    printf("%s, %ld x %s, %s %s\n", date, sysconf(_SC_NPROCESSORS_ONLN), cpu, name.sysname,
           name.release);
}

unsigned char *bench_read(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    (void)fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    unsigned char *data = size > 0 ? malloc((size_t)size) : NULL;
    if (data != NULL && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    (void)fclose(file);
    *out_size = data != NULL ? (size_t)size : 0;
    return data;
}
