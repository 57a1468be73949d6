/* PTX -> CUBIN by the driver's own compiler (CUDA driver API, cuLinkCreate), and link-time
 * optimised IR -> CUBIN by nvJitLink. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/instance.h"
#include "apis/cuda/backend/link_options.h"
#include "apis/cuda/options/nvrtc_options.h"
#include "base/diag.h"
#include "base/text.h"

enum { LOG_SIZE = 64 << 10 };
#define OUTPUT_LIMIT ((size_t)1 << 30) /* larger ones are not believed */

typedef struct jit_input {
    void *text; /* NUL-terminated */
    size_t size;
    const char *name;
} jit_input;

static kiln_status link_ptx(kn_cuda *cuda, const jit_input *input, char *log,
                            kiln_artifact *artifact, kiln_diag *diag)
{
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)LOG_SIZE};
    CUlinkState state = NULL;
    void *cubin = NULL;
    size_t size = 0;
    const char *what = "cuLinkCreate";
    CUresult result = cuda->driver.cuLinkCreate_v2(2, options, values, &state);
    if (result == CUDA_SUCCESS) {
        what = "cuLinkAddData";
        result = cuda->driver.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, input->text, input->size,
                                               input->name, 0, NULL, NULL);
    }
    if (result == CUDA_SUCCESS) {
        what = "cuLinkComplete";
        result = cuda->driver.cuLinkComplete(state, &cubin, &size);
    }
    kiln_status status = KILN_OK;
    if (result != CUDA_SUCCESS) {
        status = kn_cuda_fail(cuda, result, what, diag);
        kiln_diag_set_log(diag, log, strlen(log));
        if (status == KILN_E_REJECTED) {
            status = KILN_E_COMPILE; /* this was text, not a cached binary */
        }
    } else if (cubin == NULL || size > OUTPUT_LIMIT) {
        status = kiln_diag_set(diag, KILN_E_INTERNAL, "update the NVIDIA driver", input->name,
                               "cuLinkComplete names an output of %zu bytes", size);
    } else if (size == 0 ||
               cuda->host->artifact_set(artifact, KILN_LANG_CUBIN, cubin, size) != KILN_OK) {
        status =
            kiln_diag_set(diag, KILN_E_NOMEM, NULL, input->name, "no output, or out of memory");
    }
    if (state != NULL) {
        (void)cuda->driver.cuLinkDestroy(state);
    }
    return status;
}

kiln_status kn_cuda_jit(kn_cuda *cuda, const kiln_compile_request *request, kiln_artifact *artifact,
                        kiln_diag *diag)
{
    const kiln_source *source = request->source;
    const char *name = source->name != NULL ? source->name : "kernel.ptx";
    if (request->device == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "compile it where the GPU is", name,
                             "the driver's compiler needs a device");
    }
    const void *data = request->input != NULL ? request->input->data : source->text;
    const size_t length = request->input != NULL ? request->input->size : source->length;
    jit_input input = {NULL, length + 1, name};
    char *log = (char *)calloc(1, LOG_SIZE + 1); /* ended, however much the driver writes */
    input.text = kn_text_copy_n((const char *)data, length);
    int before = 0;
    kiln_status status;
    if (log == NULL || input.text == NULL) {
        status = kn_no_memory(diag, name);
        goto cleanup;
    }
    status = kn_cuda_enter((const kn_gpu_device *)request->device, &before, diag);
    if (status == KILN_OK) {
        status = link_ptx(cuda, &input, log, artifact, diag);
        kn_cuda_leave((const kn_gpu_device *)request->device, before);
    }
    /* The facts of the stage before (lowered names) go on with the artifact: core hands each
     * stage's artifact to load, so nothing needs copying here. */
cleanup:
    free(input.text);
    free(log);
    return status;
}

static kiln_status fail_link(const kn_cuda_nvjitlink *link, nvJitLinkHandle handle,
                             nvJitLinkResult result, const char *name, kiln_diag *diag)
{
    size_t size = 0;
    kiln_status status = kiln_diag_set(diag, KILN_E_COMPILE, "see the linker's log", name,
                                       "nvJitLink failed with code %d", result);
    kiln_diag_set_vendor_code(diag, result);
    if (handle != NULL && link->nvJitLinkGetErrorLogSize(handle, &size) == NVJITLINK_SUCCESS &&
        size > 1 && size <= OUTPUT_LIMIT) {
        char *log = (char *)calloc(1, size + 1);
        if (log != NULL && link->nvJitLinkGetErrorLog(handle, log) == NVJITLINK_SUCCESS) {
            kiln_diag_set_log(diag, log, strlen(log));
        }
        free(log);
    }
    return status;
}

kiln_status kn_cuda_lto_link(kn_cuda *cuda, const kiln_compile_request *request, const void *ir,
                             size_t size, const char *name, kiln_artifact *artifact,
                             kiln_diag *diag)
{
    const kn_cuda_target *target = (const kn_cuda_target *)request->target->handle;
    const kn_cuda_nvjitlink *link = NULL;
    kiln_status status = kn_cuda_nvjitlink_get(cuda, &link, diag);
    if (status != KILN_OK) {
        return status;
    }
    char arch[32];
    kn_cuda_link_options options;
    kn_text_putf(arch, sizeof(arch), "sm_%d%.1s", target->arch,
                 target->suffix != '\0' ? &target->suffix : "");
    kn_cuda_link_options_init(&options, request->source, arch,
                              kn_nvrtc_options_uncached(cuda->toolkit.major, cuda->toolkit.minor) !=
                                  NULL);
    if (options.failed) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "give fewer or shorter ones", name,
                             "too many or too long options for nvJitLink");
    }
    nvJitLinkHandle handle = NULL;
    void *cubin = NULL;
    size_t cubin_size = 0;
    nvJitLinkResult result = link->nvJitLinkCreate(&handle, options.count, options.items);
    if (result == NVJITLINK_SUCCESS) {
        result = link->nvJitLinkAddData(handle, NVJITLINK_INPUT_LTOIR, ir, size, name);
    }
    if (result == NVJITLINK_SUCCESS) {
        result = link->nvJitLinkComplete(handle);
    }
    if (result == NVJITLINK_SUCCESS) {
        result = link->nvJitLinkGetLinkedCubinSize(handle, &cubin_size);
    }
    if (result == NVJITLINK_SUCCESS && cubin_size > 0 && cubin_size <= OUTPUT_LIMIT) {
        cubin = malloc(cubin_size);
        result = cubin != NULL ? link->nvJitLinkGetLinkedCubin(handle, cubin) : result;
    }
    if (result != NVJITLINK_SUCCESS) {
        status = fail_link(link, handle, result, name, diag);
    } else if (cubin == NULL ||
               cuda->host->artifact_set(artifact, KILN_LANG_CUBIN, cubin, cubin_size) != KILN_OK) {
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "no output, or out of memory");
    }
    free(cubin);
    if (handle != NULL) {
        (void)link->nvJitLinkDestroy(&handle);
    }
    return status;
}
