/* See header_memo.h. */
#include "headers/header_memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "headers/closure_walk.h"
#include "sys/thread.h"

#define FILE_KEY_SIZE 16 /* device and inode */

typedef struct memo_row {
    kn_stamp stamp;
    int64_t read_ns;
    uint8_t digest[32];
    const kn_scan_record *scan; /* NULL: none was kept */
} memo_row;

typedef struct walk_row {
    kn_walk_facts facts;
    kn_strbuf definitions; /* empty unless `facts.computed` */
    kiln_blob *blob;
} walk_row;

struct kn_header_memo {
    kn_mutex lock;
    kn_map rows;
    kn_map walks; /* the includes of a shape -> walk_row */
    size_t walk_bytes;
    kn_scan_record **records; /* all, those that no row has any more too: they may be in use */
    size_t record_count, record_capacity, record_bytes;
};

kn_header_memo *kn_header_memo_create(void)
{
    kn_header_memo *memo = (kn_header_memo *)calloc(1, sizeof(*memo));
    if (memo != NULL) {
        kn_mutex_init(&memo->lock);
        kn_map_init(&memo->rows);
        kn_map_init(&memo->walks);
    }
    return memo;
}

static void destroy_walk(walk_row *row)
{
    if (row != NULL) {
        kn_strbuf_deinit(&row->definitions);
        kiln_blob_release(row->blob);
        free(row);
    }
}

void kn_header_memo_destroy(kn_header_memo *memo)
{
    size_t cursor = 0;
    void *row = NULL;
    if (memo == NULL) {
        return;
    }
    while (kn_map_next(&memo->rows, &cursor, NULL, NULL, &row)) {
        free(row);
    }
    kn_map_deinit(&memo->rows);
    cursor = 0;
    while (kn_map_next(&memo->walks, &cursor, NULL, NULL, &row)) {
        destroy_walk((walk_row *)row);
    }
    kn_map_deinit(&memo->walks);
    for (size_t i = 0; i < memo->record_count; i++) {
        kn_scan_record_destroy(memo->records[i]);
    }
    free((void *)memo->records);
    kn_mutex_deinit(&memo->lock);
    free(memo);
}

static void name_file(const kn_stamp *stamp, unsigned char key[FILE_KEY_SIZE])
{
    kn_put_u64(key, stamp->device);
    kn_put_u64(key + 8, stamp->inode);
}

/* Copies the row of a file that still is what it was. */
static bool find_row(kn_header_memo *memo, const kn_stamp *now, memo_row *out_row)
{
    unsigned char key[FILE_KEY_SIZE];
    bool holds = false;
    name_file(now, key);
    if (memo != NULL && kn_mutex_try(&memo->lock)) {
        const memo_row *row = (const memo_row *)kn_map_find(&memo->rows, key, sizeof(key));
        holds = row != NULL && kn_stamp_holds(&row->stamp, now, row->read_ns);
        if (holds) {
            *out_row = *row;
        }
        kn_mutex_unlock(&memo->lock);
    }
    return holds;
}

bool kn_header_memo_find(kn_header_memo *memo, const kn_stamp *now, uint8_t out_digest[32])
{
    memo_row row;
    const bool found = find_row(memo, now, &row);
    if (found) {
        memcpy(out_digest, row.digest, sizeof(row.digest));
    }
    return found;
}

bool kn_header_memo_find_scan(kn_header_memo *memo, const kn_stamp *now, bool raw_strings,
                              uint8_t out_digest[32], const kn_scan_record **out_record)
{
    memo_row row;
    if (!find_row(memo, now, &row) || row.scan == NULL || row.scan->raw_strings != raw_strings) {
        return false;
    }
    memcpy(out_digest, row.digest, sizeof(row.digest));
    *out_record = row.scan;
    return true;
}

bool kn_header_memo_is_empty(kn_header_memo *memo)
{
    bool empty = true;
    if (memo != NULL && kn_mutex_try(&memo->lock)) {
        empty = memo->rows.count == 0;
        kn_mutex_unlock(&memo->lock);
    }
    return empty;
}

/* Under the lock. Takes the record over; false if there is no room for it. */
static bool keep_record(kn_header_memo *memo, kn_scan_record *record)
{
    const size_t size = kn_scan_record_size(record);
    if (size > KN_HEADER_MEMO_MAX_BYTES - memo->record_bytes) {
        return false;
    }
    if (memo->record_count == memo->record_capacity) {
        const size_t wanted = memo->record_capacity == 0 ? 64 : memo->record_capacity * 2;
        kn_scan_record **grown =
            (kn_scan_record **)realloc((void *)memo->records, wanted * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        memo->records = grown;
        memo->record_capacity = wanted;
    }
    memo->records[memo->record_count++] = record;
    memo->record_bytes += size;
    return true;
}

/* Under the lock. Without memory the file is read again. */
static void put_row(kn_header_memo *memo, const memo_row *row)
{
    unsigned char key[FILE_KEY_SIZE];
    name_file(&row->stamp, key);
    memo_row *known = (memo_row *)kn_map_find(&memo->rows, key, sizeof(key));
    if (known != NULL) {
        const bool same = memcmp(known->digest, row->digest, sizeof(row->digest)) == 0;
        const kn_scan_record *scan = same && row->scan == NULL ? known->scan : row->scan;
        *known = *row;
        known->scan = scan;
        return;
    }
    memo_row *made =
        memo->rows.count < KN_HEADER_MEMO_MAX ? (memo_row *)malloc(sizeof(*made)) : NULL;
    if (made == NULL) {
        return;
    }
    *made = *row;
    if (!kn_map_put(&memo->rows, key, sizeof(key), made, NULL)) {
        free(made);
    }
}

void kn_header_memo_put_scan(kn_header_memo *memo, const kn_stamp *stamp, int64_t read_ns,
                             const uint8_t digest[32], kn_scan_record *record)
{
    memo_row row = {.stamp = *stamp, .read_ns = read_ns};
    /* One that is too young to be believed later would only take room. */
    if (memo == NULL || !kn_stamp_holds(stamp, stamp, read_ns) || !kn_mutex_try(&memo->lock)) {
        kn_scan_record_destroy(record);
        return;
    }
    memcpy(row.digest, digest, sizeof(row.digest));
    if (record != NULL && keep_record(memo, record)) {
        row.scan = record;
        record = NULL;
    }
    put_row(memo, &row);
    kn_mutex_unlock(&memo->lock);
    kn_scan_record_destroy(record);
}

void kn_header_memo_put(kn_header_memo *memo, const kn_stamp *stamp, int64_t read_ns,
                        const uint8_t digest[32])
{
    kn_header_memo_put_scan(memo, stamp, read_ns, digest, NULL);
}

/* --- walks ------------------------------------------------------------------------------------ */

static bool fits_definitions(const walk_row *row, const kn_walk_shape *shape)
{
    return !row->facts.computed ||
           kn_span_equal(kn_span_of(row->definitions.data, row->definitions.length),
                         kn_span_of(shape->definitions.data, shape->definitions.length));
}

bool kn_header_memo_find_walk(kn_header_memo *memo, const kn_walk_shape *shape,
                              const kiln_source *source, kiln_blob **out_blob, bool *out_names)
{
    kn_walk_facts facts;
    bool found = false;
    if (memo == NULL || shape->includes.length == 0 || !kn_mutex_try(&memo->lock)) {
        return false;
    }
    const walk_row *row =
        (const walk_row *)kn_map_find(&memo->walks, shape->includes.data, shape->includes.length);
    if (row != NULL && fits_definitions(row, shape)) {
        found = true;
        facts = row->facts;
        *out_blob = kiln_blob_retain(row->blob);
    }
    kn_mutex_unlock(&memo->lock);
    if (!found) {
        return false;
    }
    *out_names = facts.names || shape->names;
    kn_pieces_merge(&facts.pieces, &shape->pieces);
    if (kn_closure_settle_pieces(source, &facts.pieces, out_names) != NULL) {
        kiln_blob_release(*out_blob);
        return false;
    }
    return true;
}

static walk_row *make_walk(const kn_walk_shape *shape, const kn_walk_facts *facts,
                           const kn_header_list *list)
{
    walk_row *row = (walk_row *)calloc(1, sizeof(*row));
    kn_strbuf bytes;
    if (row == NULL) {
        return NULL;
    }
    kn_strbuf_init(&bytes, 0);
    kn_strbuf_init(&row->definitions, 0);
    row->facts = *facts;
    if (facts->computed) {
        kn_strbuf_append(&row->definitions, shape->definitions.data, shape->definitions.length);
    }
    kn_header_list_write(list, true, &bytes);
    const bool whole =
        kn_strbuf_ok(&bytes) && kn_strbuf_ok(&row->definitions) &&
        kiln_blob_create(bytes.data, bytes.length, NULL, 0, &row->blob, NULL) == KILN_OK;
    kn_strbuf_deinit(&bytes);
    if (!whole) {
        destroy_walk(row);
        row = NULL;
    }
    return row;
}

void kn_header_memo_put_walk(kn_header_memo *memo, const kn_walk_shape *shape,
                             const kn_walk_facts *facts, const kn_header_list *list)
{
    walk_row *row =
        memo != NULL && shape->includes.length > 0 ? make_walk(shape, facts, list) : NULL;
    if (row == NULL || !kn_mutex_try(&memo->lock)) {
        destroy_walk(row);
        return;
    }
    const size_t size = kiln_blob_size(row->blob) + row->definitions.length + sizeof(*row);
    void *old = NULL;
    if (size <= KN_HEADER_MEMO_MAX_WALKS - memo->walk_bytes &&
        kn_map_put(&memo->walks, shape->includes.data, shape->includes.length, row, &old)) {
        memo->walk_bytes += size;
        row = NULL;
    }
    kn_mutex_unlock(&memo->lock);
    destroy_walk(row);
    destroy_walk((walk_row *)old);
}
