/* Level 2: NVRTC through the cache, for a target that the options name. */
#include "kiln/cuda.h"

#include <stdlib.h>

#include "apis/cuda/options/nvrtc_options.h"
#include "base/diag.h"
#include "base/text.h"
#include "dropin/rtc.h"
#include "sized/sized.h"

static const kn_rtc_kind nvrtc = {
    .call = "kiln_nvrtc_compile",
    .backend = "cuda",
    .name = "kernel.cu",
    .language = KILN_LANG_CUDA,
    .read_option = kn_nvrtc_option_read,
    .no_arch = "no --gpu-architecture in the options",
    .no_arch_fix = "add an option such as --gpu-architecture=sm_90",
};

typedef struct nvrtc_result {
    kiln_nvrtc_result view; /* first */
    kn_rtc_result made;
    char *text; /* PTX without a NUL, copied to give it one */
} nvrtc_result;

void kiln_nvrtc_result_destroy(kiln_nvrtc_result *view)
{
    nvrtc_result *result = (nvrtc_result *)view;
    if (result != NULL) {
        kn_rtc_result_deinit(&result->made);
        free(result->text);
        free(result);
    }
}

/* The bytes as they are in the blob; PTX that ends without a NUL is copied to give it one. */
static kiln_status take_binary(nvrtc_result *result, kiln_diag *diag)
{
    const char *binary = result->made.binary;
    const bool ptx = result->made.language == KILN_LANG_PTX;
    size_t size = result->made.size;
    if (ptx && (size == 0 || binary[size - 1] != '\0')) {
        binary = result->text = kn_text_copy_n(binary, size);
    }
    if (binary == NULL) {
        return kn_no_memory(diag, nvrtc.call);
    }
    while (ptx && size > 0 && binary[size - 1] == '\0') {
        size--;
    }
    result->view.binary = binary;
    result->view.size = size;
    result->view.is_ptx = ptx;
    return KILN_OK;
}

static kiln_status compile_nvrtc_request(kiln_cache *cache, const kiln_nvrtc_request *request,
                                         nvrtc_result *result, kiln_diag *diag)
{
    const kn_rtc_request asked = {.text = request->text,
                                  .name = request->name,
                                  .options = request->options,
                                  .option_count = request->option_count,
                                  .headers = request->headers,
                                  .header_count = request->header_count,
                                  .expressions = request->expressions,
                                  .expression_count = request->expression_count};
    kiln_status status = kn_rtc_compile(&nvrtc, cache, &asked, &result->made, diag);
    if (status == KILN_OK) {
        status = take_binary(result, diag);
    }
    result->view.struct_size = sizeof(result->view);
    result->view.log = result->made.log;
    result->view.lowered = result->made.lowered;
    result->view.lowered_count = request->expression_count;
    result->view.origin = result->made.origin;
    return status;
}

kiln_status kiln_nvrtc_compile(kiln_cache *cache, const kiln_nvrtc_request *request,
                               kiln_nvrtc_result **out_result, kiln_diag *diag)
{
    kiln_nvrtc_request room;
    *out_result = NULL;
    if (request == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, nvrtc.call, "there is no request");
    }
    request = kn_sized_view(KN_SIZED(kiln_nvrtc_request), request, &room, diag);
    if (request == NULL) {
        return KILN_E_INVALID;
    }
    nvrtc_result *result = (nvrtc_result *)calloc(1, sizeof(*result));
    if (result == NULL) {
        return kn_no_memory(diag, nvrtc.call);
    }
    kiln_status status = compile_nvrtc_request(cache, request, result, diag);
    if (status != KILN_OK) {
        kiln_nvrtc_result_destroy(&result->view);
        return status;
    }
    *out_result = &result->view;
    return KILN_OK;
}
