/* Any bytes as the result of an NVRTC compile, and as a log that names its source: an end, in
 * bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "interpose/nvrtc_result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_nvrtc_result result;
    size_t total = 0;
    if (kn_nvrtc_result_parse(kn_span_of(data, size), &result) == KILN_OK) {
        for (size_t i = 0; i < KN_NVRTC_PARTS; i++) {
            total += result.parts[i].bytes.length;
        }
        for (size_t i = 0; i < result.lowered_count; i++) {
            total += result.lowered[i].length;
        }
        const kn_span log = result.parts[KN_NVRTC_LOG].bytes;
        const kn_span name = result.parts[KN_NVRTC_NAME].bytes;
        kn_strbuf out;
        kn_strbuf_init(&out, 0);
        (void)kn_nvrtc_log_rename(log, name, "x.cu", &out);
        kn_strbuf_deinit(&out);
    }
    kn_nvrtc_result_deinit(&result);
    if (total > size) {
        abort();
    }
    return 0;
}
