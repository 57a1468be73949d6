/* Numbered parts in one piece: the payload of an entry that holds several outputs
 * (docs/reference/formats.md). */
#ifndef KILN_INTERPOSE_PARTS_H
#define KILN_INTERPOSE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "base/strbuf.h"

/* Appends one part. The caller asks kn_strbuf_ok. */
void kn_parts_append(kn_strbuf *out, uint32_t part, uint32_t code, kn_span bytes);

/* Takes the first part off; false at the end, and where the rest is not a part. The bytes are the
 * payload's. */
bool kn_parts_next(kn_span *rest, uint32_t *out_part, uint32_t *out_code, kn_span *out_bytes);

/* True if the payload is parts from its first byte to its last. */
bool kn_parts_are_whole(kn_span payload);

/* The first part of this number; false if there is none. The bytes are the payload's. `out_code`
 * may be NULL. */
bool kn_parts_get(kn_span payload, uint32_t part, uint32_t *out_code, kn_span *out_bytes);

#endif
