/* What NVRTC and hipRTC made: which payloads are whole, and the source's name in a log. */
#include <string.h>

#include "interpose/parts.h"
#include "interpose/rtc_answer.h"
#include "support/cmocka.h"

typedef bool rename_fn(kn_span log, kn_span from, const char *to, kn_strbuf *out);

static void check_renamed(rename_fn *rename, const char *log, const char *from, const char *to,
                          const char *wanted)
{
    kn_strbuf out;
    kn_strbuf_init(&out, 0);
    assert_true(rename(kn_span_of_text(log), kn_span_of_text(from), to, &out));
    assert_string_equal(kn_strbuf_text(&out), wanted);
    kn_strbuf_deinit(&out);
}

static void a_log_names_the_callers_source(void **state)
{
    check_renamed(kn_rtc_rename_in_nvrtc_log, "a.cu(1): a.cu\ncompilation of \"a.cu\"", "a.cu",
                  "b.cu", "b.cu(1): a.cu\ncompilation of \"b.cu\"");
    check_renamed(kn_rtc_rename_in_hiprtc_log, "/tmp/comgr-1/input/a.hip:1:2: a.hip:1", "a.hip",
                  "long/b.hip", "/tmp/comgr-1/input/long/b.hip:1:2: a.hip:1");
    check_renamed(kn_rtc_rename_in_hiprtc_log, "/tmp/comgr-1/input/x/a.hip:1:2: w", "/x/a.hip",
                  "b.hip", "/tmp/comgr-1/input/b.hip:1:2: w");
    check_renamed(kn_rtc_rename_in_hiprtc_log, "/tmp/comgr-1/input/a.hip:1:2: w", "a.hip",
                  "/y/b.hip", "/tmp/comgr-1/input/y/b.hip:1:2: w");
    check_renamed(kn_rtc_rename_in_hiprtc_log, "/input/a.hip", "a.hip", "b.hip", "/input/a.hip");
    check_renamed(kn_rtc_rename_in_hiprtc_log, "/input/a.hip:1", "", "b.hip", "/input/a.hip:1");
}

static void check_whole(const kn_rtc_part *parts, size_t count, kiln_status wanted)
{
    kn_strbuf payload;
    kn_rtc_answer answer;
    kn_strbuf_init(&payload, 0);
    for (size_t i = 0; i < count; i++) {
        kn_parts_append(&payload, parts[i], 0, kn_span_of_text("x"));
    }
    assert_true(kn_strbuf_ok(&payload));
    assert_int_equal(kn_rtc_answer_parse(kn_span_of(payload.data, payload.length), &answer),
                     wanted);
    kn_rtc_answer_deinit(&answer);
    kn_strbuf_deinit(&payload);
}

static void a_result_has_a_log_a_name_and_code(void **state)
{
    static const kn_rtc_part nvrtc[] = {KN_RTC_LOG, KN_RTC_PTX, KN_RTC_NAME};
    static const kn_rtc_part hiprtc[] = {KN_RTC_LOG, KN_RTC_CODE, KN_RTC_NAME};
    static const kn_rtc_part codeless[] = {KN_RTC_LOG, KN_RTC_CUBIN, KN_RTC_NAME};
    static const kn_rtc_part twice[] = {KN_RTC_LOG, KN_RTC_CODE, KN_RTC_NAME, KN_RTC_CODE};
    check_whole(nvrtc, 3, KILN_OK);
    check_whole(hiprtc, 3, KILN_OK);
    check_whole(codeless, 3, KILN_E_CORRUPT);
    check_whole(hiprtc, 2, KILN_E_CORRUPT);
    check_whole(twice, 4, KILN_E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_names_the_callers_source),
        cmocka_unit_test(a_result_has_a_log_a_name_and_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
