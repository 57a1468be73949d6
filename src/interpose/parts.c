/* See parts.h. */
#include "interpose/parts.h"

#include "base/checked.h"

enum { PART_HEADER = 16 };

void kn_parts_append(kn_strbuf *out, uint32_t part, uint32_t code, kn_span bytes)
{
    unsigned char header[PART_HEADER];
    kn_put_u32(header, part);
    kn_put_u32(header + 4, code);
    kn_put_u64(header + 8, bytes.length);
    kn_strbuf_append(out, header, sizeof(header));
    kn_strbuf_append(out, bytes.data, bytes.length);
}

bool kn_parts_next(kn_span *rest, uint32_t *out_part, uint32_t *out_code, kn_span *out_bytes)
{
    if (rest->length < PART_HEADER ||
        kn_get_u64(rest->data + 8) > (uint64_t)(rest->length - PART_HEADER)) {
        return false;
    }
    *out_part = kn_get_u32(rest->data);
    *out_code = kn_get_u32(rest->data + 4);
    *out_bytes = kn_span_of(rest->data + PART_HEADER, (size_t)kn_get_u64(rest->data + 8));
    const size_t used = PART_HEADER + out_bytes->length;
    *rest = kn_span_of(rest->data + used, rest->length - used);
    return true;
}

bool kn_parts_are_whole(kn_span payload)
{
    uint32_t part = 0;
    uint32_t code = 0;
    kn_span bytes;
    while (kn_parts_next(&payload, &part, &code, &bytes)) {
    }
    return payload.length == 0;
}

bool kn_parts_get(kn_span payload, uint32_t part, uint32_t *out_code, kn_span *out_bytes)
{
    uint32_t found = 0;
    uint32_t code = 0;
    while (kn_parts_next(&payload, &found, &code, out_bytes)) {
        if (found == part) {
            if (out_code != NULL) {
                *out_code = code;
            }
            return true;
        }
    }
    *out_bytes = kn_span_of(NULL, 0);
    return false;
}
