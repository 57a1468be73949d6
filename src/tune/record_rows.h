/* What a tuning measured of each variant, next to its choice: the facts of the choice's entry, so
 * that a later call can show the same table and refuse the same variants. */
#ifndef KILN_TUNE_RECORD_ROWS_H
#define KILN_TUNE_RECORD_ROWS_H

#include "kiln/unstable/tune.h"

#include "base/span.h"
#include "base/strbuf.h"

/* Appends the rows of those variants that were taken by the device (docs/reference/formats.md). */
void kn_tune_rows_write(const kiln_kernel *kernel, const kiln_tune_row *rows, kn_strbuf *to);

/* Fills the rows of variants that are in the bytes, by their names, and leaves the others alone.
 * Bytes that make no sense end it. */
void kn_tune_rows_read(kn_span bytes, const kiln_kernel *kernel, kiln_tune_row *rows);

#endif
