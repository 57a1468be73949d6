/* kiln run: a manifest's kernels, or one kernel file, on one device or on all. */
#include <inttypes.h>
#include <string.h>

#include <kiln/unstable/tune.h>

#include "cli/host.h"
#include "cli/out.h"
#include "cli/session.h"
#include "cmd/report.h"
#include "cmd/run_file.h"
#include "cmd/run_watch.h"
#include "kernel/kernel_arg.h"
#include "kernel/kernel_reference.h"
#include "kernel/kernel_run.h"
#include "manifest/manifest.h"

typedef struct run_options {
    session_options session;
    run_file_options file;
    opt_list kernels;
    bool all_devices;
    opt_number repeat;
    bool no_check;
    bool cache_only;
    bool watch;
} run_options;

static const opt_spec specs[] = {{"kernel", 'k', OPT_LIST, offsetof(run_options, kernels), "NAME",
                                  "manifest: only this kernel (may be repeated)"},
                                 {"all-devices", 'a', OPT_FLAG, offsetof(run_options, all_devices),
                                  NULL, "on every device, not only on the best"},
                                 {"repeat", 'n', OPT_COUNT, offsetof(run_options, repeat), "N",
                                  "launch N times for the median (default 10, at most 1 s)"},
                                 {"no-check", 0, OPT_FLAG, offsetof(run_options, no_check), NULL,
                                  "do not compare with reference or --expect"},
                                 {"cache-only", 0, OPT_FLAG, offsetof(run_options, cache_only),
                                  NULL, "never compile: what is not in the cache fails"},
                                 {"watch", 'w', OPT_FLAG, offsetof(run_options, watch), NULL,
                                  "run again when a source or header changes, until interrupted"},
                                 RUN_FILE_ROWS(run_options),
                                 SESSION_DEVICE_ROWS(run_options),
                                 SESSION_UNTUNED_ROW(run_options),
                                 SESSION_TRACE_ROW(run_options),
                                 SESSION_CACHE_ROW(run_options),
                                 SESSION_JSON_ROW(run_options),
                                 OPT_END};

static const uint64_t watch_pause_ns = 100000000u;

/* Everything a run needs, so that it can be passed on as one. */
typedef struct run_state {
    const cmd_context *context;
    const run_options *options;
    kiln_cache *cache;
    kiln_runtime *runtime;
    reference_host reference;
    cli_manifest manifest;
    cli_report report;
    size_t done, total; /* for the progress bar */
    exit_code code;     /* of the first thing that went wrong */
} run_state;

/* Reports a failure and remembers the first one's exit code. */
static void note_failure(run_state *run, kiln_diag *diag)
{
    /* a miss here is not a wrong argument: it is --cache-only that failed */
    exit_code code = diag->status == KILN_MISS ? cmd_fail_as(run->context, EXIT_FAILED, diag)
                                               : cmd_fail(run->context, diag);
    run->code = run->code == EXIT_FINE ? code : run->code;
}

static void note_compile(const run_state *run, const kernel_result *result)
{
    if (result->compiles > 0) {
        const char *time = out_time(run->context->pool, result->compile_ns);
        console_note(run->context->console, "compiled %s for %s in %s", result->kernel,
                     result->device->backend, time != NULL ? time : "?");
    }
}

/* A device that cannot run a kernel, where all devices are tried, is reported but is not a
 * failure. */
static bool skip_kernel(run_state *run, kiln_status status, const kernel_result *result,
                        kiln_diag *diag)
{
    cli_report *report = &run->report;
    if (status != KILN_E_UNSUPPORTED && status != KILN_E_UNAVAILABLE) {
        return false;
    }
    const char *why = status == KILN_E_UNSUPPORTED ? diag->why : result->reason;
    const char *reason = pool_text(run->context->pool, why, strlen(why));
    report->skips[report->skip_count++] =
        (report_skip){result->kernel, result->device, reason != NULL ? reason : ""};
    kiln_diag_clear(diag);
    return true;
}

/* Reports how a kernel did on one device. */
static void settle_result(run_state *run, cli_kernel *kernel, kernel_data *data,
                          kernel_result *result, kiln_diag *diag)
{
    kiln_status status = result->status;
    run->done++;
    if (run->options->all_devices && skip_kernel(run, status, result, diag)) {
        return;
    }
    run->report.result_count++;
    note_compile(run, result);
    if (status == KILN_OK && result->ok) {
        status = kernel_data_save(kernel, data, diag);
    } else if (status == KILN_OK) {
        console_say(run->context->console, "%s on %s:%u: wrong result: %s", kernel->name,
                    result->device->backend, result->device->index, result->reason);
        run->code = run->code == EXIT_FINE ? EXIT_FAILED : run->code;
    }
    if (status != KILN_OK) {
        note_failure(run, diag);
    }
}

/* The kernel's data and reference, and the device for it; NULL where all are tried. */
static kiln_status prepare_kernel(run_state *run, cli_kernel *kernel, kernel_data *data,
                                  kiln_device **out_device, kiln_diag *diag)
{
    kiln_status status = kernel_data_load(kernel, data, diag);
    if (status == KILN_OK && !run->options->no_check) {
        status = kernel_reference_run(&run->reference, kernel, data, diag);
    }
    if (status == KILN_OK && !run->options->all_devices) {
        status = kernel_select_device(run->runtime, kernel, out_device, diag);
    }
    if (status != KILN_OK) {
        kernel_result *result = &run->report.results[run->report.result_count++];
        *result = (kernel_result){.kernel = kernel->name, .status = status};
        (void)kiln_diag_format(diag, result->reason, sizeof(result->reason));
        note_failure(run, diag);
    }
    return status;
}

static void run_kernel(run_state *run, cli_kernel *kernel)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kernel_data data;
    kiln_device *device = NULL;
    const opt_number *repeat = &run->options->repeat;
    const kernel_run_options options = {repeat->given ? (uint32_t)repeat->value : 10,
                                        !repeat->given, !run->options->no_check,
                                        run->context->console, run->options->cache_only};
    const size_t before = run->report.result_count;
    const kiln_status status = prepare_kernel(run, kernel, &data, &device, &diag);
    size_t count = device != NULL ? 1 : 0;
    if (status == KILN_OK && run->options->all_devices) {
        count = kiln_runtime_device_count(run->runtime);
    }
    for (size_t i = 0; i < count; i++) {
        kiln_diag own = KILN_DIAG_INIT;
        kiln_device *on = device != NULL ? device : kiln_runtime_device(run->runtime, i);
        kernel_result *result = &run->report.results[run->report.result_count];
        console_progress(run->context->console, run->done, run->total, kernel->name, 0);
        (void)kernel_run(kernel, on, &data, &options, result, &own); /* the result has its status */
        settle_result(run, kernel, &data, result, &own);
    }
    if (status == KILN_OK && run->report.result_count == before) {
        (void)kiln_diag_set(&diag, KILN_E_UNAVAILABLE, "kiln devices lists what there is",
                            kernel->name, "no device can run it");
        note_failure(run, &diag);
    }
    kernel_data_deinit(&data);
}

static bool print_report(run_state *run)
{
    console_progress_end(run->context->console);
    return run->options->session.json ? report_print_json(&run->report)
                                      : report_print_table(&run->report, run->context->pool);
}

/* Room for what all the kernels will give. */
static exit_code begin_report(run_state *run)
{
    cli_pool *pool = run->context->pool;
    size_t devices = run->options->all_devices ? kiln_runtime_device_count(run->runtime) : 1;
    const size_t room = run->manifest.count * (devices > 0 ? devices : 1);
    run->report.source = run->manifest.path;
    run->report.summary = kiln_runtime_summary(run->runtime);
    run->report.results = pool_array(pool, room, sizeof(kernel_result));
    run->report.skips = pool_array(pool, room, sizeof(report_skip));
    run->total = room;
    return run->report.results != NULL && run->report.skips != NULL ? EXIT_FINE
                                                                    : cmd_no_memory(run->context);
}

/* --- --watch ---------------------------------------------------------------------------------- */

static void run_again(void *user, cli_kernel *kernel)
{
    run_state *run = user;
    run->report.result_count = 0;
    run->report.skip_count = 0;
    run->done = 0;
    run_kernel(run, kernel);
    (void)print_report(run); /* without memory for a table there is none; the next one may come */
}

static kiln_status watch_kernel(const run_state *run, run_watches *watches, cli_kernel *kernel,
                                kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (!run->options->all_devices) {
        kiln_device *device = NULL;
        status = kernel_select_device(run->runtime, kernel, &device, diag);
        return status == KILN_OK && device != NULL ? run_watches_add(watches, kernel, device, diag)
                                                   : status;
    }
    for (size_t i = 0; i < kiln_runtime_device_count(run->runtime) && status == KILN_OK; i++) {
        status = run_watches_add(watches, kernel, kiln_runtime_device(run->runtime, i), diag);
    }
    return status;
}

/* Looks until the process is interrupted; comes back only when there is nothing to look at. */
static exit_code watch_all(run_state *run)
{
    kiln_diag diag = KILN_DIAG_INIT;
    size_t devices = run->options->all_devices ? kiln_runtime_device_count(run->runtime) : 1;
    run_watches watches = {
        pool_array(run->context->pool,
                   run->manifest.count * (devices > 0 ? devices : 1) * KILN_VARIANTS_MAX,
                   sizeof(run_watch)),
        0};
    if (watches.items == NULL) {
        return cmd_no_memory(run->context);
    }
    for (size_t i = 0; i < run->manifest.count; i++) {
        cli_kernel *kernel = &run->manifest.kernels[i];
        if (watch_kernel(run, &watches, kernel, &diag) != KILN_OK) {
            note_failure(run, &diag);
        }
    }
    (void)fflush(stdout);
    while (watches.count > 0) {
        host_sleep(watch_pause_ns);
        if (run_watches_look(&watches, run->context, run_again, run)) {
            (void)fflush(stdout);
        }
    }
    run_watches_deinit(&watches);
    (void)kiln_diag_set(&diag, KILN_E_INVALID, "give a kernel in a file", run->manifest.path,
                        "there is nothing to watch");
    return cmd_fail(run->context, &diag);
}

static exit_code read_input(run_state *run, const char *path)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const cmd_context *context = run->context;
    size_t length = strlen(path);
    bool is_manifest = length > 5 && strcmp(path + length - 5, ".json") == 0;
    kiln_status status = run_file_check(&run->options->file, is_manifest, &diag);
    if (status == KILN_OK && is_manifest) {
        status = manifest_read(path, context->pool, &run->manifest, &diag);
    } else if (status == KILN_OK) {
        run->manifest = (cli_manifest){path, pool_alloc(context->pool, sizeof(cli_kernel)), 1};
        if (run->manifest.kernels == NULL) {
            return cmd_no_memory(context);
        }
        status = run_file_describe(&run->options->file, path, context->pool, run->manifest.kernels,
                                   &diag);
    }
    if (status == KILN_OK && run->options->repeat.value > 1000000) {
        status = kiln_diag_set(&diag, KILN_E_INVALID, NULL, "--repeat", "is at most 1000000");
    }
    if (status == KILN_OK) {
        status = manifest_keep(&run->manifest, &run->options->kernels, &diag);
    }
    return status == KILN_OK ? EXIT_FINE : cmd_fail(context, &diag);
}

static exit_code run_run(const cmd_context *context, void *fields, const opt_list *arguments)
{
    run_state run = {.context = context, .options = fields};
    const session_options *session = &run.options->session;
    exit_code code = read_input(&run, arguments->items[0]);
    if (code == EXIT_FINE) {
        code = session_open(context, session, &run.cache, &run.runtime);
    }
    if (code == EXIT_FINE) {
        run.reference.cache = run.cache;
        code = begin_report(&run);
    }
    for (size_t i = 0; code == EXIT_FINE && i < run.manifest.count; i++) {
        run_kernel(&run, &run.manifest.kernels[i]);
    }
    if (code == EXIT_FINE) {
        code = print_report(&run) ? run.code : cmd_no_memory(context);
    }
    if (run.options->watch && run.runtime != NULL && run.report.results != NULL) {
        code = watch_all(&run);
    }
    reference_host_deinit(&run.reference);
    session_close(run.cache, run.runtime);
    return code;
}

const cli_command cmd_run = {
    .name = "run",
    .usage = "MANIFEST|FILE",
    .summary = "Runs kernels, measures them and checks their results",
    .details =
        "A MANIFEST (.json, kiln-manifest(5)) names kernels with their arguments, launch shape "
        "and\n"
        "reference. Any other FILE is one kernel in the language its name says (.c .cl .cu ...),\n"
        "described by options:\n\n"
        "  kiln run saxpy.cl --entry saxpy --global 1024 --arg value:f32=2.5 \\\n"
        "      --arg in:f32:1024=random:-1:1 --arg inout:f32:1024=file:y.bin --save "
        "2=result.bin\n\n"
        "Forms of --arg, in the kernel's order:\n"
        "  value:TYPE=NUMBER        in:TYPE:SHAPE[=INIT]      inout:TYPE:SHAPE[=INIT]\n"
        "  out:TYPE:SHAPE           local:TYPE:COUNT\n"
        "TYPE is f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 or u64, SHAPE is 1024 or 32x32, INIT is\n"
        "fill:VALUE, random:FROM:TO[:SEED] or file:PATH (zeros without it). A file has the "
        "elements\n"
        "as they are in memory: NumPy's tofile and fromfile.",
    .options = specs,
    .options_size = sizeof(run_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_run,
};
