/* The reference is a kernel like any other, run by the cpu backend: built in, or from a file. */
#include "kernel/kernel_reference.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/kernel_build.h"
#include "kernel/kernel_launch.h"

void reference_host_deinit(reference_host *host)
{
    kiln_runtime_destroy(host->runtime);
    host->runtime = NULL;
}

static kiln_status open_host(reference_host *host, kiln_device **out_device, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (host->runtime == NULL) {
        kiln_runtime_options options = {0};
        status = kiln_runtime_options_init(&options, diag);
        if (status != KILN_OK) {
            return status;
        }
        options.backend = "cpu";
        options.device = NULL;
        options.strict = true;
        options.cache = host->cache;
        status = kiln_runtime_create(&options, &host->runtime, diag);
    }
    if (status == KILN_OK) {
        status = kiln_runtime_select(host->runtime, NULL, 0, out_device, diag);
    }
    return status;
}

typedef struct reference_kernel {
    cli_kernel kernel;
    kernel_form form;
} reference_kernel;

/* The kernel as its reference sees it: one source, floats that are written become doubles. */
static void describe_reference(const cli_kernel *from, reference_kernel *out)
{
    out->kernel = *from;
    out->kernel.forms = &out->form;
    out->kernel.form_count = 1;
    out->kernel.variant_count = 0;
    out->form = (kernel_form){
        .language = from->reference_path != NULL ? KILN_LANG_C : KILN_LANG_BUILTIN,
        .path = from->reference_path,
        .entry = from->reference,
        .shape = from->reference_shape,
        .defines = from->forms[0].defines,
        .define_count = from->forms[0].define_count,
    };
    for (size_t i = 0; i < from->arg_count; i++) {
        kernel_arg *arg = &out->kernel.args[i];
        if (kernel_is_written(arg) && data_type_is_float(arg->type)) {
            arg->type = DATA_F64;
        }
    }
}

/* A written argument of the reference: contents of its own, which begin as the kernel's do. */
static kiln_status prepare_written(const kernel_arg *from, const kernel_content *initial,
                                   const kernel_arg *arg, kernel_content *content, kiln_diag *diag)
{
    content->initial = calloc(arg->count, data_type_size(arg->type));
    content->result = calloc(arg->count, data_type_size(arg->type));
    if (content->initial == NULL || content->result == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, arg->name,
                             "no memory for the reference's %zu elements", arg->count);
    }
    content->size = arg->count * data_type_size(arg->type);
    if (from->type == arg->type) {
        memcpy(content->initial, initial->initial, content->size);
        return KILN_OK;
    }
    for (size_t i = 0; i < arg->count; i++) {
        ((double *)content->initial)[i] = data_get(from->type, initial->initial, i);
    }
    return KILN_OK;
}

/* Contents for `reference`: inputs are shared with `data`, what is written is allocated here. */
static kiln_status prepare_reference(const cli_kernel *kernel, const cli_kernel *reference,
                                     const kernel_data *data, kernel_data *own, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    *own = (kernel_data){0};
    own->count = data->count;
    for (size_t i = 0; i < data->count && status == KILN_OK; i++) {
        const kernel_arg *arg = &reference->args[i];
        kernel_content *content = &own->args[i];
        content->wanted_type = arg->type;
        if (kernel_is_written(arg)) {
            status = prepare_written(&kernel->args[i], &data->args[i], arg, content, diag);
        } else {
            content->initial = data->args[i].initial;
            content->size = data->args[i].size;
        }
    }
    return status;
}

/* Frees what is not shared with `data`. */
static void clean_up(const kernel_data *data, kernel_data *own)
{
    for (size_t i = 0; i < own->count; i++) {
        if (own->args[i].initial != data->args[i].initial) {
            free(own->args[i].initial);
        }
        free(own->args[i].result);
    }
}

static kiln_status compute_reference(kiln_device *device, const cli_kernel *reference,
                                     kernel_data *own, kiln_diag *diag)
{
    kernel_built built = {0};
    kernel_launch launch = {0};
    kiln_status status = kernel_build(reference, device, NULL, &built, diag);
    if (status == KILN_OK) {
        kernel_launch_init(&launch, device, reference, &reference->reference_shape, own, diag);
        kernel_launch_write(&launch, own, true);
        kernel_launch_run(&launch, built.program, built.entry, NULL);
        kernel_launch_read(&launch, own);
        status = launch.status;
    }
    kernel_launch_deinit(&launch);
    kiln_program_release(built.program);
    return status;
}

kiln_status kernel_reference_run(reference_host *host, const cli_kernel *kernel, kernel_data *data,
                                 kiln_diag *diag)
{
    kernel_data own;
    kiln_device *device = NULL;
    if (kernel->reference == NULL) {
        return KILN_OK;
    }
    reference_kernel *reference = calloc(1, sizeof(*reference)); /* large for a stack */
    if (reference == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, kernel->name, "no memory for its reference");
    }
    describe_reference(kernel, reference);
    kiln_status status = prepare_reference(kernel, &reference->kernel, data, &own, diag);
    if (status == KILN_OK) {
        status = open_host(host, &device, diag);
    }
    if (status == KILN_OK) {
        status = compute_reference(device, &reference->kernel, &own, diag);
    }
    for (size_t i = 0; i < data->count && status == KILN_OK; i++) {
        kernel_content *content = &data->args[i];
        if (content->wanted == NULL && kernel_is_written(&kernel->args[i])) {
            content->wanted = own.args[i].result; /* handed over */
            content->wanted_type = own.args[i].wanted_type;
            own.args[i].result = NULL;
        }
    }
    clean_up(data, &own);
    free(reference);
    return status;
}
