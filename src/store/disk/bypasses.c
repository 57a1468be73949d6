/* Reasons of bypasses, in a table of rows. This file must not depend on why a compile bypasses the
 * cache. */
#include "store/disk/bypasses.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "store/disk/row_table.h"
#include "store/format/checksum.h"
#include "sys/clock.h"
#include "sys/process.h"

#define ROW 512u
#define TRIES 4u /* rows in which a reason may be */

static const kn_row_table bypass_table = {"bypasses", KN_BYPASS_ROWS, ROW};

enum {
    AT_DIGEST = 0, /* of the reason: a row that was torn in two does not fit it */
    AT_COUNT = 8,
    AT_TIME = 16,
    AT_LAST = 24,
    AT_PROCESS = 32,
    AT_TOLD = 36,
    AT_WHAT = 40,
    AT_REASON = AT_WHAT + KN_BYPASS_WHAT,
};
_Static_assert(AT_REASON + KN_BYPASS_REASON == ROW, "the row's layout");

static uint64_t digest_of(const char *reason)
{
    unsigned char sum[KN_CHECKSUM_SIZE];
    const kn_span span = kn_span_of(reason, strlen(reason));
    kn_checksum(&span, 1, sum);
    return kn_get_u64(sum);
}

/* False if there is no row: it was never written, or is damaged. */
static bool parse_row(const unsigned char bytes[ROW], kn_bypass_row *out_row)
{
    out_row->count = kn_get_u64(bytes + AT_COUNT);
    out_row->time_ns = kn_get_u64(bytes + AT_TIME);
    out_row->last_ns = (int64_t)kn_get_u64(bytes + AT_LAST);
    out_row->process = kn_get_u32(bytes + AT_PROCESS);
    out_row->told = kn_get_u32(bytes + AT_TOLD) != 0;
    memcpy(out_row->what, bytes + AT_WHAT, KN_BYPASS_WHAT);
    memcpy(out_row->reason, bytes + AT_REASON, KN_BYPASS_REASON);
    out_row->what[KN_BYPASS_WHAT - 1] = '\0';
    out_row->reason[KN_BYPASS_REASON - 1] = '\0';
    return out_row->count > 0 && digest_of(out_row->reason) == kn_get_u64(bytes + AT_DIGEST);
}

static void write_bypass_row(kn_file *file, uint64_t at, const kn_bypass_row *row)
{
    unsigned char bytes[ROW];
    kn_put_u64(bytes + AT_DIGEST, digest_of(row->reason));
    kn_put_u64(bytes + AT_COUNT, row->count);
    kn_put_u64(bytes + AT_TIME, row->time_ns);
    kn_put_u64(bytes + AT_LAST, (uint64_t)row->last_ns);
    kn_put_u32(bytes + AT_PROCESS, row->process);
    kn_put_u32(bytes + AT_TOLD, row->told);
    memcpy(bytes + AT_WHAT, row->what, KN_BYPASS_WHAT);
    memcpy(bytes + AT_REASON, row->reason, KN_BYPASS_REASON);
    kn_rows_write(&bypass_table, file, at, bytes);
}

/* The row of a reason, or the one that it takes: a free one, else the one used longest ago. */
static uint64_t find_row(kn_file *file, const char *reason, kn_bypass_row *out_row)
{
    unsigned char bytes[ROW];
    const uint64_t first = digest_of(reason) % KN_BYPASS_ROWS;
    uint64_t best = first;
    int64_t oldest = INT64_MAX;
    for (uint64_t i = 0; i < TRIES; i++) {
        const uint64_t at = (first + i) % KN_BYPASS_ROWS;
        const bool there =
            kn_rows_read(&bypass_table, file, at, 1, bytes) && parse_row(bytes, out_row);
        if (there && strcmp(out_row->reason, reason) == 0) {
            return at;
        }
        const int64_t age = there ? out_row->last_ns : INT64_MIN;
        if (age < oldest) {
            oldest = age;
            best = at;
        }
    }
    *out_row = (kn_bypass_row){.count = 0};
    kn_text_put(out_row->reason, sizeof out_row->reason, reason);
    return best;
}

bool kn_bypasses_add(const char *root, const char *what, const char *reason, uint64_t took_ns)
{
    kn_bypass_row row;
    char cut[KN_BYPASS_REASON]; /* as rows have it */
    kn_text_put(cut, sizeof cut, reason);
    kn_file *file = kn_rows_open(&bypass_table, root, true);
    if (file == NULL) {
        return false;
    }
    const uint64_t at = find_row(file, cut, &row);
    const bool tell = row.count > 0 && !row.told && row.process != kn_process_id();
    row.count++;
    row.time_ns += took_ns;
    row.last_ns = kn_clock_wall();
    row.process = kn_process_id();
    row.told = row.told || tell;
    memset(row.what, 0, sizeof row.what);
    kn_text_put(row.what, sizeof row.what, what);
    write_bypass_row(file, at, &row);
    kn_rows_close(file);
    return tell;
}

size_t kn_bypasses_read(const char *root, kn_bypass_row rows[KN_BYPASS_ROWS])
{
    size_t count = 0;
    kn_file *file = kn_rows_open(&bypass_table, root, false);
    for (uint64_t i = 0; file != NULL && i < KN_BYPASS_ROWS; i++) {
        unsigned char bytes[ROW];
        if (kn_rows_read(&bypass_table, file, i, 1, bytes) && parse_row(bytes, &rows[count])) {
            count++;
        }
    }
    kn_rows_close(file);
    return count;
}
