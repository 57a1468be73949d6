/* What every file of a recording begins with: magic, checksum, version, kind. The checksum finds
 * damage; digests and keys are checked by those who know them. */
#ifndef KILN_RECORD_FILE_FRAME_H
#define KILN_RECORD_FILE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#include "base/span.h"

#define KN_FRAME_HEADER 32u
#define KN_FRAME_VERSION 1u

typedef enum kn_frame_kind {
    KN_FRAME_TEXT = 1,
    KN_FRAME_PROGRAM = 2,
    KN_FRAME_USE = 3,
} kn_frame_kind;

/* Fills the header for a body that lies behind it in the same memory. `size` is of both. */
void kn_frame_seal(void *bytes, size_t size, kn_frame_kind kind);
/* The same of another version: for tests. */
void kn_frame_seal_as(void *bytes, size_t size, kn_frame_kind kind, uint32_t version);
/* The body. KILN_E_CORRUPT, KILN_E_UNSUPPORTED for a later version. */
kiln_status kn_frame_open(kn_span bytes, kn_frame_kind kind, kn_span *out_body, kiln_diag *diag);
/* KILN_E_CORRUPT, and what is wrong with a file of that kind. */
kiln_status kn_frame_corrupt(kn_frame_kind kind, const char *why, kiln_diag *diag);

#endif
