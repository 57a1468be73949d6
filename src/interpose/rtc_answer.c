/* See rtc_answer.h. This file opens nothing and calls nobody. */
#include "interpose/rtc_answer.h"

#include <stdlib.h>
#include <string.h>

#include "interpose/parts.h"

enum { MAX_LOWERED = 65536 };

static kiln_status take_part(kn_rtc_answer *result, unsigned part, int code, kn_span bytes)
{
    if (part == KN_RTC_LOWERED) {
        const bool sound = bytes.length > 0 && bytes.data[bytes.length - 1] == '\0' &&
                           result->lowered_count < MAX_LOWERED;
        kn_span *grown = sound ? (kn_span *)realloc(result->lowered,
                                                    (result->lowered_count + 1) * sizeof(*grown))
                               : NULL;
        if (grown == NULL) {
            return sound ? KILN_E_NOMEM : KILN_E_CORRUPT;
        }
        result->lowered = grown;
        grown[result->lowered_count++] = bytes;
        return KILN_OK;
    }
    if (part >= KN_RTC_PARTS || result->parts[part].known) {
        return KILN_E_CORRUPT;
    }
    result->parts[part] = (kn_rtc_output){true, code, bytes};
    return KILN_OK;
}

kiln_status kn_rtc_answer_parse(kn_span payload, kn_rtc_answer *out_result)
{
    kiln_status status = KILN_OK;
    uint32_t part = 0;
    uint32_t code = 0;
    kn_span bytes;
    memset(out_result, 0, sizeof(*out_result));
    while (status == KILN_OK && kn_parts_next(&payload, &part, &code, &bytes)) {
        status = take_part(out_result, part, (int)code, bytes);
    }
    const bool whole =
        payload.length == 0 && out_result->parts[KN_RTC_LOG].known &&
        (out_result->parts[KN_RTC_PTX].known || out_result->parts[KN_RTC_CODE].known) &&
        out_result->parts[KN_RTC_NAME].known;
    return status == KILN_OK && !whole ? KILN_E_CORRUPT : status;
}

void kn_rtc_answer_deinit(kn_rtc_answer *result)
{
    free(result->lowered);
    memset(result, 0, sizeof(*result));
}

/* --- the name in a log ------------------------------------------------------------------------ */

typedef bool is_name_fn(kn_span log, size_t at, kn_span name);

/* "NAME(12): warning", at the start of a line, and `compilation of "NAME"`. */
static bool is_name_of_nvrtc(kn_span log, size_t at, kn_span name)
{
    const size_t end = at + name.length;
    const char before = at > 0 ? log.data[at - 1] : '\n';
    const char after = end < log.length ? log.data[end] : '\0';
    return (before == '\n' && after == '(') || (before == '"' && after == '"');
}

/* "/tmp/comgr-1a2b3c/input/NAME:12:3: warning", where NAME has lost the slash that it begins with.
 */
static bool is_name_of_hiprtc(kn_span log, size_t at, kn_span name)
{
    static const char dir[] = "/input/";
    const size_t length = sizeof(dir) - 1;
    const size_t end = at + name.length;
    return at >= length && memcmp(log.data + at - length, dir, length) == 0 && end < log.length &&
           log.data[end] == ':';
}

static bool rename_where(kn_span log, kn_span from, const char *to, is_name_fn *is_name,
                         kn_strbuf *out)
{
    size_t copied = 0;
    for (size_t at = 0; from.length > 0 && at + from.length <= log.length; at++) {
        if (memcmp(log.data + at, from.data, from.length) == 0 && is_name(log, at, from)) {
            kn_strbuf_append(out, log.data + copied, at - copied);
            kn_strbuf_append_text(out, to);
            copied = at + from.length;
            at = copied - 1;
        }
    }
    kn_strbuf_append(out, log.data + copied, log.length - copied);
    return kn_strbuf_ok(out);
}

bool kn_rtc_rename_in_nvrtc_log(kn_span log, kn_span from, const char *to, kn_strbuf *out)
{
    return rename_where(log, from, to, is_name_of_nvrtc, out);
}

bool kn_rtc_rename_in_hiprtc_log(kn_span log, kn_span from, const char *to, kn_strbuf *out)
{
    while (from.length > 0 && from.data[0] == '/') {
        from = kn_span_of(from.data + 1, from.length - 1);
    }
    return rename_where(log, from, to + strspn(to, "/"), is_name_of_hiprtc, out);
}
