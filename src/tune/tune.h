/* Tuning inside core: a kernel's list, the key of what was found for it, and the bench that
 * variants are measured on. src/tune decides; here it is joined with programs, launches and the
 * cache. */
#ifndef KILN_TUNE_TUNE_H
#define KILN_TUNE_TUNE_H

#include "kiln/unstable/tune.h"

#include "tune/record.h"

/* --- the list (tune_kernel.c) ----------------------------------------------------------------- */

/* A kernel as this library knows it; texts are still the caller's. */
typedef struct kn_kernel {
    kiln_kernel kernel;
    kiln_variant *variants; /* the same list */
    kiln_source *sources;   /* of those that came in another size */
} kn_kernel;

/* Whether the device's backend takes the variant's language. */
bool kn_variant_taken(const kiln_device *device, const kiln_variant *variant);

/* Refuses a list that says nothing sensible: KILN_E_INVALID; opens the device's driver
 * (KILN_E_UNAVAILABLE); KILN_E_UNSUPPORTED if the device takes none of it; KILN_E_NOMEM.
 * kn_kernel_drop in any case. */
kiln_status kn_kernel_take(kiln_device *device, const kiln_kernel *given, kn_kernel *out_taken,
                           kiln_diag *diag);
void kn_kernel_drop(kn_kernel *taken);

/* --- what was found (tuned.c) ----------------------------------------------------------------- */

/* The recipe that a choice is kept under: the kernel's name, the bucket of its size, the device
 * with its driver, and every variant that the device takes. Headers and compilers are not in it:
 * those of the variant that was chosen are in the record (kn_tune_record.program). */
kiln_status kn_tune_recipe(const kiln_device *device, const kiln_kernel *kernel,
                           kiln_recipe **out_recipe, kiln_diag *diag);

/* Looks a record up and fills *out_tuning but for `baseline`; KILN_MISS also where the variant has
 * another name by now, or does not fit the device. Asks remotes only if it may go `far`. `rows`
 * (may be NULL), one a variant, get what was measured of each, where the record says. */
kiln_status kn_tuned_look(kiln_device *device, const kiln_kernel *kernel, bool far,
                          kn_tune_record *out_record, kiln_tune_row *rows, kiln_tuning *out_tuning,
                          kiln_diag *diag);

/* Builds the variant that was found, if its program is the one that was measured; otherwise, and if
 * it does not build, KILN_MISS without a diag: the tuning is counted as stale. */
kiln_status kn_tuned_try(kiln_device *device, const kiln_kernel *kernel,
                         const kn_tune_record *record, const kiln_tuning *tuning,
                         const kiln_build_options *options, kiln_program **out_program);

/* --- the bench (tune_bench.c) ----------------------------------------------------------------- */

/* A written buffer while variants run. */
typedef struct kn_bench_output {
    const kiln_tune_output *what;
    kiln_buffer *buffer; /* the caller's */
    size_t offset, size;
    kiln_buffer *before; /* its contents when it is an input, or NULL */
    void *wanted, *got;
} kn_bench_output;

typedef struct kn_bench_entry {
    kiln_program *program; /* NULL: out of the race */
    bool has_key;
    kiln_key key;   /* of the program's first stage */
    uint32_t batch; /* launches a sample */
} kn_bench_entry;

typedef struct kn_bench {
    kiln_device *device;
    const kiln_kernel *kernel;
    const kiln_tune_options *options;
    kiln_queue *queue;
    kn_bench_output *outputs;
    kn_bench_entry *entries; /* one a variant */
    kiln_tune_row *rows;     /* the same */
    kiln_tune_row *own_rows; /* rows, where the caller gave none */
    uint64_t launches;
    kiln_diag *diag; /* of the call */
} kn_bench;

/* kn_bench_deinit in any case: it puts back what was read. Fails: KILN_E_NOMEM, driver errors. */
kiln_status kn_bench_init(kn_bench *bench, kiln_device *device, const kiln_kernel *kernel,
                          const kiln_tune_options *options, kiln_diag *diag);
void kn_bench_deinit(kn_bench *bench);

/* Builds a variant. Its own failure goes into its row as well. */
kiln_status kn_bench_build(kn_bench *bench, size_t index, kiln_diag *diag);
/* Launches the baseline once, and keeps what it computed. */
kiln_status kn_bench_want(kn_bench *bench, size_t index, kiln_diag *diag);
/* Launches a variant once and compares; what differs is reported in its row, and leaves it out.
 * Fails for errors that are not the variant's alone. */
kiln_status kn_bench_check(kn_bench *bench, size_t index, kiln_diag *diag);
/* One sample: a kn_measure_fn. */
kiln_status kn_bench_measure(void *user, size_t index, uint64_t *out_ns);

#endif
