/* The measured part. What happens between two readings of the clock is what the name says. */
#include "kernel/kernel_run.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "kernel/kernel_launch.h"
#include "kernel/kernel_params.h"

static const uint64_t repeat_limit_ns = 1000000000u;

static int compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static uint64_t median_of(uint64_t *values, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(*values), compare_u64);
    return values[count / 2];
}

/* Puts down what was built and how long each part of it took. */
static void note_build(kiln_status status, const cli_kernel *kernel, const kernel_built *built,
                       kernel_result *result)
{
    if (built->form != NULL) {
        result->language = built->form->language;
        result->variant = kernel->variant_count > 0 ? built->form->name : NULL;
    }
    if (status == KILN_OK) {
        const kiln_build_info *info = kiln_program_get_info(built->program);
        result->origin = info->origin;
        result->compiles = info->compiles;
        result->key_ns = info->key_ns;
        result->lookup_ns = info->lookup_ns;
        result->compile_ns = info->compile_ns;
        result->load_ns = info->load_ns;
        result->build_ns = info->total_ns;
    }
}

static void launch_first(kernel_launch *launch, const kernel_built *built, kernel_data *data,
                         kernel_result *result)
{
    kernel_launch_write(launch, data, true);
    const uint64_t begin = host_now();
    kernel_launch_run(launch, built->program, built->entry, NULL);
    const uint64_t done = host_now();
    kernel_launch_read(launch, data);
    result->first_launch_ns = done - begin;
    if (launch->status == KILN_OK) {
        result->readback_ns = host_now() - done;
        result->first_result_ns = result->build_ns + result->first_launch_ns + result->readback_ns;
    }
}

static void repeat_launch(kernel_launch *launch, const kernel_built *built, const kernel_data *data,
                          const kernel_run_options *options, kernel_result *result)
{
    uint64_t *times = calloc((size_t)options->repeats * 2 + 1, sizeof(*times));
    uint64_t spent = 0;
    uint32_t done = 0;
    if (times == NULL) {
        launch->status = diag_no_memory(launch->diag, result->kernel);
        return;
    }
    uint64_t *device_times = times + options->repeats;
    while (done < options->repeats && !(options->bounded && spent > repeat_limit_ns)) {
        /* A launch that changes its input would soon work on other numbers than the first. */
        kernel_launch_write(launch, data, false);
        uint64_t begin = host_now();
        kernel_launch_run(launch, built->program, built->entry, &device_times[done]);
        if (launch->status != KILN_OK) {
            break;
        }
        times[done] = host_now() - begin;
        spent += times[done++];
    }
    result->repeats = done;
    result->median_launch_ns = median_of(times, done);
    result->median_device_ns = median_of(device_times, done);
    free(times);
}

kiln_status kernel_run(const cli_kernel *kernel, kiln_device *device, kernel_data *data,
                       const kernel_run_options *options, kernel_result *out_result,
                       kiln_diag *diag)
{
    const kiln_build_options build_options = {.struct_size = sizeof(build_options),
                                              .progress = console_on_progress,
                                              .user = options->console,
                                              .cache_only = options->cache_only};
    kernel_built built = {0};
    kernel_launch launch = {0};
    kernel_result *result = out_result;
    *result = (kernel_result){.kernel = kernel->name, .device = kiln_device_get_info(device)};
    kiln_status status = kernel_build(kernel, device, &build_options, &built, diag);
    note_build(status, kernel, &built, result);
    if (status == KILN_OK) {
        status = kernel_params_check(built.program, built.entry, kernel, diag);
    }
    if (status == KILN_OK) {
        kernel_launch_init(&launch, device, kernel, &built.form->shape, data, diag);
        launch_first(&launch, &built, data, result);
        status = launch.status;
    }
    if (status == KILN_OK && options->check && kernel_data_has_wanted(data)) {
        result->checked = true;
        result->ok = kernel_data_check(kernel, data, &result->difference, result->reason,
                                       sizeof(result->reason));
    } else {
        result->ok = status == KILN_OK;
    }
    if (status == KILN_OK) {
        repeat_launch(&launch, &built, data, options, result);
        status = launch.status;
    }
    kernel_launch_deinit(&launch);
    kiln_program_release(built.program);
    result->status = status;
    if (status != KILN_OK) {
        result->ok = false;
        (void)kiln_diag_format(diag, result->reason, sizeof(result->reason));
    }
    return status;
}
