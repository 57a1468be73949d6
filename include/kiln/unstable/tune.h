/* Variants of a kernel, measured once on a device with real arguments, and picked ever after.
 *
 * A kernel's variants do the same work in different ways: other definitions, another work-group
 * size, another source altogether. They take the same arguments. The first one that the device
 * takes is the baseline: it runs where nothing was measured, and what it computes is what the
 * others must compute.
 *
 *     kiln_tune(device, &kernel, &options, &tuning, &diag);        once, say at installation
 *
 *     kiln_tuned_build(device, &kernel, NULL, &program, &tuning, &diag);      ever after
 *     kiln_launch launch = kernel.variants[tuning.variant].launch;
 *     launch.args = args, launch.arg_count = count;
 *     kiln_queue_launch(queue, program, kernel.variants[tuning.variant].entry, &launch, ...);
 *
 * What was found is an entry of the cache: under the kernel's name and variants, the device, its
 * driver and the size of the problem (docs/advanced.md). It goes into packs. KILN_UNTUNED=1, or
 * kiln_runtime_options.untuned, picks the baseline always. */
#ifndef KILN_UNSTABLE_TUNE_H
#define KILN_UNSTABLE_TUNE_H

#include "kiln/launch.h"

KILN_BEGIN_DECLS

#define KILN_VARIANTS_MAX 64u
#define KILN_SIZES_MAX 8u

/* One way to run a kernel. */
typedef struct kiln_variant {
    size_t struct_size;
    const char *name;          /* its own among the kernel's variants: what is remembered */
    const kiln_source *source; /* in one language; a language that the device does not take passes
                                  the variant over */
    const char *entry;
    kiln_launch launch; /* shape alone: `args` are not looked at; nothing will follow it */
} kiln_variant;

/* A kernel with its variants. */
typedef struct kiln_kernel {
    size_t struct_size;
    const char *name;             /* letters, digits, '.', '-', '_', at most 64 */
    const kiln_variant *variants; /* the baseline first; at most KILN_VARIANTS_MAX */
    size_t variant_count;
    const uint64_t *sizes; /* of the problem: {m, n, k}, say. What is found holds for sizes that are
                              as large up to a power of two, each */
    size_t size_count;     /* at most KILN_SIZES_MAX */
    double flops, bytes;   /* floating-point operations, and bytes moved, of a launch; 0: unknown */
} kiln_kernel;

/* What a written buffer holds, for the comparison. */
typedef enum kiln_element {
    KILN_ELEMENT_F32 = 0,
    KILN_ELEMENT_F64,
    KILN_ELEMENT_F16,
    KILN_ELEMENT_BF16,
    KILN_ELEMENT_I8,
    KILN_ELEMENT_I16,
    KILN_ELEMENT_I32,
    KILN_ELEMENT_I64,
    KILN_ELEMENT_U8,
    KILN_ELEMENT_U16,
    KILN_ELEMENT_U32,
    KILN_ELEMENT_U64,
} kiln_element;

/* A buffer that the kernel writes. An element may be off by `absolute` + `relative` times what the
 * baseline gives. */
typedef struct kiln_tune_output {
    size_t arg; /* index */
    kiln_element element;
    double absolute, relative;
    bool is_input; /* read as well: it is put back before every launch, and when all is done */
} kiln_tune_output;

/* What became of a variant. */
#define KILN_TUNE_OUTCOME_MAP(X)                                                                   \
    X(KILN_TUNE_PASSED_OVER, "skipped")       /* its language, or its compiler, is not for here */ \
    X(KILN_TUNE_NOT_MEASURED, "not measured") /* the choice was known already */                   \
    X(KILN_TUNE_FAILED, "failed")             /* does not compile, load or run */                  \
    X(KILN_TUNE_DIFFERS, "differs")           /* computes something else than the baseline */      \
    X(KILN_TUNE_BEHIND, "behind")             /* clearly slower: not measured to the end */        \
    X(KILN_TUNE_MEASURED, "measured")                                                              \
    X(KILN_TUNE_CHOSEN, "chosen")

/* One of them. */
typedef enum kiln_tune_outcome {
#define KILN_TUNE_ENUM(name, text) name,
    KILN_TUNE_OUTCOME_MAP(KILN_TUNE_ENUM)
#undef KILN_TUNE_ENUM
} kiln_tune_outcome;

/* The outcome's text in KILN_TUNE_OUTCOME_MAP.
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never; "unknown". */
KILN_API const char *kiln_tune_outcome_name(kiln_tune_outcome outcome);

/* One variant's measurement. Times are of one launch; low_ns and high_ns hold the median between
 * them with 99 % confidence (fewer than eight samples: the least and the largest). */
typedef struct kiln_tune_row {
    size_t struct_size;
    kiln_tune_outcome outcome;
    kiln_status status; /* why it failed or was passed over */
    uint32_t samples;
    uint64_t median_ns, low_ns, high_ns;
    char reason[384]; /* one line; "" if it was measured */
} kiln_tune_row;

/* Called for each variant before it is built and checked (`round` 0), and of each round. */
typedef void kiln_tune_progress_fn(void *user, const char *what, uint32_t round,
                                   uint32_t round_limit);

/* With what to measure, and how long. Zero it and set struct_size first. */
typedef struct kiln_tune_options {
    size_t struct_size;
    const kiln_arg *args; /* real ones, with data in the buffers */
    size_t arg_count;
    const kiln_tune_output *outputs; /* at least one: without, nothing could be compared */
    size_t output_count;
    bool again;          /* measure even where it is known */
    uint32_t rounds_min; /* each variant is launched so often before one can be ahead; 0: 8 */
    uint32_t rounds_max; /* 0: 60; at most 1,000 */
    uint32_t budget_ms;  /* stop after this time, if every variant had five rounds; 0: 3,000 */
    const kiln_build_options *build; /* NULL: none */
    kiln_tune_progress_fn *progress; /* may be NULL */
    void *user;
    kiln_tune_row *rows; /* variant_count of them, struct_size set in each; or NULL */
} kiln_tune_options;

/* What is known of a kernel on a device. Set struct_size before the call. */
typedef struct kiln_tuning {
    size_t struct_size;
    size_t variant;     /* index: the one to run */
    size_t baseline;    /* index */
    bool known;         /* false: nothing was measured, `variant` is the baseline */
    kiln_origin origin; /* where it was found; KILN_ORIGIN_NONE: measured by this call */
    uint64_t ns;        /* of a launch of `variant`, when it was measured */
    uint64_t baseline_ns;
    double flops_per_s, bytes_per_s; /* of `variant`; 0: unknown */
    uint64_t launches;               /* made by this call to check and to measure */
    uint64_t took_ns;                /* this call */
} kiln_tuning;

/* Finds the fastest variant: builds all, refuses those whose output differs from the baseline's,
 * warms up, launches them in turns, drops those that are clearly behind, and stops when one is
 * clearly ahead, when they are even, or when the time is up. The choice is kept in the cache. Where
 * it is there already (on disk, in a pack, on a remote) nothing is measured, unless options->again.
 * Threads: any; whatever else the device does makes the figures worse.
 * Blocks: compilers, driver, disk, the launches.
 * Owns: borrows everything for the call. Written buffers that are not inputs hold anything after
 * it.
 * Fails: KILN_E_INVALID (lists, sizes, arguments, outputs), KILN_E_UNSUPPORTED (no variant for this
 * backend), KILN_E_UNAVAILABLE, what building, launching or reading the baseline gives,
 * KILN_E_DEVICE_LOST, KILN_E_NOMEM. A variant that fails alone is a row, not a failure. */
KILN_API KILN_MUST_CHECK kiln_status kiln_tune(kiln_device *device, const kiln_kernel *kernel,
                                               const kiln_tune_options *options,
                                               kiln_tuning *out_tuning, kiln_diag *diag);

/* Looks up what was measured before, without building anything and without asking a remote.
 * Threads: any.   Blocks: disk; a driver that is not open yet.   Owns: nothing.
 * Fails: KILN_MISS (no diag: nothing is known, or the runtime is untuned), KILN_E_INVALID (lists,
 * sizes), KILN_E_UNSUPPORTED (no variant for this backend), KILN_E_UNAVAILABLE (its driver),
 * KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_tuned_find(kiln_device *device, const kiln_kernel *kernel,
                                                     kiln_tuning *out_tuning, kiln_diag *diag);

/* Builds the variant that was found fastest, else the baseline; measures nothing. What was found
 * is passed over, and counted as stale, where the variant's source or headers, its compiler, the
 * device or its driver are not what they were, where the shape does not fit the device, and where
 * it does not build: tuning never fails a build.
 * Threads: any.   Blocks: disk, compiler, driver.
 * Owns: *out_program is yours, kiln_program_release(); `out_tuning` may be NULL.
 * Fails: as kiln_program_build of the baseline; KILN_E_INVALID (lists, sizes). */
KILN_API KILN_MUST_CHECK kiln_status kiln_tuned_build(kiln_device *device,
                                                      const kiln_kernel *kernel,
                                                      const kiln_build_options *options,
                                                      kiln_program **out_program,
                                                      kiln_tuning *out_tuning, kiln_diag *diag);

KILN_END_DECLS

#endif
