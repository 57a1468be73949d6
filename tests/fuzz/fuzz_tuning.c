/* Any bytes as the record of a tuning: refused, or what is read can be written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tune/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_tune_record record, back;
    kiln_blob *blob = NULL;
    if (!kn_tune_record_read(kn_span_of(data, size), &record) ||
        kn_tune_record_write(&record, &blob, NULL) != KILN_OK) {
        return 0;
    }
    if (!kn_tune_record_read(kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)), &back) ||
        memcmp(&record, &back, sizeof record) != 0) {
        abort();
    }
    kiln_blob_release(blob);
    return 0;
}
