/* Rows one after another: a head of numbers, the variant's name, the reason. */
#include "tune/record_rows.h"

#include <string.h>

#include "base/checked.h"
#include "tune/record.h"

enum {
    AT_OUTCOME = 0,
    AT_STATUS = 4,
    AT_SAMPLES = 8,
    AT_NAME_LENGTH = 12,
    AT_REASON_LENGTH = 16,
    AT_MEDIAN = 20,
    AT_LOW = 28,
    AT_HIGH = 36,
    HEAD = 44,
};

void kn_tune_rows_write(const kiln_kernel *kernel, const kiln_tune_row *rows, kn_strbuf *to)
{
    for (size_t i = 0; i < kernel->variant_count; i++) {
        const kiln_tune_row *row = &rows[i];
        const char *name = kernel->variants[i].name;
        unsigned char head[HEAD];
        if (row->outcome == KILN_TUNE_PASSED_OVER) {
            continue; /* which device takes which language is asked afresh */
        }
        kn_put_u32(head + AT_OUTCOME, (uint32_t)row->outcome);
        kn_put_u32(head + AT_STATUS, (uint32_t)row->status);
        kn_put_u32(head + AT_SAMPLES, row->samples);
        kn_put_u32(head + AT_NAME_LENGTH, (uint32_t)strlen(name));
        kn_put_u32(head + AT_REASON_LENGTH, (uint32_t)strlen(row->reason));
        kn_put_u64(head + AT_MEDIAN, row->median_ns);
        kn_put_u64(head + AT_LOW, row->low_ns);
        kn_put_u64(head + AT_HIGH, row->high_ns);
        kn_strbuf_append(to, head, sizeof(head));
        kn_strbuf_append_text(to, name);
        kn_strbuf_append_text(to, row->reason);
    }
}

static kiln_tune_row *find_row(const kiln_kernel *kernel, kiln_tune_row *rows, const char *name,
                               size_t length)
{
    for (size_t i = 0; i < kernel->variant_count; i++) {
        if (strlen(kernel->variants[i].name) == length &&
            memcmp(kernel->variants[i].name, name, length) == 0) {
            return rows[i].outcome != KILN_TUNE_PASSED_OVER ? &rows[i] : NULL;
        }
    }
    return NULL;
}

void kn_tune_rows_read(kn_span bytes, const kiln_kernel *kernel, kiln_tune_row *rows)
{
    const unsigned char *at = (const unsigned char *)bytes.data;
    size_t left = bytes.length;
    while (left >= HEAD) {
        const uint32_t outcome = kn_get_u32(at + AT_OUTCOME);
        const size_t name = kn_get_u32(at + AT_NAME_LENGTH);
        const size_t reason = kn_get_u32(at + AT_REASON_LENGTH);
        if (outcome > KILN_TUNE_CHOSEN || name > KN_TUNE_NAME_MAX ||
            reason >= sizeof(rows->reason) || name + reason > left - HEAD) {
            return;
        }
        kiln_tune_row *row = find_row(kernel, rows, (const char *)at + HEAD, name);
        if (row != NULL) {
            *row = (kiln_tune_row){.outcome = (kiln_tune_outcome)outcome,
                                   .status = (kiln_status)kn_get_u32(at + AT_STATUS),
                                   .samples = kn_get_u32(at + AT_SAMPLES),
                                   .median_ns = kn_get_u64(at + AT_MEDIAN),
                                   .low_ns = kn_get_u64(at + AT_LOW),
                                   .high_ns = kn_get_u64(at + AT_HIGH)};
            memcpy(row->reason, at + HEAD + name, reason);
        }
        at += HEAD + name + reason;
        left -= HEAD + name + reason;
    }
}
