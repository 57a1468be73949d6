/* A kernel with variants on the fake backend, its buffers, and everything that kiln_tune wants. */
#ifndef KILN_TESTS_CORE_TUNE_BENCH_H
#define KILN_TESTS_CORE_TUNE_BENCH_H

#include <kiln/unstable/tune.h>

#include "unit/core/rig.h"

#define ITEMS 16u

/* y = 2 x + 1, by longer and shorter ways. */
extern const char bench_slow[], bench_quick[];

typedef struct bench {
    rig *r;
    kiln_source sources[6];
    kiln_variant variants[6];
    uint64_t sizes[2];
    kiln_kernel kernel;
    kiln_buffer *x, *y;
    kiln_arg args[2];
    kiln_tune_output output;
    kiln_tune_row rows[6];
    kiln_tune_options options;
    kiln_tuning tuning;
} bench;

/* A runtime, two buffers with 0, 1, 2 ... in x and ones in y, and a kernel without variants. */
void bench_open(bench *b, void **state);
/* The same on the runtime of another bench, which closes it; the buffers are the caller's. */
void bench_share(bench *b, const bench *owner);
void bench_close(bench *b);
void bench_add(bench *b, const char *name, const char *text, uint64_t local);
/* plain, quick, and quick8: the fastest, for it makes fewer groups. */
void bench_add_usual(bench *b);

/* kiln_tune; fails the test if that fails. */
void bench_tune(bench *b);
/* kiln_tuned_build, released again; and which variant a build picks. */
kiln_status bench_build(bench *b, kiln_tuning *out_tuning);
size_t bench_picked(bench *b);

#endif
