/* See container.h. Layout: magic (8), head, text size, names size, open dimensions, count (u32
 * each), count times {local x, y, z, format, offset, size (u32 each)}, text, names with a NUL at
 * their ends, then the binaries, each at a multiple of 16 bytes. */
#include "apis/opengl/backend/container.h"

#include <string.h>

#include "base/checked.h"

static const char magic[8] = {'K', 'N', 'G', 'L', 0x1a, '\n', 0, 1};

enum { FIXED = 8 + 5 * 4, ROW = 6 * 4, ALIGN = 16 };

static void put_u32(kn_strbuf *out, size_t value)
{
    char bytes[4];
    kn_put_u32(bytes, (uint32_t)value);
    kn_strbuf_append(out, bytes, sizeof(bytes));
}

static size_t aligned_offset(size_t at)
{
    return (at + ALIGN - 1) / ALIGN * ALIGN;
}

void kn_gl_container_write(const kn_gl_container *container, kn_strbuf *out)
{
    const size_t start = out->length;
    size_t at = FIXED + container->part_count * ROW + container->text_size + container->names_size;
    kn_strbuf_append(out, magic, sizeof(magic));
    put_u32(out, container->head);
    put_u32(out, container->text_size);
    put_u32(out, container->names_size);
    put_u32(out, (size_t)container->local_open[0] | (size_t)container->local_open[1] << 1 |
                     (size_t)container->local_open[2] << 2);
    put_u32(out, container->part_count);
    for (size_t i = 0; i < container->part_count; i++) {
        const kn_gl_part *part = &container->parts[i];
        at = aligned_offset(at);
        put_u32(out, part->local[0]);
        put_u32(out, part->local[1]);
        put_u32(out, part->local[2]);
        put_u32(out, part->format);
        put_u32(out, at);
        put_u32(out, part->size);
        at += part->size;
    }
    kn_strbuf_append(out, container->text, container->text_size);
    kn_strbuf_append(out, container->names, container->names_size);
    for (size_t i = 0; i < container->part_count; i++) {
        while ((out->length - start) % ALIGN != 0 && kn_strbuf_ok(out)) {
            kn_strbuf_append_char(out, '\0');
        }
        kn_strbuf_append(out, container->parts[i].data, container->parts[i].size);
    }
}

static bool read_part(const unsigned char *bytes, size_t size, size_t row, size_t after,
                      kn_gl_part *out)
{
    for (size_t i = 0; i < 3; i++) {
        out->local[i] = kn_get_u32(bytes + row + 4 * i);
    }
    const size_t offset = kn_get_u32(bytes + row + 16);
    out->format = kn_get_u32(bytes + row + 12);
    out->size = kn_get_u32(bytes + row + 20);
    if (offset < after || offset > size || out->size == 0 || out->size > size - offset) {
        return false;
    }
    out->data = bytes + offset;
    return true;
}

bool kn_gl_container_read(const void *data, size_t size, kn_gl_container *out_container)
{
    const unsigned char *bytes = (const unsigned char *)data;
    memset(out_container, 0, sizeof(*out_container));
    if (size < FIXED || size > UINT32_MAX || memcmp(bytes, magic, sizeof(magic)) != 0) {
        return false;
    }
    const size_t head = kn_get_u32(bytes + 8);
    const size_t text_size = kn_get_u32(bytes + 12);
    const size_t names_size = kn_get_u32(bytes + 16);
    const uint32_t open = kn_get_u32(bytes + 20);
    const size_t count = kn_get_u32(bytes + 24);
    if (count > KN_GL_MAX_VARIANTS || open > 7 || size - FIXED < count * ROW) {
        return false;
    }
    const size_t text_at = FIXED + count * ROW;
    if (text_size > size - text_at || names_size > size - text_at - text_size || head > text_size ||
        names_size == 0 || bytes[text_at + text_size + names_size - 1] != '\0') {
        return false;
    }
    out_container->head = head;
    out_container->text = (const char *)bytes + text_at;
    out_container->text_size = text_size;
    out_container->names = (const char *)bytes + text_at + text_size;
    out_container->names_size = names_size;
    for (uint32_t i = 0; i < 3; i++) {
        out_container->local_open[i] = (open >> i & 1U) != 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_part(bytes, size, FIXED + i * ROW, text_at + text_size + names_size,
                       &out_container->parts[i])) {
            return false;
        }
    }
    out_container->part_count = count;
    return true;
}
