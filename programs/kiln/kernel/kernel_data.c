/* Host memory of arguments. Knows nothing of devices. */
#include "kernel/kernel_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kernel_is_buffer(const kernel_arg *arg)
{
    return arg->access == KERNEL_IN || arg->access == KERNEL_OUT || arg->access == KERNEL_INOUT;
}

bool kernel_is_written(const kernel_arg *arg)
{
    return arg->access == KERNEL_OUT || arg->access == KERNEL_INOUT;
}

static kiln_status no_memory_for_arg(const kernel_arg *arg, size_t size, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_NOMEM, NULL, arg->name, "no memory for its %zu bytes", size);
}

/* Demands that a file fits an argument whose type and shape are known. */
static kiln_status match_array(const kernel_arg *arg, const npy_array *array, const char *path,
                               kiln_diag *diag)
{
    if (array->type != arg->type) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "holds %s where %s needs %s",
                             data_type_name(array->type), arg->name, data_type_name(arg->type));
    }
    if (array->count != arg->count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path,
                             "holds %zu elements where %s needs %zu", array->count, arg->name,
                             arg->count);
    }
    return KILN_OK;
}

/* The shape that a file has becomes the argument's. */
static kiln_status settle_shape(kernel_arg *arg, const npy_array *array, kiln_diag *diag)
{
    arg->type = arg->type == DATA_TYPE_COUNT ? array->type : arg->type;
    arg->rank = array->rank;
    memcpy(arg->shape, array->shape, sizeof(arg->shape));
    arg->count = array->count;
    arg->shape_from_file = false;
    return array->count > 0
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, NULL, arg->init.file, "holds no elements");
}

kiln_status kernel_data_settle(cli_kernel *kernel, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < kernel->arg_count && status == KILN_OK; i++) {
        kernel_arg *arg = &kernel->args[i];
        npy_array array = {0};
        if (arg->shape_from_file) {
            status = npy_read_head(arg->init.file, &array, diag);
            status = status == KILN_OK ? settle_shape(arg, &array, diag) : status;
        }
    }
    return status;
}

static kiln_status read_initial(kernel_arg *arg, kernel_content *content, kiln_diag *diag)
{
    npy_array array = {0};
    kiln_status status = npy_read(arg->init.file, &array, diag);
    if (status == KILN_OK && arg->shape_from_file) {
        status = settle_shape(arg, &array, diag);
    }
    if (status == KILN_OK) {
        status = match_array(arg, &array, arg->init.file, diag);
    }
    if (status == KILN_OK) {
        content->size = array.size;
        content->initial = malloc(array.size);
        if (content->initial != NULL) {
            memcpy(content->initial, array.data, array.size);
        } else {
            status = no_memory_for_arg(arg, array.size, diag);
        }
    }
    npy_deinit(&array);
    return status;
}

static kiln_status generate_content(const kernel_arg *arg, kernel_content *content, kiln_diag *diag)
{
    content->size = arg->count * data_type_size(arg->type);
    content->initial = calloc(1, content->size);
    if (content->initial == NULL) {
        return no_memory_for_arg(arg, content->size, diag);
    }
    if (arg->access == KERNEL_VALUE) {
        (void)data_put(arg->type, content->initial, 0,
                       arg->value); /* its parser saw that it fits */
        return KILN_OK;
    }
    kiln_status status = data_generate(&arg->init, arg->type, arg->count, content->initial, diag);
    if (status != KILN_OK && diag != NULL) {
        char why[sizeof(diag->why)];
        (void)snprintf(why, sizeof(why), "%s", diag->why);
        return kiln_diag_set(diag, status, NULL, arg->name, "%s", why);
    }
    return status;
}

static kiln_status read_expected(const kernel_arg *arg, kernel_content *content, kiln_diag *diag)
{
    npy_array array = {0};
    kiln_status status = npy_read(arg->expect, &array, diag);
    bool as_double = array.type == DATA_F64 && data_type_is_float(arg->type);
    if (status == KILN_OK && !(as_double && array.count == arg->count)) {
        status = match_array(arg, &array, arg->expect, diag);
    }
    if (status == KILN_OK) {
        content->wanted_type = array.type;
        content->wanted = malloc(array.size);
        if (content->wanted != NULL) {
            memcpy(content->wanted, array.data, array.size);
        } else {
            status = no_memory_for_arg(arg, array.size, diag);
        }
    }
    npy_deinit(&array);
    return status;
}

static kiln_status load_arg(kernel_arg *arg, kernel_content *content, kiln_diag *diag)
{
    if (arg->access == KERNEL_LOCAL) {
        content->size = arg->count * data_type_size(arg->type);
        return KILN_OK;
    }
    kiln_status status = arg->init.kind == DATA_FILE ? read_initial(arg, content, diag)
                                                     : generate_content(arg, content, diag);
    if (status == KILN_OK && kernel_is_written(arg)) {
        content->result = calloc(1, content->size);
        status = content->result != NULL ? KILN_OK : no_memory_for_arg(arg, content->size, diag);
    }
    if (status == KILN_OK && arg->expect != NULL) {
        status = read_expected(arg, content, diag);
    }
    return status;
}

kiln_status kernel_data_load(cli_kernel *kernel, kernel_data *out_data, kiln_diag *diag)
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
        const kernel_arg *arg = &kernel->args[i];
        if (arg->save != NULL) {
            npy_array array = {arg->type,  arg->rank,          {0},
                               arg->count, data->args[i].size, data->args[i].result,
                               NULL};
            memcpy(array.shape, arg->shape, sizeof(array.shape));
            status = npy_write(arg->save, &array, diag);
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
    if (isnan(value) || value > *largest) {
        *largest = isnan(*largest) ? *largest : value;
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
