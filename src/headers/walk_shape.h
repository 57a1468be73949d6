/* What two sources have in common whose walks find the same.
 *
 * Two sources have the same shape if they report the same includes in the same order, and their
 * searches have the same shape (kn_include_path_describe). Where a computed include was met, their
 * definitions must be the same, too. Sources with headers in memory have no shape. */
#ifndef KILN_HEADERS_WALK_SHAPE_H
#define KILN_HEADERS_WALK_SHAPE_H

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

/* Scans the source of the request. The caller deinitialises the shape in every case. */
void kn_walk_shape_make(const kn_include_path *path, kn_walk_shape *out_shape);
void kn_walk_shape_deinit(kn_walk_shape *shape);

#endif
