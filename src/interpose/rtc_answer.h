/* What NVRTC or hipRTC made of one program, in one piece: every output with the code that its size
 * gave, log, lowered names, in parts (parts.h). This is the payload of an entry of stage
 * "nvrtc.program" or "hiprtc.program" (docs/reference/formats.md). */
#ifndef KILN_INTERPOSE_RTC_ANSWER_H
#define KILN_INTERPOSE_RTC_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/strbuf.h"
#include "kiln/status.h"

typedef enum kn_rtc_part {
    KN_RTC_LOG = 0,
    KN_RTC_PTX = 1,
    KN_RTC_CUBIN = 2,
    KN_RTC_LTOIR = 3,
    KN_RTC_OPTIXIR = 4,
    KN_RTC_NVVM = 5,
    KN_RTC_TILEIR = 6,
    KN_RTC_PCH = 7,      /* the code of nvrtcGetPCHCreateStatus; no bytes */
    KN_RTC_NAME = 8,     /* the source's name as given to the compile */
    KN_RTC_CODE = 9,     /* hipRTC's: a code object */
    KN_RTC_BITCODE = 10, /* and LLVM's bitcode */
    KN_RTC_PARTS = 11,
    KN_RTC_LOWERED = 16, /* one a name expression, in their order */
} kn_rtc_part;

typedef struct kn_rtc_output {
    bool known; /* false: this library has no such function */
    int code;
    kn_span bytes;
} kn_rtc_output;

typedef struct kn_rtc_answer {
    kn_rtc_output parts[KN_RTC_PARTS];
    kn_span *lowered; /* each with its NUL */
    size_t lowered_count;
} kn_rtc_answer;

/* Reads a payload that kn_parts_append made, whose bytes the result borrows. KILN_E_CORRUPT (no
 * diag), KILN_E_NOMEM. The result is initialised in every case. */
kiln_status kn_rtc_answer_parse(kn_span payload, kn_rtc_answer *out_result);
void kn_rtc_answer_deinit(kn_rtc_answer *result);

/* A log as the same compile gives it for a source of another name. NVRTC writes the name before
 * each line number and in its summary. hipRTC writes a path that ends in it, before a colon. False
 * when out of memory. */
bool kn_rtc_rename_in_nvrtc_log(kn_span log, kn_span from, const char *to, kn_strbuf *out);
bool kn_rtc_rename_in_hiprtc_log(kn_span log, kn_span from, const char *to, kn_strbuf *out);

#endif
