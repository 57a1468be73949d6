/* Copying a source: counted first, then copied into one block. */
#include "core/build/source_copy.h"

#include <stdlib.h>
#include <string.h>

typedef struct block {
    char *base; /* NULL: only count */
    size_t used;
} block;

static void *put_bytes(block *b, const void *data, size_t size)
{
    char *to = b->base != NULL ? b->base + b->used : NULL;
    if (to != NULL && size > 0) {
        memcpy(to, data, size);
    }
    b->used += (size + 15) / 16 * 16;
    return to;
}

static void *put_list(block *b, const void *list, size_t size)
{
    return list != NULL ? put_bytes(b, list, size) : NULL;
}

static char *put_text(block *b, const char *text)
{
    return text != NULL ? (char *)put_bytes(b, text, strlen(text) + 1) : NULL;
}

static const char *const *put_texts(block *b, const char *const *texts, size_t count)
{
    if (texts == NULL) {
        return NULL; /* with a count: the build refuses it */
    }
    const char **list = (const char **)put_bytes(b, texts, count * sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        const char *text = put_text(b, texts[i]);
        if (list != NULL) {
            list[i] = text;
        }
    }
    return list;
}

static kiln_source put_source(block *b, const kiln_source *from, bool with_text)
{
    kiln_source to = *from;
    to.text = NULL;
    to.length = 0;
    if (with_text && from->text != NULL) {
        to.text = put_bytes(b, from->text, from->length);
        (void)put_bytes(b, "", 1); /* a NUL follows it: what is rounded up to is zeroed */
        to.length = from->length;
    }
    to.name = put_text(b, from->name);
    to.options = put_texts(b, from->options, from->option_count);
    to.include_dirs = put_texts(b, from->include_dirs, from->include_dir_count);
    to.entries = put_texts(b, from->entries, from->entry_count);
    kiln_define *defines =
        (kiln_define *)put_list(b, from->defines, from->define_count * sizeof(kiln_define));
    for (size_t i = 0; from->defines != NULL && i < from->define_count; i++) {
        kiln_define define = {put_text(b, from->defines[i].name),
                              put_text(b, from->defines[i].value)};
        if (defines != NULL) {
            defines[i] = define;
        }
    }
    to.defines = defines;
    kiln_header *headers =
        (kiln_header *)put_list(b, from->headers, from->header_count * sizeof(kiln_header));
    for (size_t i = 0; from->headers != NULL && i < from->header_count; i++) {
        const kiln_header *header = &from->headers[i];
        kiln_header copy = {put_text(b, header->name),
                            (const char *)put_list(b, header->text, header->length),
                            header->length};
        if (headers != NULL) {
            headers[i] = copy;
        }
    }
    to.headers = headers;
    to.builtin = (const struct kiln_cpu_kernel *const *)put_list(
        b, from->builtin, from->builtin_count * sizeof(from->builtin[0]));
    return to;
}

bool kn_source_copy_init(kn_source_copy *copy, const kiln_source *source, bool with_text)
{
    block counted = {NULL, 0};
    (void)put_source(&counted, source, with_text);
    memset(copy, 0, sizeof(*copy));
    copy->block = (char *)calloc(1, counted.used > 0 ? counted.used : 1);
    if (copy->block == NULL) {
        return false;
    }
    block filled = {copy->block, 0};
    copy->source = put_source(&filled, source, with_text);
    return true;
}

void kn_source_copy_deinit(kn_source_copy *copy)
{
    free(copy->block);
    memset(copy, 0, sizeof(*copy));
}
