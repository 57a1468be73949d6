/* The headers that this process has read, for sources that share them: the digest of each, with
 * which a list of another machine is compared, and what a scan of it reported, so that following
 * the includes of the next source reads none of them again. What is kept is believed as a header
 * list's stamp is (kn_stamp_holds): a file that looks otherwise, or was young when it was read, is
 * read again. */
#ifndef KILN_HEADERS_HEADER_MEMO_H
#define KILN_HEADERS_HEADER_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/cache.h"
#include "kiln/source.h"

#include "headers/header_list.h"
#include "headers/scan_record.h"

typedef struct kn_header_memo kn_header_memo;
struct kn_walk_shape;
struct kn_walk_facts;

#define KN_HEADER_MEMO_MAX 65536u                   /* files; later ones are read each time */
#define KN_HEADER_MEMO_MAX_BYTES ((size_t)64 << 20) /* of what scans reported */
#define KN_HEADER_MEMO_MAX_WALKS ((size_t)32 << 20) /* bytes of header lists */

/* NULL when out of memory. */
kn_header_memo *kn_header_memo_create(void);
void kn_header_memo_destroy(kn_header_memo *memo); /* NULL is allowed */

/* All from any thread, also in a child of fork(2): nobody waits in them, and what another thread
 * is busy with is not found, and not kept. NULL is a memo that holds nothing. */
bool kn_header_memo_find(kn_header_memo *memo, const kn_stamp *now, uint8_t out_digest[32]);
bool kn_header_memo_is_empty(kn_header_memo *memo); /* or busy */
/* `read_ns`: the wall clock before the file was read. */
void kn_header_memo_put(kn_header_memo *memo, const kn_stamp *stamp, int64_t read_ns,
                        const uint8_t digest[32]);

/* The same with what a scan reported. The record is the memo's, and there until the memo is
 * destroyed. */
bool kn_header_memo_find_scan(kn_header_memo *memo, const kn_stamp *now, bool raw_strings,
                              uint8_t out_digest[32], const kn_scan_record **out_record);
/* Takes `record` over, in every case. */
void kn_header_memo_put_scan(kn_header_memo *memo, const kn_stamp *stamp, int64_t read_ns,
                             const uint8_t digest[32], kn_scan_record *record);

/* The walks of this process, for sources that include the same headers in the same order and differ
 * in the rest: what the walk of one found is the header list of the next, after one look a place.
 *
 * The header list of a walk of this shape, as bytes with stamps; the caller's reference. What it
 * says of names is set in *out_names for this source. False if there is none, or this source with
 * those headers cannot be followed. */
bool kn_header_memo_find_walk(kn_header_memo *memo, const struct kn_walk_shape *shape,
                              const kiln_source *source, kiln_blob **out_blob, bool *out_names);
/* A list without a refusal; an earlier one of the shape is replaced. */
void kn_header_memo_put_walk(kn_header_memo *memo, const struct kn_walk_shape *shape,
                             const struct kn_walk_facts *facts, const kn_header_list *list);

#endif
