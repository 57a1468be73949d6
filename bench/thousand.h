/* What bench_thousand loads by hand next to kiln. */
#ifndef KILN_BENCH_THOUSAND_H
#define KILN_BENCH_THOUSAND_H

#include <stdbool.h>
#include <stddef.h>

/* The first of a device's calls, and the load of one binary with one kernel in it; what was loaded
 * stays. Backends: opencl, cuda. */
bool thousand_hand_open(const char *backend);
bool thousand_hand_enter(const char *backend); /* before the first load of a thread */
bool thousand_hand_load(const char *backend, const void *binary, size_t size, const char *entry);

/* The store alone: 10 to 10,000 entries of 4 KB, from disk and from a pack, next to plain files. */
int thousand_store(const char *self, const char *root);
int thousand_store_child(const char *way, const char *root, int count);

#endif
