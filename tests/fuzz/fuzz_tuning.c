/* Any bytes as the record of a tuning: refused, or what is read can be written and read again; and
 * as the rows next to it. */
#include "fuzz/fuzz.h"
#include "tune/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const kiln_variant variants[] = {{.name = ""}, {.name = "v"}};
    static const kiln_kernel kernel = {.variants = variants, .variant_count = 2};
    const kn_span none = kn_span_of(NULL, 0);
    kiln_tune_row rows[2] = {{.outcome = KILN_TUNE_NOT_MEASURED},
                             {.outcome = KILN_TUNE_NOT_MEASURED}};
    kn_tune_record record;
    kiln_blob *first = NULL;
    kiln_blob *second = NULL;
    if (kn_tune_record_read(kn_span_of(data, size), &record) &&
        kn_tune_record_write(&record, none, &first, NULL) == KILN_OK) {
        const kn_span bytes = kn_span_of(kiln_blob_data(first), kiln_blob_size(first));
        if (!kn_tune_record_read(bytes, &record)) {
            abort();
        }
        if (kn_tune_record_write(&record, none, &second, NULL) == KILN_OK &&
            !kn_span_equal(bytes, kn_span_of(kiln_blob_data(second), kiln_blob_size(second)))) {
            abort();
        }
    }
    kn_tune_rows_read(kn_span_of(data, size), &kernel, rows);
    for (size_t i = 0; i < 2; i++) {
        if (rows[i].outcome > KILN_TUNE_CHOSEN ||
            memchr(rows[i].reason, 0, sizeof(rows[i].reason)) == NULL) {
            abort();
        }
    }
    kiln_blob_release(first);
    kiln_blob_release(second);
    return 0;
}
