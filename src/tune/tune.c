/* kiln_tune: known already, or built, checked, measured, and kept. */
#include "tune/tune.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "core/runtime/runtime.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "tune/compare.h"
#include "tune/search.h"

enum { ROUNDS_MIN = 8, ROUNDS_MAX = 60, ROUNDS_LIMIT = 1000, BUDGET_MS = 3000 };

const char *kiln_tune_outcome_name(kiln_tune_outcome outcome)
{
    switch (outcome) {
#define OUTCOME_CASE(name, text)                                                                   \
    case name:                                                                                     \
        return text;
        KILN_TUNE_OUTCOME_MAP(OUTCOME_CASE)
#undef OUTCOME_CASE
    }
    return "unknown";
}

/* --- options ---------------------------------------------------------------------------------- */

static kiln_status check_output(const kiln_kernel *kernel, const kiln_tune_options *options,
                                size_t index, kiln_diag *diag)
{
    const kiln_tune_output *output = &options->outputs[index];
    const size_t size = kn_element_size(output->element);
    const kiln_arg *arg = output->arg < options->arg_count ? &options->args[output->arg] : NULL;
    const char *why = NULL;
    if (arg == NULL || arg->kind != KILN_ARG_BUFFER || arg->buffer == NULL) {
        why = "its argument is not a buffer";
    } else if (arg->offset >= kiln_buffer_size(arg->buffer)) {
        why = "the offset is past the end of the buffer";
    } else if (size == 0 || (kiln_buffer_size(arg->buffer) - arg->offset) % size != 0) {
        why = "its size is not a multiple of the element size";
    } else if (!(output->absolute >= 0) || !(output->relative >= 0)) {
        why = "its tolerance is negative";
    }
    return why == NULL ? KILN_OK
                       : kiln_diag_set(diag, KILN_E_INVALID, NULL, kernel->name, "output %zu: %s",
                                       index, why);
}

static kiln_status check_options(const kiln_kernel *kernel, const kiln_tune_options *options,
                                 kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (options->arg_count > 0 && options->args == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, kernel->name, "its arguments are missing");
    }
    if (options->output_count == 0 || options->outputs == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "say which arguments the kernel writes",
                             kernel->name, "without outputs no variant can be checked");
    }
    if (options->rounds_max > ROUNDS_LIMIT || options->rounds_min > ROUNDS_LIMIT) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, kernel->name,
                             "at most %d rounds can be made", ROUNDS_LIMIT);
    }
    for (size_t i = 0; i < options->output_count && status == KILN_OK; i++) {
        status = check_output(kernel, options, i, diag);
    }
    return status;
}

static void report_round(const kiln_tune_options *options, const char *what, uint32_t round,
                         uint32_t limit)
{
    if (options->progress != NULL) {
        options->progress(options->user, what, round, limit);
    }
}

/* --- the race --------------------------------------------------------------------------------- */

/* The first variant that can be built is the baseline; it is launched, and its result kept. */
static kiln_status start_with_baseline(kn_bench *bench, size_t *out_baseline, kiln_diag *diag)
{
    kiln_status status = KILN_E_UNSUPPORTED;
    size_t index = 0;
    for (; index < bench->kernel->variant_count; index++) {
        const kiln_variant *variant = &bench->kernel->variants[index];
        if (kn_variant_taken(bench->device, variant)) {
            report_round(bench->options, variant->name, 0, 0);
            status = kn_bench_build(bench, index, diag);
            if (status != KILN_E_UNAVAILABLE) {
                break;
            }
        }
    }
    *out_baseline = index;
    return status == KILN_OK ? kn_bench_want(bench, index, diag) : status;
}

static kiln_status check_others(kn_bench *bench, size_t baseline, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = baseline + 1; i < bench->kernel->variant_count && status == KILN_OK; i++) {
        const kiln_variant *variant = &bench->kernel->variants[i];
        if (!kn_variant_taken(bench->device, variant)) {
            continue;
        }
        report_round(bench->options, variant->name, 0, 0);
        status = kn_bench_build(bench, i, NULL);
        if (status == KILN_OK) {
            status = kn_bench_check(bench, i, diag);
        } else if (status == KILN_E_DEVICE_LOST || status == KILN_E_NOMEM) {
            status = kiln_diag_set(diag, status, NULL, variant->name, "%s", bench->rows[i].reason);
        } else {
            status = KILN_OK; /* its own failure, in its row */
        }
    }
    return status;
}

typedef struct race {
    kn_bench bench;
    kn_search search;
    size_t baseline;
} race;

static void on_round(void *user, uint32_t round)
{
    const race *r = (const race *)user;
    report_round(r->bench.options, "measuring", round, r->search.rounds_max);
}

static kiln_status measure_variant(void *user, size_t index, uint64_t *out_ns)
{
    race *r = (race *)user;
    return kn_bench_measure(&r->bench, index, out_ns);
}

static kiln_status run_search(race *r, kiln_diag *diag)
{
    const kiln_tune_options *options = r->bench.options;
    kn_search *search = &r->search;
    const uint32_t rounds_min = options->rounds_min != 0 ? options->rounds_min : ROUNDS_MIN;
    uint32_t rounds_max = options->rounds_max != 0 ? options->rounds_max : ROUNDS_MAX;
    rounds_max = rounds_max > rounds_min ? rounds_max : rounds_min;
    if (kn_search_init(search, r->bench.kernel->variant_count, rounds_max) != KILN_OK) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, r->bench.kernel->name,
                             "no memory for the times");
    }
    search->rounds_min = rounds_min;
    search->budget_ns =
        UINT64_C(1000000) * (options->budget_ms != 0 ? options->budget_ms : BUDGET_MS);
    search->baseline = r->baseline;
    search->measure = measure_variant;
    search->round = on_round;
    search->user = r;
    search->now = kn_clock_now;
    for (size_t i = 0; i < search->count; i++) {
        search->candidates[i].in = r->bench.entries[i].program != NULL;
    }
    return kn_search_run(search);
}

static void fill_rows(race *r)
{
    for (size_t i = 0; i < r->search.count; i++) {
        const kn_candidate *candidate = &r->search.candidates[i];
        kiln_tune_row *row = &r->bench.rows[i];
        row->samples = candidate->count;
        row->median_ns = candidate->estimate.median;
        row->low_ns = candidate->estimate.low;
        row->high_ns = candidate->estimate.high;
        if (candidate->behind) {
            row->outcome = KILN_TUNE_BEHIND;
        } else if (candidate->in) {
            row->outcome = i == r->search.leader ? KILN_TUNE_CHOSEN : KILN_TUNE_MEASURED;
        }
    }
}

static double rate_per_second(double amount, uint64_t ns)
{
    return ns > 0 ? amount * 1e9 / (double)ns : 0;
}

static void fill_tuning(const race *r, kiln_tuning *out_tuning)
{
    const kiln_kernel *kernel = r->bench.kernel;
    const uint64_t ns = r->search.candidates[r->search.leader].estimate.median;
    out_tuning->variant = r->search.leader;
    out_tuning->baseline = r->baseline;
    out_tuning->known = true;
    out_tuning->ns = ns;
    out_tuning->baseline_ns = r->search.candidates[r->baseline].estimate.median;
    out_tuning->flops_per_s = rate_per_second(kernel->flops, ns);
    out_tuning->bytes_per_s = rate_per_second(kernel->bytes, ns);
}

/* --- keeping it ------------------------------------------------------------------------------- */

/* A choice that is not kept is made again. */
static void keep_choice(const race *r, const kiln_tuning *tuning)
{
    const kn_bench_entry *entry = &r->bench.entries[tuning->variant];
    const kiln_variant *variant = &r->bench.kernel->variants[tuning->variant];
    kiln_cache *cache = r->bench.device->runtime->cache;
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    kn_strbuf rows;
    if (!entry->has_key && variant->source->language != KILN_LANG_BUILTIN) {
        kn_log(KILN_LOG_INFO, "%s: %s bypasses the cache, and so does what was measured",
               r->bench.kernel->name, variant->name);
        return;
    }
    kn_tune_record record = {.ns = tuning->ns,
                             .baseline_ns = tuning->baseline_ns,
                             .flops_per_s = tuning->flops_per_s,
                             .bytes_per_s = tuning->bytes_per_s,
                             .has_program = entry->has_key,
                             .program = entry->key};
    memcpy(record.variant, variant->name, strlen(variant->name) + 1);
    kn_strbuf_init(&rows, 0);
    kn_tune_rows_write(r->bench.kernel, r->bench.rows, &rows);
    const kn_span facts = kn_span_of(rows.data, kn_strbuf_ok(&rows) ? rows.length : 0);
    kiln_status status = kn_tune_recipe(r->bench.device, r->bench.kernel, &recipe, NULL);
    if (status == KILN_OK) {
        status = kn_tune_record_write(&record, facts, &blob, NULL);
    }
    if (status == KILN_OK) {
        kn_ignore(kiln_cache_put(cache, recipe, blob, 0, NULL)); /* the same */
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kn_strbuf_deinit(&rows);
}

static kiln_status measure_all(kiln_device *device, const kiln_kernel *kernel,
                               const kiln_tune_options *options, kiln_tuning *out_tuning,
                               kiln_diag *diag)
{
    race r = {.baseline = 0};
    kiln_status status = kn_bench_init(&r.bench, device, kernel, options, diag);
    status = status == KILN_OK ? start_with_baseline(&r.bench, &r.baseline, diag) : status;
    status = status == KILN_OK ? check_others(&r.bench, r.baseline, diag) : status;
    status = status == KILN_OK ? run_search(&r, diag) : status;
    if (status == KILN_OK) {
        kiln_diag_clear(diag); /* of a variant that fell out */
        fill_rows(&r);
        fill_tuning(&r, out_tuning);
        keep_choice(&r, out_tuning);
        kn_cache_count(device->runtime->cache, KN_COUNT_tunings, 1);
    }
    out_tuning->launches = r.bench.launches;
    kn_cache_count(device->runtime->cache, KN_COUNT_tune_launches, r.bench.launches);
    kn_search_deinit(&r.search);
    kn_bench_deinit(&r.bench);
    return status;
}

static void reset_rows(const kiln_device *device, const kiln_kernel *kernel,
                       const kiln_tune_options *options)
{
    for (size_t i = 0; options->rows != NULL && i < kernel->variant_count; i++) {
        const bool taken = kn_variant_taken(device, &kernel->variants[i]);
        options->rows[i] =
            (kiln_tune_row){.outcome = taken ? KILN_TUNE_NOT_MEASURED : KILN_TUNE_PASSED_OVER};
    }
}

/* True when the cache knows, and what it knows still holds. */
static bool is_known(kiln_device *device, const kiln_kernel *kernel,
                     const kiln_tune_options *options, kiln_tuning *out_tuning)
{
    kn_tune_record record;
    kiln_program *program = NULL;
    kiln_tuning tuning;
    if (kn_tuned_look(device, kernel, true, &record, options->rows, &tuning, NULL) != KILN_OK ||
        kn_tuned_try(device, kernel, &record, &tuning, options->build, &program) != KILN_OK) {
        return false;
    }
    kiln_program_release(program);
    while (!kn_variant_taken(device, &kernel->variants[tuning.baseline])) {
        tuning.baseline++; /* there is one: the choice itself */
    }
    if (options->rows != NULL) {
        kiln_tune_row *row = &options->rows[tuning.variant];
        row->outcome = KILN_TUNE_CHOSEN;
        if (row->samples == 0) { /* an older record, which has the choice alone */
            row->median_ns = row->low_ns = row->high_ns = tuning.ns;
        }
    }
    *out_tuning = tuning;
    return true;
}

/* Kernel and options are this library's structs. */
static kiln_status tune_kernel(kiln_device *device, const kiln_kernel *kernel,
                               const kiln_tune_options *options, kiln_tuning *out_tuning,
                               kiln_diag *diag)
{
    const uint64_t start = kn_clock_now();
    kiln_status status = check_options(kernel, options, diag);
    if (status != KILN_OK) {
        return status;
    }
    reset_rows(device, kernel, options);
    if (options->again || !is_known(device, kernel, options, out_tuning)) {
        reset_rows(device, kernel,
                   options); /* a record that no longer holds may have filled them */
        status = measure_all(device, kernel, options, out_tuning, diag);
    }
    out_tuning->took_ns = kn_clock_now() - start;
    kn_trace_end(device->runtime->trace, start, "tune",
                 &(kn_trace_about){.what = kernel->name, .device = device});
    if (status != KILN_OK) {
        *out_tuning = (kiln_tuning){0};
    }
    return status;
}

/* The caller's rows may be of another version: this library fills its own, and gives those. */
static kiln_status tune_with_rows(kiln_device *device, const kiln_kernel *kernel,
                                  const kiln_tune_options *options, kiln_tuning *out_tuning,
                                  kiln_diag *diag)
{
    const size_t count = kernel->variant_count;
    kiln_tune_options own = *options;
    if (options->rows == NULL) {
        return tune_kernel(device, kernel, options, out_tuning, diag);
    }
    own.rows = (kiln_tune_row *)calloc(count, sizeof(*own.rows));
    if (own.rows == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, kernel->name, "no memory to tune it");
    }
    kiln_status status =
        kn_sized_begin_list(KN_SIZED(kiln_tune_row), options->rows, count, own.rows, diag);
    if (status == KILN_OK) {
        status = tune_kernel(device, kernel, &own, out_tuning, diag);
        kn_sized_end_list(KN_SIZED(kiln_tune_row), own.rows, count, options->rows);
    }
    free(own.rows);
    return status;
}

kiln_status kiln_tune(kiln_device *device, const kiln_kernel *kernel,
                      const kiln_tune_options *options, kiln_tuning *out_tuning, kiln_diag *diag)
{
    kn_kernel taken;
    kiln_tune_options room;
    kiln_tuning tuning;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_tuning), out_tuning, &tuning, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_kernel_take(device, kernel, &taken, diag);
    if (status == KILN_OK) {
        options = kn_sized_view(KN_SIZED(kiln_tune_options), options, &room, diag);
        status = options != NULL ? tune_with_rows(device, &taken.kernel, options, &tuning, diag)
                                 : KILN_E_INVALID;
    }
    kn_kernel_drop(&taken);
    kn_sized_end(KN_SIZED(kiln_tuning), &tuning, out_tuning);
    return status;
}
