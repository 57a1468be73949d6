/* The parts of bench_cache. Each measures side by side in one run, prints a table in Markdown, and
 * holds its ratios against DESIGN's budgets. */
#ifndef KILN_BENCH_CACHE_H
#define KILN_BENCH_CACHE_H

#include "bench/bench.h"

/* "median (lower quartile..upper quartile)", each divided by `unit`. */
void cache_print_spread(const bench_samples *samples, double unit, const char *format);
/* Remembers a figure and its budget for the last table. */
void cache_judge(const char *what, double value, double budget, bool at_least);

/* False where a measurement could not be made. */
bool cache_bench_memory(int rounds);
bool cache_bench_disk(const char *root, int rounds);
bool cache_bench_put(const char *root, int rounds);
bool cache_bench_open(const char *self, const char *root, int entries, int rounds);
bool cache_bench_storm(const char *root, int processes, int compile_ms, int rounds);
bool cache_bench_scale(const char *root, int entries);
bool cache_bench_size(const char *self, const char *root);

/* What fresh processes do: print numbers. */
int cache_child_open(const char *rival, const char *root);
int cache_child_size(const char *root);

#endif
