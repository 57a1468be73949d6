/* Host memory of arguments. */
#include "kernel/kernel_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"

/* Largest file that is read whole; a kernel's argument has to fit in memory anyway. */
static const size_t max_file = (size_t)1 << 36;

kernel_access kernel_access_parse(const char *text)
{
    static const char *const names[KERNEL_ACCESS_COUNT] = {"value", "in", "out", "inout", "local"};
    unsigned i = 0;
    while (i < KERNEL_ACCESS_COUNT && strcmp(names[i], text) != 0) {
        i++;
    }
    return (kernel_access)i;
}

bool kernel_is_buffer(const kernel_arg *arg)
{
    return arg->access == KERNEL_IN || kernel_is_written(arg);
}

bool kernel_is_written(const kernel_arg *arg)
{
    return arg->access == KERNEL_OUT || arg->access == KERNEL_INOUT;
}

static kiln_status allocate_content(const kernel_arg *arg, size_t size, void **out_memory,
                                    kiln_diag *diag)
{
    *out_memory = calloc(1, size);
    return *out_memory != NULL ? KILN_OK
                               : kiln_diag_set(diag, KILN_E_NOMEM, NULL, arg->name,
                                               "no memory for its %zu bytes", size);
}

static kiln_status read_elements(const kernel_arg *arg, size_t size, const char *path,
                                 void **out_memory, kiln_diag *diag)
{
    char *bytes = NULL;
    size_t length = 0;
    kiln_status status = host_read_file(path, max_file, &bytes, &length, diag);
    *out_memory = bytes;
    if (status == KILN_OK && length != size) {
        status = kiln_diag_set(diag, KILN_E_INVALID, NULL, path,
                               "holds %zu bytes where %s needs %zu", length, arg->name, size);
    }
    return status;
}

static kiln_status load_initial(const kernel_arg *arg, kernel_content *content, kiln_diag *diag)
{
    if (arg->init.kind == DATA_FILE) {
        return read_elements(arg, content->size, arg->init.file, &content->initial, diag);
    }
    kiln_status status = allocate_content(arg, content->size, &content->initial, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (arg->access == KERNEL_VALUE) {
        (void)data_put(arg->type, content->initial, 0,
                       arg->value); /* its parser saw that it fits */
        return KILN_OK;
    }
    return data_generate(&arg->init, arg->name, arg->type, arg->count, content->initial, diag);
}

static kiln_status load_arg(const kernel_arg *arg, kernel_content *content, kiln_diag *diag)
{
    content->size = arg->count * data_type_size(arg->type);
    content->wanted_type = arg->type;
    if (arg->access == KERNEL_LOCAL) {
        return KILN_OK;
    }
    kiln_status status = load_initial(arg, content, diag);
    if (status == KILN_OK && kernel_is_written(arg)) {
        status = allocate_content(arg, content->size, &content->result, diag);
    }
    return status == KILN_OK && arg->expect != NULL
               ? read_elements(arg, content->size, arg->expect, &content->wanted, diag)
               : status;
}

kiln_status kernel_data_load(const cli_kernel *kernel, kernel_data *out_data, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    *out_data = (kernel_data){0};
    out_data->count = kernel->arg_count;
    for (size_t i = 0; i < kernel->arg_count && status == KILN_OK; i++) {
        status = load_arg(&kernel->args[i], &out_data->args[i], diag);
    }
    return status;
}

void kernel_data_deinit(kernel_data *data)
{
    for (size_t i = 0; i < data->count; i++) {
        free(data->args[i].initial);
        free(data->args[i].result);
        free(data->args[i].wanted);
    }
    *data = (kernel_data){0};
}

kiln_status kernel_data_save(const cli_kernel *kernel, const kernel_data *data, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < kernel->arg_count && status == KILN_OK; i++) {
        if (kernel->args[i].save != NULL) {
            status = host_write_file(kernel->args[i].save, data->args[i].result, data->args[i].size,
                                     diag);
        }
    }
    return status;
}

bool kernel_data_has_wanted(const kernel_data *data)
{
    for (size_t i = 0; i < data->count; i++) {
        if (data->args[i].wanted != NULL) {
            return true;
        }
    }
    return false;
}

static void keep_largest(double *largest, double value)
{
    if (!isnan(*largest) && !(value <= *largest)) {
        *largest = value;
    }
}

bool kernel_data_check(const cli_kernel *kernel, const kernel_data *data,
                       data_difference *out_difference, char *reason, size_t reason_size)
{
    data_difference total = {0};
    for (size_t i = 0; i < kernel->arg_count; i++) {
        const kernel_arg *arg = &kernel->args[i];
        const kernel_content *content = &data->args[i];
        data_difference own = {0};
        if (content->wanted == NULL || content->result == NULL) {
            continue;
        }
        data_compare(arg->type, content->result, content->wanted_type, content->wanted, arg->count,
                     arg->has_tolerance ? arg->tolerance : kernel->tolerance, &own);
        if (own.wrong > 0 && total.wrong == 0) {
            (void)snprintf(reason, reason_size,
                           "%s[%zu] is %.9g, should be %.9g; %zu of %zu elements are wrong",
                           arg->name, own.first_wrong, own.got, own.wanted, own.wrong, arg->count);
        }
        total.wrong += own.wrong;
        keep_largest(&total.max_abs, own.max_abs);
        keep_largest(&total.max_rel, own.max_rel);
    }
    *out_difference = total;
    return total.wrong == 0;
}
