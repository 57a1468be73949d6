/* What the scan of one header's text reported, kept so that the next source of the process that
 * includes the header need not read it: compilers get many sources that share hundreds of headers.
 *
 *     kn_scan_record_make(text, ..., &stop, &record)    as kn_include_scan, and keeps it
 *     kn_scan_record_replay(record, ...)                the same calls again, without the text
 *
 * A record holds no place and no directory: where an include leads is found again each time. It is
 * never changed after it was made. */
#ifndef KILN_HEADERS_SCAN_RECORD_H
#define KILN_HEADERS_SCAN_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "headers/include_scan.h"

typedef struct kn_scan_record {
    kn_few_pieces *pieces;
    kn_scan_stop stop;
    bool raw_strings;   /* as it was scanned */
    size_t text_length; /* of what was scanned */
    size_t length;      /* of the events */
    char events[];
} kn_scan_record;

/* Scans a text for a reader that wants everything. *out_record is NULL, with any status, if a
 * report failed, if the scan stopped, or if memory ran out. */
kiln_status kn_scan_record_make(kn_span text, bool raw_strings, const kn_scan_reader *reader,
                                kn_scan_stop *out_stop, kn_scan_record **out_record);
void kn_scan_record_destroy(kn_scan_record *record); /* NULL is allowed */

/* What stopped the scan, or was seen, is in record->stop. */
kiln_status kn_scan_record_replay(const kn_scan_record *record, const kn_scan_reader *reader);

size_t kn_scan_record_size(const kn_scan_record *record); /* in memory */

#endif
