/* A warm start of kiln_nvrtc_compile against reading the bare CUBIN from a file, each in a fresh
 * process: what finding the key costs where a kernel reaches hundreds of headers. Needs NVRTC and
 * its headers, no GPU: the load call is the driver's, and the same for both. */
#include <kiln/cuda.h>
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/bench.h"
#include "bench/warm.h"

enum { NVRTC_ROUNDS = 31 };

static const char *const kernels[] = {"trivial.cu", "mma.cu", "sort.cu"};

static long faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : 0;
}

static int complain(const char *what, kiln_diag *diag)
{
    char line[1024];
    (void)kiln_diag_format(diag, line, sizeof(line));
    fprintf(stderr, "bench_warm: %s: %s\n", what, line);
    kiln_diag_clear(diag);
    return 1;
}

/* A child: prints "wall own faults again compiled": microseconds of the first call on an open
 * cache, by the clock and of this thread; page faults in it; the same call again; whether it
 * compiled. With `save`, the binary is written there. */
int warm_nvrtc_child(const char *kernel, const char *save)
{
    static const char *const options[] = {"--gpu-architecture=sm_90"};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    kiln_nvrtc_result *result = NULL;
    kiln_nvrtc_result *second = NULL;
    static char text[1 << 16];
    size_t size = 0;
    unsigned char *bytes = bench_read(kernel, &size);
    if (bytes == NULL || size >= sizeof(text)) {
        fprintf(stderr, "bench_warm: no %s\n", kernel);
        free(bytes);
        return 1;
    }
    memcpy(text, bytes, size);
    free(bytes);
    const kiln_nvrtc_request request = {.struct_size = sizeof(request),
                                        .text = text,
                                        .name = kernel,
                                        .options = options,
                                        .option_count = 1};
    if (kiln_cache_create(NULL, &cache, &diag) != KILN_OK) {
        return complain("cache", &diag);
    }
    const long faults_before = faults();
    const double own = bench_own();
    const double start = bench_now();
    if (kiln_nvrtc_compile(cache, &request, &result, &diag) != KILN_OK) {
        return complain("compile", &diag);
    }
    const double took = bench_now() - start;
    const double own_took = bench_own() - own;
    const long faults_in = faults() - faults_before;
    const double again = bench_own();
    if (kiln_nvrtc_compile(cache, &request, &second, &diag) != KILN_OK) {
        return complain("compile again", &diag);
    }
    printf("%.3f %.3f %ld %.3f %d\n", took * 1e6, own_took * 1e6, faults_in,
           (bench_own() - again) * 1e6, result->origin == KILN_ORIGIN_COMPILED);
    FILE *file = save != NULL ? fopen(save, "wb") : NULL;
    if (file != NULL) {
        (void)fwrite(result->binary, 1, result->size, file);
        (void)fclose(file);
    }
    kiln_nvrtc_result_destroy(second);
    kiln_nvrtc_result_destroy(result);
    kiln_cache_destroy(cache);
    return 0;
}

/* A child: prints "wall own", reading the file. */
int warm_nvrtc_by_hand(const char *path)
{
    size_t size = 0;
    const double own = bench_own();
    const double start = bench_now();
    unsigned char *bytes = bench_read(path, &size);
    printf("%.3f %.3f\n", (bench_now() - start) * 1e6, (bench_own() - own) * 1e6);
    free(bytes);
    return bytes != NULL ? 0 : 1;
}

static void row(const char *what, const bench_samples *samples)
{
    printf("  %-34s %10.1f us   (%.1f to %.1f)\n", what, bench_median(samples),
           bench_quantile(samples, 0.1), bench_quantile(samples, 0.9));
}

static int measure(const char *self, const char *root, const char *kernel)
{
    char source[600];
    char saved[600];
    double values[BENCH_MAX_VALUES];
    bench_samples wall = {.count = 0}, own = {.count = 0}, again = {.count = 0};
    bench_samples hand = {.count = 0}, fault = {.count = 0};
    (void)snprintf(source, sizeof(source), "%s/%s", BENCH_CUDA_KERNELS, kernel);
    (void)snprintf(saved, sizeof(saved), "%s/%s.cubin", root, kernel);
    char *save_argv[] = {(char *)self, "nvrtc-child", source, saved, NULL};
    char *kiln_argv[] = {(char *)self, "nvrtc-child", source, NULL};
    char *hand_argv[] = {(char *)self, "nvrtc-hand", saved, NULL};
    if (bench_child(save_argv, values) < 5) {
        printf("nvrtc: not here, or without its headers\n\n");
        return 0;
    }
    const double cold = values[0];
    /* Headers installed a moment ago are read again by the second start. */
    (void)bench_child(kiln_argv, values);
    for (int i = 0; i < NVRTC_ROUNDS; i++) {
        if (bench_child(kiln_argv, values) < 5 || values[4] != 0) {
            fprintf(stderr, "bench_warm: a warm start of %s compiled or failed\n", kernel);
            return 1;
        }
        bench_add(&wall, values[0]);
        bench_add(&own, values[1]);
        bench_add(&fault, values[2]);
        bench_add(&again, values[3]);
        if (bench_child(hand_argv, values) >= 2) {
            bench_add(&hand, values[1]);
        }
    }
    printf("nvrtc: %s, %d fresh processes each; cold %.1f ms\n", kernel, NVRTC_ROUNDS, cold / 1e3);
    row("kiln_nvrtc_compile, by the clock", &wall);
    row("the same, processor time", &own);
    row("once more in the same process", &again);
    row("the CUBIN read by hand", &hand);
    printf("  page faults                        %10.0f\n\n", bench_median(&fault));
    return 0;
}

int warm_nvrtc_measure(const char *self, const char *root)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        failed = measure(self, root, kernels[i]) || failed;
    }
    return failed;
}
