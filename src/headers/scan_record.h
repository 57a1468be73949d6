/* What the scan of one header's text reported, kept so that the next source of the process that
 * includes the header need not read it: compilers get many sources that share hundreds of headers.
 *
 *     kn_scan_record_make(text, ..., &record, &stop)    as kn_include_scan_macros, and keeps it
 *     kn_scan_record_replay(record, ..., &stop)         the same calls again, without the text
 *
 * A record holds no place and no directory: where an include leads is found again each time. It is
 * never changed after it was made. */
#ifndef KILN_HEADERS_SCAN_RECORD_H
#define KILN_HEADERS_SCAN_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "headers/include_scan.h"

typedef struct kn_scan_record kn_scan_record;

/* What happens at each report of a scan. */
typedef struct kn_scan_reports {
    kn_include_fn *visit;
    const kn_scan_macros *macros; /* not NULL, and without NULL in it but for `pieces` */
    void *user;
} kn_scan_reports;

/* Scans a text. *out_record is NULL, with any status, if a report failed, if the scan stopped, or
 * if memory ran out. */
kiln_status kn_scan_record_make(kn_span text, bool raw_strings, const kn_scan_reports *reports,
                                kn_scan_stop *out_stop, kn_scan_record **out_record);
void kn_scan_record_destroy(kn_scan_record *record); /* NULL is allowed */

kiln_status kn_scan_record_replay(const kn_scan_record *record, const kn_scan_reports *reports,
                                  kn_scan_stop *out_stop);

size_t kn_scan_record_size(const kn_scan_record *record);        /* in memory */
size_t kn_scan_record_text_length(const kn_scan_record *record); /* of what was scanned */
bool kn_scan_record_raw_strings(const kn_scan_record *record);   /* as it was scanned */

#endif
