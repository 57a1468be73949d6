/* Any bytes as the record of a tuning: refused, or what is read can be written and read again. */
#include <stdint.h>
#include <stdlib.h>

#include "tune/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_tune_record record;
    kiln_blob *first = NULL;
    kiln_blob *second = NULL;
    if (kn_tune_record_read(kn_span_of(data, size), &record) &&
        kn_tune_record_write(&record, &first, NULL) == KILN_OK) {
        const kn_span bytes = kn_span_of(kiln_blob_data(first), kiln_blob_size(first));
        if (!kn_tune_record_read(bytes, &record)) {
            abort();
        }
        if (kn_tune_record_write(&record, &second, NULL) == KILN_OK &&
            !kn_span_equal(bytes, kn_span_of(kiln_blob_data(second), kiln_blob_size(second)))) {
            abort();
        }
    }
    kiln_blob_release(first);
    kiln_blob_release(second);
    return 0;
}
