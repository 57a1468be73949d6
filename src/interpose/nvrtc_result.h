/* What NVRTC made of one program, in one piece: every output with the code that its size gave, log,
 * lowered names. This is the payload of an entry of stage "nvrtc.program" (docs/formats.md). */
#ifndef KILN_INTERPOSE_NVRTC_RESULT_H
#define KILN_INTERPOSE_NVRTC_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/strbuf.h"
#include "interpose/nvrtc_api.h"
#include "kiln/status.h"

typedef enum kn_nvrtc_part {
    KN_NVRTC_LOG = 0,
    KN_NVRTC_PTX = 1,
    KN_NVRTC_CUBIN = 2,
    KN_NVRTC_LTOIR = 3,
    KN_NVRTC_OPTIXIR = 4,
    KN_NVRTC_NVVM = 5,
    KN_NVRTC_TILEIR = 6,
    KN_NVRTC_PCH = 7,  /* the code of nvrtcGetPCHCreateStatus; no bytes */
    KN_NVRTC_NAME = 8, /* the source's name as given to the compile */
    KN_NVRTC_PARTS = 9,
    KN_NVRTC_LOWERED = 16, /* one a name expression, in their order */
} kn_nvrtc_part;

typedef struct kn_nvrtc_output {
    bool known; /* false: this NVRTC has no such function */
    nvrtcResult code;
    kn_span bytes;
} kn_nvrtc_output;

typedef struct kn_nvrtc_result {
    kn_nvrtc_output parts[KN_NVRTC_PARTS];
    kn_span *lowered; /* each with its NUL */
    size_t lowered_count;
} kn_nvrtc_result;

/* Appends one part. The caller asks kn_strbuf_ok. */
void kn_nvrtc_result_append(kn_strbuf *out, unsigned part, nvrtcResult code, kn_span bytes);

/* Reads a payload, whose bytes the result borrows. KILN_E_CORRUPT (no diag), KILN_E_NOMEM. The
 * result is initialised in every case. */
kiln_status kn_nvrtc_result_parse(kn_span payload, kn_nvrtc_result *out_result);
void kn_nvrtc_result_deinit(kn_nvrtc_result *result);

/* A log as the same compile gives it for a source of another name: NVRTC writes the name before
 * each line number and in its summary. False when out of memory. */
bool kn_nvrtc_log_rename(kn_span log, kn_span from, const char *to, kn_strbuf *out);

#endif
