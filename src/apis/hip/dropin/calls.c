/* Level 2: hipRTC through the cache, for a target that the options name. */
#include "kiln/hip.h"

#include <stdlib.h>

#include "apis/hip/options/hiprtc_options.h"
#include "base/diag.h"
#include "dropin/rtc.h"
#include "sized/sized.h"

static const kn_rtc_kind hiprtc = {
    .call = "kiln_hiprtc_compile",
    .backend = "hip",
    .name = "kernel.hip",
    .language = KILN_LANG_HIP,
    .read_option = kn_hiprtc_option_read,
    .one_target = true,
    .no_arch = "no --offload-arch in the options",
    .no_arch_fix = "add an option such as --offload-arch=gfx90a (hipDeviceProp_t's gcnArchName)",
};

typedef struct hiprtc_result {
    kiln_hiprtc_result view; /* first */
    kn_rtc_result made;
} hiprtc_result;

void kiln_hiprtc_result_destroy(kiln_hiprtc_result *view)
{
    hiprtc_result *result = (hiprtc_result *)view;
    if (result != NULL) {
        kn_rtc_result_deinit(&result->made);
        free(result);
    }
}

static kiln_status compile_hip_request(kiln_cache *cache, const kiln_hiprtc_request *request,
                                       hiprtc_result *result, kiln_diag *diag)
{
    const kn_rtc_request asked = {.text = request->text,
                                  .name = request->name,
                                  .options = request->options,
                                  .option_count = request->option_count,
                                  .headers = request->headers,
                                  .header_count = request->header_count,
                                  .expressions = request->expressions,
                                  .expression_count = request->expression_count};
    kiln_status status = kn_rtc_compile(&hiprtc, cache, &asked, &result->made, diag);
    result->view = (kiln_hiprtc_result){.struct_size = sizeof(result->view),
                                        .code = result->made.binary,
                                        .size = result->made.size,
                                        .log = result->made.log,
                                        .lowered = result->made.lowered,
                                        .lowered_count = request->expression_count,
                                        .origin = result->made.origin};
    return status;
}

kiln_status kiln_hiprtc_compile(kiln_cache *cache, const kiln_hiprtc_request *request,
                                kiln_hiprtc_result **out_result, kiln_diag *diag)
{
    kiln_hiprtc_request room;
    *out_result = NULL;
    if (request == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, hiprtc.call, "there is no request");
    }
    request = kn_sized_view(KN_SIZED(kiln_hiprtc_request), request, &room, diag);
    if (request == NULL) {
        return KILN_E_INVALID;
    }
    hiprtc_result *result = (hiprtc_result *)calloc(1, sizeof(*result));
    if (result == NULL) {
        return kn_no_memory(diag, hiprtc.call);
    }
    kiln_status status = compile_hip_request(cache, request, result, diag);
    if (status != KILN_OK) {
        kiln_hiprtc_result_destroy(&result->view);
        return status;
    }
    *out_result = &result->view;
    return KILN_OK;
}
