/* What the benchmarks share: samples with median and spread, fresh processes that answer in
 * numbers, temporary directories. */
#ifndef KILN_BENCH_H
#define KILN_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_MAX_SAMPLES = 512, BENCH_MAX_VALUES = 8 };

typedef struct bench_samples {
    double values[BENCH_MAX_SAMPLES];
    size_t count;
} bench_samples;

void bench_add(bench_samples *samples, double value);
double bench_median(const bench_samples *samples);
double bench_quantile(const bench_samples *samples, double q); /* 0 smallest, 1 largest */

/* Seconds on the monotonic clock; and of this thread's processor time, for work that does not wait:
 * other programs on the machine do not count there. */
double bench_now(void);
double bench_own(void);

/* Runs argv (NULL-terminated; argv[0] is a path) in a fresh process and reads up to
 * BENCH_MAX_VALUES numbers from its standard output. Returns how many there were; 0 if it failed.
 */
size_t bench_child(char *const argv[], double values[BENCH_MAX_VALUES]);

/* This program's own path; a fresh empty directory (both static buffers of the caller's); its
 * removal.
 */
bool bench_self(char *path, size_t size);
bool bench_dir(char *path, size_t size);
void bench_remove(const char *path);

/* A whole file, malloc'ed; NULL if it is not there or empty. */
unsigned char *bench_read(const char *path, size_t *out_size);

/* One line about the machine and the day, so that figures carry where they come from. */
void bench_print_machine(void);

#endif
