/* Bytes of a record (docs/reference/formats.md): numbers little-endian, the name last. */
#include "tune/record.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum {
    AT_MAGIC = 0, /* "KTUN" */
    AT_FLAGS = 4,
    AT_NS = 8,
    AT_BASELINE_NS = 16,
    AT_FLOPS = 24,
    AT_BYTES = 32,
    AT_PROGRAM = 40,
    AT_NAME_LENGTH = 72,
    AT_NAME = 76,
};

static const char magic[4] = {'K', 'T', 'U', 'N'};
static const uint32_t has_program = 1u;

static void put_real(unsigned char *to, double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    kn_put_u64(to, bits);
}

/* A rate that makes no sense counts as none. */
static double get_real(const unsigned char *from)
{
    double value = 0;
    const uint64_t bits = kn_get_u64(from);
    memcpy(&value, &bits, sizeof(value));
    return isfinite(value) && value > 0 ? value : 0;
}

kiln_status kn_tune_record_write(const kn_tune_record *record, kn_span facts, kiln_blob **out_blob,
                                 kiln_diag *diag)
{
    unsigned char bytes[AT_NAME + KN_TUNE_NAME_MAX] = {0};
    const size_t length = strlen(record->variant);
    memcpy(bytes + AT_MAGIC, magic, sizeof(magic));
    kn_put_u32(bytes + AT_FLAGS, record->has_program ? has_program : 0);
    kn_put_u64(bytes + AT_NS, record->ns);
    kn_put_u64(bytes + AT_BASELINE_NS, record->baseline_ns);
    put_real(bytes + AT_FLOPS, record->flops_per_s);
    put_real(bytes + AT_BYTES, record->bytes_per_s);
    memcpy(bytes + AT_PROGRAM, record->program.bytes, sizeof(record->program.bytes));
    kn_put_u32(bytes + AT_NAME_LENGTH, (uint32_t)length);
    memcpy(bytes + AT_NAME, record->variant, length);
    return kiln_blob_create(bytes, AT_NAME + length, facts.data, facts.length, out_blob, diag);
}

bool kn_tune_record_read(kn_span bytes, kn_tune_record *out_record)
{
    const unsigned char *data = (const unsigned char *)bytes.data;
    memset(out_record, 0, sizeof(*out_record));
    if (bytes.length < AT_NAME || memcmp(data + AT_MAGIC, magic, sizeof(magic)) != 0) {
        return false;
    }
    const uint32_t length = kn_get_u32(data + AT_NAME_LENGTH);
    if (length == 0 || length > KN_TUNE_NAME_MAX || bytes.length != AT_NAME + (size_t)length ||
        memchr(data + AT_NAME, '\0', length) != NULL) {
        return false;
    }
    out_record->has_program = (kn_get_u32(data + AT_FLAGS) & has_program) != 0;
    out_record->ns = kn_get_u64(data + AT_NS);
    out_record->baseline_ns = kn_get_u64(data + AT_BASELINE_NS);
    out_record->flops_per_s = get_real(data + AT_FLOPS);
    out_record->bytes_per_s = get_real(data + AT_BYTES);
    memcpy(out_record->program.bytes, data + AT_PROGRAM, sizeof(out_record->program.bytes));
    memcpy(out_record->variant, data + AT_NAME, length);
    return true;
}

uint64_t kn_tune_bucket(uint64_t size)
{
    uint64_t bucket = 1;
    while (bucket < size && bucket <= UINT64_MAX / 2) {
        bucket *= 2;
    }
    return size == 0 ? 0 : bucket >= size ? bucket : UINT64_MAX;
}

/* --- rows: a head of numbers, the variant's name, the reason ---------------------------------- */

enum {
    ROW_OUTCOME = 0,
    ROW_STATUS = 4,
    ROW_SAMPLES = 8,
    ROW_NAME_LENGTH = 12,
    ROW_REASON_LENGTH = 16,
    ROW_MEDIAN = 20,
    ROW_LOW = 28,
    ROW_HIGH = 36,
    ROW_HEAD = 44,
};

void kn_tune_rows_write(const kiln_kernel *kernel, const kiln_tune_row *rows, kn_strbuf *to)
{
    for (size_t i = 0; i < kernel->variant_count; i++) {
        const kiln_tune_row *row = &rows[i];
        const char *name = kernel->variants[i].name;
        unsigned char head[ROW_HEAD];
        if (row->outcome == KILN_TUNE_PASSED_OVER) {
            continue; /* which device takes which language is asked afresh */
        }
        kn_put_u32(head + ROW_OUTCOME, (uint32_t)row->outcome);
        kn_put_u32(head + ROW_STATUS, (uint32_t)row->status);
        kn_put_u32(head + ROW_SAMPLES, row->samples);
        kn_put_u32(head + ROW_NAME_LENGTH, (uint32_t)strlen(name));
        kn_put_u32(head + ROW_REASON_LENGTH, (uint32_t)strlen(row->reason));
        kn_put_u64(head + ROW_MEDIAN, row->median_ns);
        kn_put_u64(head + ROW_LOW, row->low_ns);
        kn_put_u64(head + ROW_HIGH, row->high_ns);
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
    while (left >= ROW_HEAD) {
        const uint32_t outcome = kn_get_u32(at + ROW_OUTCOME);
        const size_t name = kn_get_u32(at + ROW_NAME_LENGTH);
        const size_t reason = kn_get_u32(at + ROW_REASON_LENGTH);
        if (outcome > KILN_TUNE_CHOSEN || name > KN_TUNE_NAME_MAX ||
            reason >= sizeof(rows->reason) || name + reason > left - ROW_HEAD) {
            return;
        }
        kiln_tune_row *row = find_row(kernel, rows, (const char *)at + ROW_HEAD, name);
        if (row != NULL) {
            *row = (kiln_tune_row){.outcome = (kiln_tune_outcome)outcome,
                                   .status = (kiln_status)kn_get_u32(at + ROW_STATUS),
                                   .samples = kn_get_u32(at + ROW_SAMPLES),
                                   .median_ns = kn_get_u64(at + ROW_MEDIAN),
                                   .low_ns = kn_get_u64(at + ROW_LOW),
                                   .high_ns = kn_get_u64(at + ROW_HIGH)};
            memcpy(row->reason, at + ROW_HEAD + name, reason);
        }
        at += ROW_HEAD + name + reason;
        left -= ROW_HEAD + name + reason;
    }
}
