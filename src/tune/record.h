/* What a tuning found, as an entry of the cache, and the size of a problem as tunings see it. */
#ifndef KILN_TUNE_RECORD_H
#define KILN_TUNE_RECORD_H

#include <stdbool.h>

#include "kiln/unstable/tune.h"

#include "base/span.h"
#include "base/strbuf.h"

#define KN_TUNE_NAME_MAX 255u

typedef struct kn_tune_record {
    uint64_t ns, baseline_ns;
    double flops_per_s, bytes_per_s;
    bool has_program;
    kiln_key program; /* of the first stage of the variant's program, as it was measured */
    char variant[KN_TUNE_NAME_MAX + 1];
} kn_tune_record;

/* Puts the record into a new blob, with `facts` next to it. KILN_E_NOMEM. */
kiln_status kn_tune_record_write(const kn_tune_record *record, kn_span facts, kiln_blob **out_blob,
                                 kiln_diag *diag);
/* False for what is not a record. */
bool kn_tune_record_read(kn_span bytes, kn_tune_record *out_record);

/* Appends the rows of those variants that were taken by the device (docs/reference/formats.md).
 * They are the facts of the choice's entry, so that a later call can show the same table and refuse
 * the same variants. */
void kn_tune_rows_write(const kiln_kernel *kernel, const kiln_tune_row *rows, kn_strbuf *to);
/* Fills the rows of variants that are in the bytes, by their names, and leaves the others alone.
 * Bytes that make no sense end it. */
void kn_tune_rows_read(kn_span bytes, const kiln_kernel *kernel, kiln_tune_row *rows);

/* The bucket of a size: the least power of two that is not smaller; 0 for 0, UINT64_MAX past the
 * last power. */
uint64_t kn_tune_bucket(uint64_t size);

#endif
