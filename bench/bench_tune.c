/* Does tuning find the best variant, and is it free afterwards? For each example kernel with
 * variants on each device: what kiln_tune chose, and then, apart from it, every variant as a fixed
 * choice, measured in turns without dropping any. The last columns are for a process that finds the
 * choice on disk: what looking it up costs, and how many launches it makes (none).
 *
 *     bench_tune [--rounds N] [--backend NAME] [--kernel NAME] [MANIFEST] */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/counters.h>

#include "kernel/kernel_data.h"
#include "kernel/kernel_launch.h"
#include "kernel/kernel_variants.h"
#include "manifest/manifest.h"

typedef struct settings {
    const char *manifest, *backend, *kernel;
    size_t rounds;
} settings;

typedef struct bed {
    const settings *how;
    const cli_kernel *kernel;
    const kernel_variants *list;
    kernel_data *data;
    kiln_device *device;
    kernel_launch launch;
    kiln_program *programs[KILN_VARIANTS_MAX];
    bench_samples times[KILN_VARIANTS_MAX];
    kiln_tune_row rows[KILN_VARIANTS_MAX];
} bed;

static void must(kiln_status status, kiln_diag *diag)
{
    if (status != KILN_OK) {
        char text[1024];
        (void)kiln_diag_format(diag, text, sizeof(text));
        (void)fprintf(stderr, "bench_tune: %s\n%s", text, diag->log != NULL ? diag->log : "");
        exit(1);
    }
}

static kiln_element element_of(data_type type)
{
    switch (type) {
    case DATA_F32:
        return KILN_ELEMENT_F32;
    case DATA_I8:
        return KILN_ELEMENT_I8;
    default:
        (void)fprintf(stderr, "bench_tune: no example kernel writes %s\n", data_type_name(type));
        exit(1);
    }
}

static kiln_tuning tune(bed *b)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_tune_output outputs[KERNEL_MAX_ARGS];
    kiln_tuning tuning = {.struct_size = sizeof(tuning)};
    kiln_tune_options options = {.struct_size = sizeof(options),
                                 .args = b->launch.args,
                                 .arg_count = b->kernel->arg_count,
                                 .outputs = outputs,
                                 .rows = b->rows};
    for (size_t i = 0; i < KILN_VARIANTS_MAX; i++) {
        b->rows[i].struct_size = sizeof(b->rows[i]);
    }
    for (size_t i = 0; i < b->kernel->arg_count; i++) {
        const kernel_arg *arg = &b->kernel->args[i];
        const data_tolerance tolerance = arg->has_tolerance ? arg->tolerance : b->kernel->tolerance;
        if (kernel_is_written(arg)) {
            outputs[options.output_count++] =
                (kiln_tune_output){.arg = i,
                                   .element = element_of(arg->type),
                                   .absolute = tolerance.absolute,
                                   .relative = tolerance.relative,
                                   .is_input = arg->access == KERNEL_INOUT};
        }
    }
    must(kiln_tune(b->device, &b->list->kernel, &options, &tuning, &diag), &diag);
    return tuning;
}

/* --- every variant as a fixed choice ---------------------------------------------------------- */

/* Those that tuning could launch: they are in the cache. */
static void build_fixed(bed *b)
{
    kiln_diag diag = KILN_DIAG_INIT;
    for (size_t i = 0; i < b->list->kernel.variant_count; i++) {
        b->times[i].count = 0;
        b->programs[i] = NULL;
        if (b->rows[i].samples > 0) {
            must(kiln_program_build(b->device, b->list->variants[i].source, 1, NULL,
                                    &b->programs[i], &diag),
                 &diag);
        }
    }
}

static double launch_fixed(bed *b, size_t index)
{
    uint64_t ns = 0;
    const kiln_variant *variant = &b->list->variants[index];
    b->launch.shape = variant->launch;
    b->launch.shape.args = b->launch.args;
    b->launch.shape.arg_count = b->launch.count;
    kernel_launch_write(&b->launch, b->data, false);
    kernel_launch_run(&b->launch, b->programs[index], variant->entry, &ns);
    must(b->launch.status, b->launch.diag);
    return (double)ns / 1e3;
}

static void measure_fixed(bed *b)
{
    const size_t count = b->list->kernel.variant_count;
    for (size_t round = 0; round <= b->how->rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            const size_t index = (i + round) % count;
            if (b->programs[index] != NULL) {
                const double us = launch_fixed(b, index);
                if (round > 0) { /* the first one is for warmth */
                    bench_add(&b->times[index], us);
                }
            }
        }
    }
}

static size_t best_fixed(const bed *b)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < b->list->kernel.variant_count; i++) {
        if (b->programs[i] != NULL &&
            (best == SIZE_MAX || bench_median(&b->times[i]) < bench_median(&b->times[best]))) {
            best = i;
        }
    }
    return best;
}

/* --- the next process ------------------------------------------------------------------------- */

/* A cache and a runtime opened afresh, which look the choice up. Microseconds, the least of some.
 */
static double look_up(const bed *b, uint64_t *out_launches)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_device_info *info = kiln_device_get_info(b->device);
    bench_samples samples = {.count = 0};
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    kiln_device *device = NULL;
    kiln_tuning tuning = {.struct_size = sizeof(tuning)};
    must(kiln_runtime_options_init(&options, &diag), &diag);
    options.backend = info->backend;
    options.strict = true;
    must(kiln_runtime_create(&options, &runtime, &diag), &diag);
    must(kiln_runtime_select(runtime, NULL, 0, &device, &diag), &diag);
    for (int i = 0; i < 20; i++) {
        const double start = bench_own();
        must(kiln_tuned_find(device, &b->list->kernel, &tuning, &diag), &diag);
        bench_add(&samples, (bench_own() - start) * 1e6);
    }
    *out_launches = kiln_cache_counter(kiln_runtime_cache(runtime), KILN_COUNTER_TUNE_LAUNCHES);
    kiln_runtime_destroy(runtime);
    return bench_median(&samples);
}

/* --- a kernel on a device --------------------------------------------------------------------- */

static void print_row(const bed *b, const kiln_tuning *tuning)
{
    uint64_t launches = 0;
    const double looked = look_up(b, &launches);
    const size_t best = best_fixed(b);
    const double chosen_us = bench_median(&b->times[tuning->variant]);
    const double best_us = bench_median(&b->times[best]);
    (void)printf("| %s | %s | %.0f | %s | %.0f | %.2f | %s | %.2f | %.1f | %llu | %.0f | %llu |\n",
                 kiln_device_get_info(b->device)->backend, b->kernel->name,
                 bench_median(&b->times[tuning->baseline]), b->list->variants[tuning->variant].name,
                 chosen_us, bench_median(&b->times[tuning->baseline]) / chosen_us,
                 b->list->variants[best].name, chosen_us / best_us, (double)tuning->took_ns / 1e9,
                 (unsigned long long)tuning->launches, looked, (unsigned long long)launches);
    (void)fflush(stdout);
}

static void run(const settings *how, cli_kernel *kernel, const kernel_variants *list,
                kernel_data *data, kiln_device *device)
{
    kiln_diag diag = KILN_DIAG_INIT;
    bed *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        exit(1);
    }
    *b = (bed){.how = how, .kernel = kernel, .list = list, .data = data, .device = device};
    kernel_launch_init(&b->launch, device, kernel, &kernel->forms[0].shape, data, &diag);
    kernel_launch_write(&b->launch, data, true);
    must(b->launch.status, &diag);
    const kiln_tuning tuning = tune(b);
    build_fixed(b);
    measure_fixed(b);
    print_row(b, &tuning);
    for (size_t i = 0; i < list->kernel.variant_count; i++) {
        kiln_program_release(b->programs[i]);
    }
    kernel_launch_deinit(&b->launch);
    free(b);
}

static void run_all(const settings *how, const cli_manifest *manifest, kiln_runtime *runtime)
{
    for (size_t d = 0; d < kiln_runtime_device_count(runtime); d++) {
        for (size_t i = 0; i < manifest->count; i++) {
            kiln_diag diag = KILN_DIAG_INIT;
            cli_kernel *kernel = &manifest->kernels[i];
            kernel_variants *list = NULL;
            kernel_data data;
            if (kernel->variant_count == 0 ||
                (how->kernel != NULL && strcmp(how->kernel, kernel->name) != 0)) {
                continue;
            }
            must(kernel_data_load(kernel, &data, &diag), &diag);
            must(kernel_variants_create(kernel, &list, &diag), &diag);
            run(how, kernel, list, &data, kiln_runtime_device(runtime, d));
            kernel_variants_destroy(list);
            kernel_data_deinit(&data);
        }
    }
}

static settings read_arguments(int argc, char **argv)
{
    settings how = {.manifest = BENCH_MANIFEST, .rounds = 40};
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--rounds") == 0 && more) {
            how.rounds = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--backend") == 0 && more) {
            how.backend = argv[++i];
        } else if (strcmp(argv[i], "--kernel") == 0 && more) {
            how.kernel = argv[++i];
        } else {
            how.manifest = argv[i];
        }
    }
    if (how.rounds < 1 || how.rounds > BENCH_MAX_SAMPLES) {
        how.rounds = 40;
    }
    return how;
}

int main(int argc, char **argv)
{
    const settings how = read_arguments(argc, argv);
    kiln_diag diag = KILN_DIAG_INIT;
    cli_pool pool = POOL_INIT;
    cli_manifest manifest;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    char dir[256];
    if (!bench_dir(dir, sizeof(dir)) || setenv("KILN_CACHE_DIR", dir, 1) != 0) {
        return 1;
    }
    must(manifest_read(how.manifest, &pool, &manifest, &diag), &diag);
    must(kiln_runtime_options_init(&options, &diag), &diag);
    options.backend = how.backend;
    must(kiln_runtime_create(&options, &runtime, &diag), &diag);
    bench_print_machine();
    (void)printf("\nus of a launch, medians of %zu rounds; tuning in s; a look-up in us\n\n"
                 "| device | kernel | baseline | chosen | its time | gain | best fixed | chosen / "
                 "best | tuning took | launches | later: look-up | launches |\n"
                 "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
                 how.rounds);
    run_all(&how, &manifest, runtime);
    kiln_runtime_destroy(runtime);
    pool_deinit(&pool);
    bench_remove(dir);
    return 0;
}
