/* bench_foreign MODE DIRECTORY [CACHE]: builds what the layer wrote down, in one process, and
 * prints one line: jobs, those that failed, milliseconds of the builds, milliseconds of the
 * capture, how many were compiled, found, built without the cache, captured,
 * and milliseconds of kiln_cache_destroy, which stores what PoCL has made. Milliseconds are
 * processor time, of all threads and of the linkers that PoCL starts: other work on the machine
 * makes them no longer.
 *
 *   plain   clBuildProgram, as the program does it
 *   kiln    kiln_opencl_build_program with the cache CACHE
 *   capture the same, and then kiln_opencl_capture_program for each program */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <kiln/opencl.h>
#include <kiln/unstable/counters.h>
#include <kiln/unstable/pocl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/bench.h"

enum { MAX_JOBS = 2048 };

/* The few entry points this needs, looked up in the library that kiln would open. */
#define CALLS(X)                                                                                   \
    X(clGetPlatformIDs)                                                                            \
    X(clGetDeviceIDs)                                                                              \
    X(clCreateContext)                                                                             \
    X(clCreateProgramWithSource)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clReleaseProgram)

static struct {
#define X(name) __typeof__(&name) name;
    CALLS(X)
#undef X
} cl;

typedef struct replay_job {
    char *options; /* of the whole file; the text comes after it */
    const char *text;
    cl_program program;
} replay_job;

typedef struct replay_run {
    replay_job jobs[MAX_JOBS];
    size_t count, failed, captured;
    cl_context context;
    cl_device_id device;
    kiln_cache *cache; /* NULL: plain */
} replay_run;

/* Seconds of processor time, user and system. */
static double busy_seconds(void)
{
    struct rusage own, children;
    (void)getrusage(RUSAGE_SELF, &own);
    (void)getrusage(RUSAGE_CHILDREN, &children);
    const struct timeval parts[] = {own.ru_utime, own.ru_stime, children.ru_utime,
                                    children.ru_stime};
    double sum = 0.0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        sum += (double)parts[i].tv_sec + (double)parts[i].tv_usec / 1e6;
    }
    return sum;
}

static bool open_library(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = NULL;
    bool whole = library != NULL;
#define X(name)                                                                                    \
    symbol = whole ? dlsym(library, #name) : NULL;                                                 \
    whole = whole && symbol != NULL;                                                               \
    memcpy(&cl.name, &symbol, sizeof(symbol));
    CALLS(X)
#undef X
    return whole;
}

static bool open_device(replay_run *run)
{
    cl_platform_id platform = NULL;
    cl_int error = CL_SUCCESS;
    if (!open_library() || cl.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &run->device, NULL) != CL_SUCCESS) {
        return false;
    }
    run->context = cl.clCreateContext(NULL, 1, &run->device, NULL, NULL, &error);
    return error == CL_SUCCESS;
}

static bool read_job(const char *path, replay_job *job)
{
    size_t size = 0;
    unsigned char *data = bench_read(path, &size);
    char *whole = data != NULL ? realloc(data, size + 1) : NULL;
    if (whole == NULL) {
        free(data);
        return false;
    }
    whole[size] = '\0';
    char *end = strchr(whole, '\n');
    if (end == NULL) {
        free(whole);
        return false;
    }
    *end = '\0';
    *job = (replay_job){.options = whole, .text = end + 1};
    return true;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool read_jobs(replay_run *run, const char *dir)
{
    struct dirent **names = NULL;
    const int count = scandir(dir, &names, NULL, by_name);
    for (int i = 0; i < count; i++) {
        char path[4096];
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
        if (strstr(names[i]->d_name, ".job") != NULL && run->count < MAX_JOBS) {
            run->count += read_job(path, &run->jobs[run->count]);
        }
        free(names[i]);
    }
    free(names);
    return run->count > 0;
}

static bool build_job(replay_run *run, replay_job *job)
{
    cl_int error = CL_SUCCESS;
    kiln_diag diag = KILN_DIAG_INIT;
    if (run->cache != NULL) {
        const kiln_status status = kiln_opencl_build_program(
            run->cache, run->context, run->device, job->text, job->options, &job->program, &diag);
        kiln_diag_clear(&diag);
        return status == KILN_OK;
    }
    job->program = cl.clCreateProgramWithSource(run->context, 1, &job->text, NULL, &error);
    return job->program != NULL &&
           cl.clBuildProgram(job->program, 1, &run->device, job->options, NULL, NULL) == CL_SUCCESS;
}

static double build_all(replay_run *run)
{
    const double begin = busy_seconds();
    for (size_t i = 0; i < run->count; i++) {
        run->failed += !build_job(run, &run->jobs[i]);
    }
    return (busy_seconds() - begin) * 1e3;
}

static double capture_all(replay_run *run)
{
    const double begin = busy_seconds();
    for (size_t i = 0; i < run->count; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        if (run->jobs[i].program != NULL) {
            run->captured +=
                kiln_opencl_capture_program(run->cache, run->jobs[i].program, &diag) == KILN_OK;
        }
        kiln_diag_clear(&diag);
    }
    return (busy_seconds() - begin) * 1e3;
}

static bool open_cache(replay_run *run, const char *root)
{
    kiln_cache_options options = {0};
    if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
        return false;
    }
    options.root = root;
    return kiln_cache_create(&options, &run->cache, NULL) == KILN_OK;
}

/* What was built is given back, and the cache with it: what PoCL has made is stored there. */
static double leave(replay_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        if (run->jobs[i].program != NULL) {
            (void)cl.clReleaseProgram(run->jobs[i].program);
        }
        free(run->jobs[i].options);
    }
    const double begin = busy_seconds();
    kiln_cache_destroy(run->cache);
    return (busy_seconds() - begin) * 1e3;
}

static void replay(replay_run *run, bool capture)
{
    uint64_t counters[KILN_COUNTERS] = {0};
    const double build_ms = build_all(run);
    const double capture_ms = capture ? capture_all(run) : 0.0;
    for (uint32_t i = 0; run->cache != NULL && i < KILN_COUNTERS; i++) {
        counters[i] = kiln_cache_counter(run->cache, i);
    }
    const double leave_ms = leave(run);
    (void)printf("%zu %zu %.1f %.1f %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu %.1f\n", run->count,
                 run->failed, build_ms, capture_ms, counters[KILN_COUNTER_COMPILES],
                 counters[KILN_COUNTER_HITS_DISK] + counters[KILN_COUNTER_HITS_MEMORY],
                 counters[KILN_COUNTER_BYPASSED], run->captured, leave_ms);
}

int main(int argc, char **argv)
{
    static replay_run run;
    const char *mode = argc > 2 ? argv[1] : "";
    const bool plain = strcmp(mode, "plain") == 0;
    const bool capture = strcmp(mode, "capture") == 0;
    if ((!plain && !capture && strcmp(mode, "kiln") != 0) || (!plain && argc < 4)) {
        (void)fputs("usage: bench_foreign plain|kiln|capture DIRECTORY [CACHE]; see "
                    "bench/foreign/foreign.sh\n",
                    stderr);
        return argc == 1 ? 0 : 2;
    }
    if (!open_device(&run) || !read_jobs(&run, argv[2]) || (!plain && !open_cache(&run, argv[3]))) {
        (void)fputs("bench_foreign: no device, no jobs or no cache\n", stderr);
        return 1;
    }
    replay(&run, capture);
    return 0;
}
