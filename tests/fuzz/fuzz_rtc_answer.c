/* Any bytes as the result of a compile of NVRTC's or hipRTC's, and as a log that names its source:
 * an end, in bounds. */
#include "fuzz/fuzz.h"
#include "interpose/rtc_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_rtc_answer result;
    size_t total = 0;
    if (kn_rtc_answer_parse(kn_span_of(data, size), &result) == KILN_OK) {
        for (size_t i = 0; i < KN_RTC_PARTS; i++) {
            total += result.parts[i].bytes.length;
        }
        for (size_t i = 0; i < result.lowered_count; i++) {
            total += result.lowered[i].length;
        }
        const kn_span log = result.parts[KN_RTC_LOG].bytes;
        const kn_span name = result.parts[KN_RTC_NAME].bytes;
        kn_strbuf out;
        kn_strbuf_init(&out, 0);
        (void)kn_rtc_rename_in_nvrtc_log(log, name, "x.cu", &out);
        (void)kn_rtc_rename_in_hiprtc_log(log, name, "/x.hip", &out);
        kn_strbuf_deinit(&out);
    }
    kn_rtc_answer_deinit(&result);
    if (total > size) {
        abort();
    }
    return 0;
}
