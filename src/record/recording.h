/* A recording on disk: a directory with a marker, and what is in it. docs/reference/formats.md. */
#ifndef KILN_RECORD_RECORDING_H
#define KILN_RECORD_RECORDING_H

#include "record/object.h"

#define KN_RECORDING_MARKER "kiln-recording"
#define KN_RECORDING_VERSION 1u

/* Whether the directory has the marker of a recording, of whatever version. */
bool kn_recording_is(const char *root);
/* Makes the directory (0700), its marker and its parts unless they are there. KILN_E_UNSUPPORTED:
 * it is one of a newer kiln; KILN_E_INVALID: a directory that has something else in it; KILN_E_IO.
 */
kiln_status kn_recording_prepare(const char *root, kiln_diag *diag);
/* Bytes of the files in it. */
uint64_t kn_recording_bytes(const char *root);

typedef struct kn_recording_use {
    kiln_key key;
    uint8_t program[KN_DIGEST_SIZE];
    char *target;
    int64_t first_ns, last_ns; /* since 1970 */
    uint64_t compile_ns;
    uint32_t days; /* on how many it was used */
} kn_recording_use;

typedef struct kn_recording {
    char *root;
    kn_recording_use *uses; /* in order of first use */
    size_t use_count;
    size_t damaged;   /* files that are not what their names say, and were left out */
    char damage[256]; /* the first one: which, and what is wrong with it */
} kn_recording;

/* Reads all uses. What is damaged is counted and left out. KILN_E_INVALID: it is not a recording;
 * KILN_E_UNSUPPORTED: a newer kiln made it; KILN_E_IO, KILN_E_NOMEM. Blocks: disk. */
kiln_status kn_recording_open(const char *root, kn_recording *out_recording, kiln_diag *diag);
void kn_recording_close(kn_recording *recording);

/* A program of it: `out_bytes` (free()) holds what `out_program` borrows. KILN_MISS,
 * KILN_E_CORRUPT, KILN_E_IO, KILN_E_NOMEM. */
kiln_status kn_recording_program(const kn_recording *recording,
                                 const uint8_t digest[KN_DIGEST_SIZE], char **out_bytes,
                                 kn_recorded *out_program, kiln_diag *diag);

#endif
