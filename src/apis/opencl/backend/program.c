/* Loading: from a binary of the cache, or a program that the compile stage has just built. */
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/program.h"
#include "apis/opencl/backend/status.h"
#include "base/diag.h"
#include "base/text.h"

static const kiln_artifact *last_artifact(const kiln_load_request *request)
{
    return request->artifact_count > 0 ? request->artifacts[request->artifact_count - 1] : NULL;
}

static kiln_status load_binary(const kn_opencl_device *device, const kn_opencl_site *site,
                               const kiln_load_request *request, cl_program *out_program,
                               kiln_diag *diag)
{
    const kiln_artifact *artifact = last_artifact(request);
    if (artifact == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "loading an OpenCL program",
                             "there is no binary");
    }
    char *options =
        request->source != NULL ? kn_opencl_input_load_options(request->source) : kn_text_copy("");
    if (options == NULL) {
        return kn_no_memory(diag, "loading an OpenCL program");
    }
    size_t size = 0;
    const void *code = device->cl->host->artifact_fact(artifact, KN_OPENCL_FACT_CODE, &size);
    kiln_status status = KILN_OK;
    if (code == NULL || !kn_nvidia_load(site, code, size, options, out_program)) {
        status = kn_opencl_build_binary(site, device->unit->is_pocl, artifact->data, artifact->size,
                                        options, out_program, diag);
    }
    free(options);
    return status;
}

/* Whether a capture is to make machine code of the artifact's PTX. */
static bool is_to_be_assembled(const kn_opencl_device *device, const kiln_source *source,
                               const kiln_artifact *artifact)
{
    size_t size = 0;
    if (device->unit->capability == 0 || source == NULL ||
        device->cl->host->artifact_fact(artifact, KN_OPENCL_FACT_CODE, &size) != NULL) {
        return false;
    }
    char *options = kn_opencl_input_load_options(source);
    const bool is_ptx =
        options != NULL &&
        kn_nvidia_can_assemble(device->unit->capability, artifact->data, artifact->size, options);
    free(options);
    return is_ptx;
}

static kiln_status list_kernels(const kn_opencl_device *device, const kn_opencl_site *site,
                                const kiln_artifact *artifact, kn_opencl_program *program,
                                kiln_diag *diag)
{
    size_t size = 0;
    const char *fact =
        (const char *)device->cl->host->artifact_fact(artifact, KN_OPENCL_FACT_PARAMS, &size);
    kiln_status status =
        kn_opencl_kernels_init(site, program->handle, fact, size, &program->kernels, diag);
    if (status != KILN_OK && status != KILN_E_NOMEM && status != KILN_E_DEVICE_LOST) {
        /* A binary without its kernels is no better than one that does not load. */
        if (diag != NULL) {
            diag->status = KILN_E_REJECTED;
        }
        return KILN_E_REJECTED;
    }
    return status;
}

kn_opencl_program *kn_opencl_program_adopt(const kn_opencl_device *device, cl_program handle,
                                           const kn_opencl_kernels *kernels,
                                           const kiln_source *source, const kiln_artifact *artifact)
{
    kn_opencl_program *program = calloc(1, sizeof(*program));
    if (program != NULL) {
        program->handle = handle;
        program->kernels = *kernels;
        kn_mutex_init(&program->capture.lock);
        kn_opencl_capture_init(&program->capture, device, source, artifact);
        program->is_ptx = is_to_be_assembled(device, source, artifact);
    }
    return program;
}

kiln_status kn_opencl_program_load(void *device, const kiln_load_request *request,
                                   void **out_program, kiln_diag *diag)
{
    const kn_opencl_device *dev = (const kn_opencl_device *)device;
    const kn_opencl_site site = {&dev->cl->api, dev->context, dev->unit->device};
    const kiln_artifact *artifact = last_artifact(request);
    kn_opencl_program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return kn_no_memory(diag, "loading an OpenCL program");
    }
    kn_mutex_init(&program->capture.lock);
    kiln_status status = load_binary(dev, &site, request, &program->handle, diag);
    if (status == KILN_OK) {
        status = list_kernels(dev, &site, artifact, program, diag);
    }
    if (status != KILN_OK) {
        kn_opencl_program_unload(device, program);
        return status;
    }
    kn_opencl_capture_init(&program->capture, dev, request->source, artifact);
    program->is_ptx = is_to_be_assembled(dev, request->source, artifact);
    *out_program = program;
    return KILN_OK;
}

void kn_opencl_program_unload(void *device, void *program)
{
    const kn_opencl_api *api = &((const kn_opencl_device *)device)->cl->api;
    kn_opencl_program *p = (kn_opencl_program *)program;
    if (p == NULL) {
        return;
    }
    kn_opencl_capture_deinit(&p->capture, api);
    kn_mutex_deinit(&p->capture.lock);
    kn_opencl_kernels_deinit(api, &p->kernels);
    if (p->handle != NULL) {
        (void)api->clReleaseProgram(p->handle);
    }
    free(p);
}

const char *kn_opencl_program_entry(void *device, void *program, size_t index)
{
    const kn_opencl_program *p = (const kn_opencl_program *)program;
    (void)device;
    return index < p->kernels.count ? p->kernels.items[index].name : NULL;
}

kiln_status kn_opencl_program_params(void *device, void *program, const char *entry,
                                     const kiln_param **out_params, size_t *out_count,
                                     kiln_diag *diag)
{
    const kn_opencl_program *p = (const kn_opencl_program *)program;
    (void)device;
    (void)diag; /* a miss is an answer */
    const kn_opencl_kernel *kernel = kn_opencl_kernel_find(&p->kernels, entry);
    if (kernel == NULL) {
        return KILN_MISS;
    }
    *out_params = kernel->params;
    *out_count = kernel->param_count;
    return KILN_OK;
}
