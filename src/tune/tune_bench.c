/* Variants on the device: built, launched with the caller's arguments, compared, timed. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "core/build/build.h"
#include "core/runtime/runtime.h"
#include "tune/compare.h"
#include "tune/tune.h"

/* A sample is at least so long, of so many launches at most. */
static const uint64_t sample_ns = 100000;
enum { BATCH_MAX = 16 };

/* What nobody computes: a variant that leaves an element alone is found out. */
static const unsigned char poison[4] = {0xa5, 0xa5, 0xa5, 0xa5};

/* --- buffers ---------------------------------------------------------------------------------- */

static kiln_status open_output(kn_bench *bench, kn_bench_output *output, kiln_diag *diag)
{
    const kiln_arg *arg = &bench->options->args[output->what->arg];
    output->buffer = arg->buffer;
    output->offset = arg->offset;
    output->size = kiln_buffer_size(arg->buffer) - arg->offset;
    output->wanted = malloc(output->size);
    output->got = malloc(output->size);
    if (output->wanted == NULL || output->got == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, bench->kernel->name,
                             "no memory for its results");
    }
    if (!output->what->is_input) {
        return KILN_OK;
    }
    kiln_status status = kiln_buffer_create(bench->device, output->size, &output->before, diag);
    if (status == KILN_OK) {
        status = kiln_queue_copy(bench->queue, output->buffer, output->offset, output->before, 0,
                                 output->size, diag);
    }
    return status;
}

kiln_status kn_bench_init(kn_bench *bench, kiln_device *device, const kiln_kernel *kernel,
                          const kiln_tune_options *options, kiln_diag *diag)
{
    *bench = (kn_bench){.device = device, .kernel = kernel, .options = options, .diag = diag};
    bench->outputs = (kn_bench_output *)calloc(options->output_count, sizeof(*bench->outputs));
    bench->entries = (kn_bench_entry *)calloc(kernel->variant_count, sizeof(*bench->entries));
    bench->rows = options->rows;
    if (options->rows == NULL) {
        bench->own_rows = (kiln_tune_row *)calloc(kernel->variant_count, sizeof(kiln_tune_row));
        bench->rows = bench->own_rows;
    }
    if (bench->outputs == NULL || bench->entries == NULL || bench->rows == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, kernel->name, "no memory to tune it");
    }
    kiln_status status = kiln_queue_create(device, &bench->queue, diag);
    for (size_t i = 0; i < options->output_count && status == KILN_OK; i++) {
        bench->outputs[i].what = &options->outputs[i];
        status = open_output(bench, &bench->outputs[i], diag);
    }
    return status;
}

/* Makes the written buffers what they were before a launch. */
static kiln_status prepare_bench(kn_bench *bench, bool all, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < bench->options->output_count && status == KILN_OK; i++) {
        kn_bench_output *output = &bench->outputs[i];
        const bool words = (output->offset | output->size) % sizeof(poison) == 0;
        if (output->before != NULL) {
            status = kiln_queue_copy(bench->queue, output->before, 0, output->buffer,
                                     output->offset, output->size, diag);
        } else if (all) {
            status = kiln_queue_fill(bench->queue, output->buffer, output->offset, poison,
                                     words ? sizeof(poison) : 1, output->size, diag);
        }
    }
    return status;
}

void kn_bench_deinit(kn_bench *bench)
{
    for (size_t i = 0; bench->outputs != NULL && i < bench->options->output_count; i++) {
        kn_bench_output *output = &bench->outputs[i];
        if (output->before != NULL) {
            kn_ignore(kiln_queue_copy(bench->queue, output->before, 0, output->buffer,
                                      output->offset, output->size, NULL)); /* a lost device */
            kn_ignore(kiln_queue_finish(bench->queue, NULL));
        }
        kiln_buffer_destroy(output->before);
        free(output->wanted);
        free(output->got);
    }
    for (size_t i = 0; bench->entries != NULL && i < bench->kernel->variant_count; i++) {
        kiln_program_release(bench->entries[i].program);
    }
    kiln_queue_destroy(bench->queue);
    free(bench->own_rows);
    free(bench->entries);
    free(bench->outputs);
}

/* --- build ------------------------------------------------------------------------------------ */

static void see_key(void *user, const kn_build *build)
{
    kn_bench_entry *entry = (kn_bench_entry *)user;
    entry->has_key = build->stage_count > 0 && build->runs[0].bypass[0] == '\0';
    entry->key = build->runs[0].key;
}

/* Puts a variant out of the race. */
static void leave_out(kn_bench *bench, size_t index, kiln_tune_outcome outcome, kiln_status status,
                      const kiln_diag *why)
{
    kiln_tune_row *row = &bench->rows[index];
    char line[1536];
    row->outcome = outcome;
    row->status = status;
    (void)kiln_diag_format(why, line, sizeof(line));
    kn_text_put(row->reason, sizeof(row->reason),
                line[0] != '\0' ? line : kiln_status_text(status));
    kiln_program_release(bench->entries[index].program);
    bench->entries[index].program = NULL;
}

kiln_status kn_bench_build(kn_bench *bench, size_t index, kiln_diag *diag)
{
    kn_bench_entry *entry = &bench->entries[index];
    kiln_diag own = KILN_DIAG_INIT;
    kn_build_extra extra = {.seen = see_key, .user = entry};
    kiln_status status = kn_build_program(bench->device, bench->kernel->variants[index].source,
                                          bench->options->build, &extra, &entry->program, &own);
    if (status != KILN_OK) {
        const bool here = status != KILN_E_UNAVAILABLE && status != KILN_E_UNSUPPORTED;
        leave_out(bench, index, here ? KILN_TUNE_FAILED : KILN_TUNE_PASSED_OVER, status, &own);
    }
    kn_diag_move(diag, &own);
    return status;
}

/* --- launch ----------------------------------------------------------------------------------- */

/* `count` launches, waited for; the sum of their times. */
static kiln_status launch_variant(kn_bench *bench, size_t index, uint32_t count, uint64_t *out_ns,
                                  kiln_diag *diag)
{
    const kiln_variant *variant = &bench->kernel->variants[index];
    kiln_launch shape = variant->launch;
    kiln_event *events[BATCH_MAX] = {NULL};
    kiln_status status = KILN_OK;
    shape.args = bench->options->args;
    shape.arg_count = bench->options->arg_count;
    for (uint32_t i = 0; i < count && status == KILN_OK; i++) {
        status = prepare_bench(bench, false, diag);
        if (status == KILN_OK) {
            status = kiln_queue_launch(bench->queue, bench->entries[index].program, variant->entry,
                                       &shape, &events[i], diag);
            bench->launches += status == KILN_OK;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t ns = 0;
        if (status == KILN_OK) {
            status = kiln_event_wait(events[i], diag);
        }
        if (status == KILN_OK) {
            status = kiln_event_elapsed(events[i], &ns, diag);
        }
        *out_ns += ns;
        kiln_event_release(events[i]);
    }
    if (status != KILN_OK) {
        kn_ignore(kiln_queue_finish(bench->queue, NULL)); /* what came of it is known */
    }
    return status;
}

/* Launches with all outputs as nobody left them, and reads them. */
static kiln_status compute_variant(kn_bench *bench, size_t index, bool wanted, kiln_diag *diag)
{
    uint64_t ns = 0;
    kiln_status status = prepare_bench(bench, true, diag);
    if (status == KILN_OK) {
        status = launch_variant(bench, index, 1, &ns, diag);
    }
    for (size_t i = 0; i < bench->options->output_count && status == KILN_OK; i++) {
        kn_bench_output *output = &bench->outputs[i];
        status = kiln_queue_read(bench->queue, output->buffer, output->offset,
                                 wanted ? output->wanted : output->got, output->size, diag);
    }
    if (status == KILN_OK) { /* again, warm: how many launches make a sample */
        uint32_t *batch = &bench->entries[index].batch;
        ns = 0;
        *batch = 1;
        status = launch_variant(bench, index, 1, &ns, diag);
        while (*batch < BATCH_MAX && ns * *batch < sample_ns) {
            (*batch)++;
        }
    }
    return status;
}

kiln_status kn_bench_want(kn_bench *bench, size_t index, kiln_diag *diag)
{
    return compute_variant(bench, index, true, diag);
}

static void note_difference(kn_bench *bench, size_t index, const kn_bench_output *output,
                            const kn_difference *difference, size_t count)
{
    kiln_diag why = KILN_DIAG_INIT;
    (void)kiln_diag_set(&why, KILN_E_INVALID, NULL, "",
                        "argument %zu: element %zu is %.9g, the baseline gives %.9g; %zu of %zu "
                        "elements are off, the worst by %.3g",
                        output->what->arg, difference->first, difference->got, difference->wanted,
                        difference->wrong, count, difference->largest);
    leave_out(bench, index, KILN_TUNE_DIFFERS, KILN_OK, &why);
    kn_text_put(bench->rows[index].reason, sizeof(bench->rows[index].reason), why.why);
}

kiln_status kn_bench_check(kn_bench *bench, size_t index, kiln_diag *diag)
{
    kiln_diag own = KILN_DIAG_INIT;
    kiln_status status = compute_variant(bench, index, false, &own);
    if (status == KILN_E_DEVICE_LOST || status == KILN_E_NOMEM) {
        const size_t used = strlen(own.why);
        kn_text_putf(own.why + used, sizeof(own.why) - used, " (in variant %s)",
                     bench->kernel->variants[index].name);
        kn_diag_move(diag, &own);
        return status;
    }
    if (status != KILN_OK) {
        leave_out(bench, index, KILN_TUNE_FAILED, status, &own);
    }
    for (size_t i = 0; i < bench->options->output_count && status == KILN_OK; i++) {
        const kn_bench_output *output = &bench->outputs[i];
        const size_t count = output->size / kn_element_size(output->what->element);
        const kn_difference difference =
            kn_compare(output->what, output->got, output->wanted, count);
        if (difference.wrong > 0) {
            note_difference(bench, index, output, &difference, count);
            break;
        }
    }
    kiln_diag_clear(&own);
    return KILN_OK;
}

kiln_status kn_bench_measure(void *user, size_t index, uint64_t *out_ns)
{
    kn_bench *bench = (kn_bench *)user;
    kiln_diag own = KILN_DIAG_INIT;
    uint64_t ns = 0;
    const uint32_t batch = bench->entries[index].batch;
    kiln_status status = launch_variant(bench, index, batch, &ns, &own);
    *out_ns = ns / batch;
    if (status != KILN_OK) {
        leave_out(bench, index, KILN_TUNE_FAILED, status, &own);
        kn_diag_move(bench->diag, &own);
        return status;
    }
    kiln_diag_clear(&own);
    return status;
}
