/* kiln tune: measures the variants of a manifest's kernels, with their arguments, on one device or
 * on all, and keeps the fastest. */
#include <stdio.h>
#include <string.h>

#include "cli/diag.h"
#include "cli/session.h"
#include "cmd/tune_report.h"
#include "kernel/kernel_build.h"
#include "kernel/kernel_data.h"
#include "kernel/kernel_launch.h"
#include "kernel/kernel_variants.h"
#include "manifest/manifest.h"

typedef struct tune_options {
    session_options session;
    opt_list kernels;
    bool all_devices;
    bool again;
    bool all_rows;
    opt_number budget;
} tune_options;

static const opt_spec specs[] = {{"kernel", 'k', OPT_LIST, offsetof(tune_options, kernels), "NAME",
                                  "only this kernel (may be repeated)"},
                                 {"all-devices", 'a', OPT_FLAG, offsetof(tune_options, all_devices),
                                  NULL, "on every device, not only on the best"},
                                 {"again", 0, OPT_FLAG, offsetof(tune_options, again), NULL,
                                  "measure what is known already, too"},
                                 {"budget", 0, OPT_DURATION, offsetof(tune_options, budget), "TIME",
                                  "spend at most this long on each kernel (default 3s)"},
                                 {"variants", 0, OPT_FLAG, offsetof(tune_options, all_rows), NULL,
                                  "list every variant with its times"},
                                 SESSION_DEVICE_ROWS(tune_options),
                                 SESSION_TRACE_ROW(tune_options),
                                 SESSION_CACHE_ROW(tune_options),
                                 SESSION_JSON_ROW(tune_options),
                                 OPT_END};

typedef struct tune_work {
    const cmd_context *context;
    const tune_options *options;
    kiln_cache *cache;
    kiln_runtime *runtime;
    cli_manifest manifest;
    tune_item *items;
    size_t count, done, total, without;
    char label[256]; /* of what is being tuned, for the bar */
    exit_code code;  /* of the first thing that went wrong */
} tune_work;

static void fail_with(tune_work *work, exit_code code)
{
    work->code = work->code == EXIT_FINE ? code : work->code;
}

/* --- one kernel on one device ----------------------------------------------------------------- */

static kiln_element element_of(data_type type)
{
    static const kiln_element elements[DATA_TYPE_COUNT] = {
        [DATA_F16] = KILN_ELEMENT_F16, [DATA_F32] = KILN_ELEMENT_F32, [DATA_F64] = KILN_ELEMENT_F64,
        [DATA_I8] = KILN_ELEMENT_I8,   [DATA_I16] = KILN_ELEMENT_I16, [DATA_I32] = KILN_ELEMENT_I32,
        [DATA_I64] = KILN_ELEMENT_I64, [DATA_U8] = KILN_ELEMENT_U8,   [DATA_U16] = KILN_ELEMENT_U16,
        [DATA_U32] = KILN_ELEMENT_U32, [DATA_U64] = KILN_ELEMENT_U64};
    return elements[type];
}

static size_t describe_outputs(const cli_kernel *kernel, kiln_tune_output *outputs)
{
    size_t count = 0;
    for (size_t i = 0; i < kernel->arg_count; i++) {
        const kernel_arg *arg = &kernel->args[i];
        if (kernel_is_written(arg)) {
            const data_tolerance tolerance =
                arg->has_tolerance ? arg->tolerance : kernel->tolerance;
            outputs[count++] = (kiln_tune_output){.arg = i,
                                                  .element = element_of(arg->type),
                                                  .absolute = tolerance.absolute,
                                                  .relative = tolerance.relative,
                                                  .is_input = arg->access == KERNEL_INOUT};
        }
    }
    return count;
}

static void on_progress(void *user, const char *what, uint32_t round, uint32_t round_limit)
{
    const tune_work *work = user;
    char line[400];
    if (round == 0) {
        (void)snprintf(line, sizeof(line), "%s: %s", work->label, what);
    } else {
        (void)snprintf(line, sizeof(line), "%s: round %u of at most %u", work->label, round,
                       round_limit);
    }
    console_progress(work->context->console, work->done, work->total, line, 0);
}

static kiln_status measure_variants(tune_work *work, const kernel_variants *list,
                                    kiln_device *device, const cli_kernel *kernel,
                                    const kernel_data *data, tune_item *item, kiln_diag *diag)
{
    kiln_tune_output outputs[KERNEL_MAX_ARGS];
    kernel_launch launch = {0};
    kiln_build_options build = {.struct_size = sizeof(build),
                                .progress = console_on_progress,
                                .user = work->context->console};
    kiln_tune_options options = {.struct_size = sizeof(options),
                                 .args = launch.args,
                                 .arg_count = kernel->arg_count,
                                 .outputs = outputs,
                                 .output_count = describe_outputs(kernel, outputs),
                                 .again = work->options->again,
                                 .build = &build,
                                 .progress = on_progress,
                                 .user = work,
                                 .rows = item->rows};
    if (work->options->budget.given) {
        const uint64_t ms = work->options->budget.value / 1000000;
        options.budget_ms = ms < 1 ? 1 : ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
    }
    kernel_launch_init(&launch, device, kernel, &kernel->forms[0].shape, data, diag);
    kernel_launch_write(&launch, data, true);
    kiln_status status = launch.status;
    if (status == KILN_OK) {
        item->tuning.struct_size = sizeof(item->tuning);
        status = kiln_tune(device, &list->kernel, &options, &item->tuning, diag);
    }
    kernel_launch_deinit(&launch);
    return status;
}

/* A result that differs is a mistake in a kernel: it is reported, and the command fails, each time.
 * A variant that does not compile or does not fit the device is reported. */
static void report_refused(tune_work *work, const tune_item *item)
{
    const bool known = item->tuning.origin != KILN_ORIGIN_NONE;
    for (size_t i = 0; i < item->count; i++) {
        const kiln_tune_outcome outcome = item->rows[i].outcome;
        if (outcome == KILN_TUNE_DIFFERS || outcome == KILN_TUNE_FAILED) {
            console_say(work->context->console, "%s on %s:%u: %s %s: %s%s", item->kernel->name,
                        item->device->backend, item->device->index,
                        kernel_variants_form(item->kernel, i)->name,
                        outcome == KILN_TUNE_DIFFERS ? "is refused" : "failed",
                        item->rows[i].reason,
                        known ? " (as it was measured; --again measures it again)" : "");
        }
        if (outcome == KILN_TUNE_DIFFERS) {
            fail_with(work, EXIT_FAILED);
        }
    }
}

static const char *keep_line(tune_work *work, kiln_diag *diag, kiln_status status)
{
    char line[1536];
    (void)kiln_diag_format(diag, line, sizeof(line));
    const char *kept = pool_text(work->context->pool, line, strlen(line));
    return kept != NULL ? kept : kiln_status_text(status);
}

static void tune_on(tune_work *work, const cli_kernel *kernel, const kernel_variants *list,
                    const kernel_data *data, kiln_device *device)
{
    kiln_diag diag = KILN_DIAG_INIT;
    tune_item *item = &work->items[work->count++];
    item->kernel = kernel;
    item->device = kiln_device_get_info(device);
    item->count = list->kernel.variant_count;
    item->rows = pool_array(work->context->pool, item->count, sizeof(*item->rows));
    (void)snprintf(work->label, sizeof(work->label), "%.80s on %s:%u", kernel->name,
                   item->device->backend, item->device->index);
    for (size_t i = 0; i < item->count && item->rows != NULL; i++) {
        item->rows[i].struct_size = sizeof(item->rows[i]);
    }
    item->status = item->rows != NULL
                       ? measure_variants(work, list, device, kernel, data, item, &diag)
                       : diag_no_memory(&diag, kernel->name);
    work->done++;
    if (item->status == KILN_OK) {
        report_refused(work, item);
        return;
    }
    item->skipped = work->options->all_devices &&
                    (item->status == KILN_E_UNSUPPORTED || item->status == KILN_E_UNAVAILABLE);
    item->reason = keep_line(work, &diag, item->status);
    if (!item->skipped) {
        fail_with(work, cmd_fail(work->context, &diag));
    }
    kiln_diag_clear(&diag);
}

static void tune_everywhere(tune_work *work, const cli_kernel *kernel, const kernel_variants *list,
                            const kernel_data *data)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const size_t before = work->count;
    size_t skipped = 0;
    for (size_t i = 0; i < kiln_runtime_device_count(work->runtime); i++) {
        tune_on(work, kernel, list, data, kiln_runtime_device(work->runtime, i));
        skipped += work->items[work->count - 1].skipped;
    }
    if (work->count - before == skipped) {
        (void)kiln_diag_set(&diag, KILN_E_UNAVAILABLE, "kiln devices lists what there is",
                            kernel->name, "no device can run it");
        fail_with(work, cmd_fail(work->context, &diag));
    }
}

static void tune_kernel(tune_work *work, const cli_kernel *kernel)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kernel_data data;
    kernel_variants *list = NULL;
    kiln_device *device = NULL;
    kiln_status status = kernel_data_load(kernel, &data, &diag);
    if (status == KILN_OK) {
        status = kernel_variants_create(kernel, &list, &diag);
    }
    if (status == KILN_OK && !work->options->all_devices) {
        status = kernel_select_device(work->runtime, kernel, &device, &diag);
    }
    if (status != KILN_OK) {
        work->items[work->count++] = (tune_item){
            .kernel = kernel, .status = status, .reason = keep_line(work, &diag, status)};
        fail_with(work, cmd_fail(work->context, &diag));
    } else if (work->options->all_devices) {
        tune_everywhere(work, kernel, list, &data);
    } else {
        tune_on(work, kernel, list, &data, device);
    }
    kernel_variants_destroy(list);
    kernel_data_deinit(&data);
}

/* --- all of them ------------------------------------------------------------------------------ */

static kiln_status read_tune_manifest(tune_work *work, const char *path, kiln_diag *diag)
{
    kiln_status status = manifest_read(path, work->context->pool, &work->manifest, diag);
    if (status == KILN_OK) {
        status = manifest_keep(&work->manifest, &work->options->kernels, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    for (size_t i = 0; i < work->manifest.count; i++) {
        work->total += work->manifest.kernels[i].variant_count > 0;
    }
    work->without = work->manifest.count - work->total;
    return work->total > 0
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, "see kiln-manifest(5) for how to list them",
                               path, "its kernels have no variants: there is nothing to tune");
}

static exit_code tune_all(tune_work *work)
{
    const tune_options *options = work->options;
    cli_pool *pool = work->context->pool;
    const size_t devices = options->all_devices ? kiln_runtime_device_count(work->runtime) : 1;
    work->total *= devices;
    work->items = pool_array(pool, work->total + work->manifest.count, sizeof(*work->items));
    if (work->items == NULL) {
        return cmd_no_memory(work->context);
    }
    for (size_t i = 0; i < work->manifest.count; i++) {
        const cli_kernel *kernel = &work->manifest.kernels[i];
        if (kernel->variant_count > 0) {
            tune_kernel(work, kernel);
        }
    }
    console_progress_end(work->context->console);
    const tune_result result = {.source = work->manifest.path,
                                .summary = kiln_runtime_summary(work->runtime),
                                .items = work->items,
                                .count = work->count,
                                .without = work->without,
                                .all_rows = options->all_rows};
    bool good = options->session.json ? tune_print_json(&result) : tune_print_table(&result, pool);
    return good ? work->code : cmd_no_memory(work->context);
}

static exit_code run_tune(const cmd_context *context, void *fields, const opt_list *arguments)
{
    tune_work work = {.context = context, .options = fields, .code = EXIT_FINE};
    const session_options *session = &work.options->session;
    kiln_diag diag = KILN_DIAG_INIT;
    if (read_tune_manifest(&work, arguments->items[0], &diag) != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    exit_code code = session_open(context, session, &work.cache, &work.runtime);
    if (code == EXIT_FINE) {
        code = tune_all(&work);
    }
    session_close(work.cache, work.runtime);
    return code;
}

const cli_command cmd_tune = {
    .name = "tune",
    .usage = "MANIFEST",
    .summary = "Measures the variants of kernels and keeps the fastest",
    .details =
        "Each variant that a MANIFEST lists (kiln-manifest(5)) is built, launched with the\n"
        "manifest's arguments, compared with the kernel's own form, and timed in turns with the\n"
        "others until one is clearly ahead. What is kept holds for the device, its driver and\n"
        "sizes up to the next power of two; kiln run and kiln_tuned_build take it from then on,\n"
        "and packs carry it. A second run measures nothing. A variant whose result differs is\n"
        "rejected and reported, and the exit code is 1.",
    .options = specs,
    .options_size = sizeof(tune_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_tune,
};
