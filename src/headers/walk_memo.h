/* The walks of this process, for sources that include the same headers in the same order and differ
 * in the rest: what the walk of one found is the header list of the next, after one look a place.
 *
 * Two sources have the same shape if they report the same includes in the same order, and their
 * searches have the same shape (kn_include_path_describe). Where a computed include was met, their
 * definitions must be the same, too. Sources with headers in memory have no shape. */
#ifndef KILN_HEADERS_WALK_MEMO_H
#define KILN_HEADERS_WALK_MEMO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "headers/include_path.h"
#include "headers/pieces.h"

typedef struct kn_walk_shape {
    kn_strbuf includes;    /* the map's key; empty: the source has no shape */
    kn_strbuf definitions; /* of the text and of the options */
    kn_pieces pieces;      /* of the text */
    bool names;            /* the text mentions the name of its file */
} kn_walk_shape;

/* What a walk leaves besides its header list. */
typedef struct kn_walk_facts {
    kn_pieces pieces; /* of the headers */
    bool names;       /* a header mentions the name of its file */
    bool computed;    /* some text has a computed include */
} kn_walk_facts;

typedef struct kn_walk_memo kn_walk_memo;

#define KN_WALK_MEMO_MAX_BYTES ((size_t)32 << 20) /* of header lists; later ones are not kept */

/* Scans the source of the request. The caller deinitialises the shape in every case. */
void kn_walk_shape_make(const kn_include_path *path, kn_walk_shape *out_shape);
void kn_walk_shape_deinit(kn_walk_shape *shape);
bool kn_walk_shape_exists(const kn_walk_shape *shape);

kn_walk_memo *kn_walk_memo_create(void); /* NULL when out of memory */
void kn_walk_memo_destroy(kn_walk_memo *memo);

/* All from any thread, also in a child of fork(2): nobody waits in them. NULL is a memo that holds
 * nothing. */

/* The header list of a walk of this shape, as bytes with stamps; the caller's reference. What it
 * says of names is set in *out_names for this source. False if there is none, or this source with
 * those headers cannot be followed. */
bool kn_walk_memo_find(kn_walk_memo *memo, const kn_walk_shape *shape, const kiln_source *source,
                       kiln_blob **out_blob, bool *out_names);
/* A list without a refusal; an earlier one of the shape is replaced. */
void kn_walk_memo_put(kn_walk_memo *memo, const kn_walk_shape *shape, const kn_walk_facts *facts,
                      const kn_header_list *list);

#endif
