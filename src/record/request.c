/* Programs and uses as bytes: formats.md, "Recording". Whatever the bytes are, reading them
 * ends, in bounds: each length and each count is compared with what is left before it is used. */
#include "record/request.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/names.h"

#include "base/checked.h"
#include "base/diag.h"
#include "record/file_frame.h"

#define NO_STRING UINT32_MAX
#define STRING_MAX ((size_t)16 << 20)
#define LIST_MAX ((size_t)1 << 20)

const char *kn_recorded_frontend_name(kn_recorded_frontend frontend)
{
    switch (frontend) {
#define KN_FRONTEND(id, number, name)                                                              \
    case KN_FRONTEND_##id:                                                                         \
        return name;
#include "record/frontends.def"
#undef KN_FRONTEND
    }
    return NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void append_u32(kn_strbuf *out, size_t value)
{
    unsigned char bytes[4];
    kn_put_u32(bytes, (uint32_t)value);
    kn_strbuf_append(out, bytes, sizeof bytes);
}

static void append_u64(kn_strbuf *out, uint64_t value)
{
    unsigned char bytes[8];
    kn_put_u64(bytes, value);
    kn_strbuf_append(out, bytes, sizeof bytes);
}

/* With its NUL, so that a reader can use it where it lies. */
static bool append_string(kn_strbuf *out, const char *text)
{
    if (text == NULL) {
        append_u32(out, NO_STRING);
        return true;
    }
    const size_t length = strlen(text);
    append_u32(out, length);
    kn_strbuf_append(out, text, length + 1);
    return length <= STRING_MAX;
}

static bool append_count(kn_strbuf *out, size_t count)
{
    append_u32(out, count);
    return count <= LIST_MAX;
}

static bool append_strings(kn_strbuf *out, const char *const *list, size_t count)
{
    bool good = append_count(out, count);
    for (size_t i = 0; good && i < count; i++) {
        good = list[i] != NULL && append_string(out, list[i]);
    }
    return good;
}

static void append_object(kn_strbuf *out, const kn_object *object)
{
    kn_strbuf_append(out, object->digest, sizeof object->digest);
    append_u64(out, object->size);
}

static bool append_texts(kn_strbuf *out, const kn_recorded *program)
{
    bool good = append_count(out, program->text_count);
    for (size_t i = 0; good && i < program->text_count; i++) {
        const kn_recorded_text *text = &program->texts[i];
        append_object(out, &text->text);
        good = text->options != NULL && append_string(out, text->options) &&
               append_count(out, text->header_count);
        for (size_t k = 0; good && k < text->header_count; k++) {
            good = text->headers[k].name != NULL && append_string(out, text->headers[k].name);
            append_object(out, &text->headers[k].text);
        }
    }
    return good;
}

static bool append_defines(kn_strbuf *out, const kn_recorded *program)
{
    bool good = append_count(out, program->define_count);
    for (size_t i = 0; good && i < program->define_count; i++) {
        const kiln_define *define = &program->defines[i];
        good = define->name != NULL && append_string(out, define->name) &&
               append_string(out, define->value);
    }
    return good;
}

static bool append_files(kn_strbuf *out, const kn_recorded *program)
{
    bool good = append_count(out, program->file_count);
    for (size_t i = 0; good && i < program->file_count; i++) {
        const kn_recorded_file *file = &program->files[i];
        good = file->path != NULL && append_string(out, file->path);
        append_object(out, &file->content);
        append_u32(out, file->system);
    }
    return good;
}

/* Puts a header before what `append` adds, or takes all of it away. */
static bool seal_from(kn_strbuf *out, size_t start, bool good, kn_frame_kind kind)
{
    if (!good && kn_strbuf_ok(out)) {
        out->length = start;
        out->data[start] = '\0';
    } else if (kn_strbuf_ok(out)) {
        kn_frame_seal(out->data + start, out->length - start, kind);
    }
    return good;
}

static size_t begin_frame(kn_strbuf *out)
{
    static const char room[KN_FRAME_HEADER];
    const size_t start = out->length;
    kn_strbuf_append(out, room, sizeof room);
    return start;
}

bool kn_recorded_encode(const kn_recorded *program, kn_strbuf *out)
{
    const size_t start = begin_frame(out);
    append_u32(out, program->frontend);
    append_u32(out, program->flags);
    const bool good = program->dir != NULL && program->link_options != NULL &&
                      append_string(out, kiln_language_name(program->language)) &&
                      append_string(out, program->name) && append_string(out, program->dir) &&
                      append_texts(out, program) && append_defines(out, program) &&
                      append_strings(out, program->options, program->option_count) &&
                      append_strings(out, program->include_dirs, program->include_dir_count) &&
                      append_strings(out, program->entries, program->entry_count) &&
                      append_string(out, program->link_options) && append_files(out, program);
    return seal_from(out, start, good, KN_FRAME_PROGRAM);
}

bool kn_recorded_use_encode(const kn_recorded_use *use, kn_strbuf *out)
{
    const size_t start = begin_frame(out);
    kn_strbuf_append(out, use->program, sizeof use->program);
    append_u64(out, (uint64_t)use->first_ns);
    append_u64(out, use->compile_ns);
    const bool good = use->target != NULL && append_string(out, use->target);
    if (use->days > 1) {
        append_u32(out, use->days); /* the first kilns to record wrote none */
    }
    return seal_from(out, start, good, KN_FRAME_USE);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The first thing that is wrong sticks; after it, reading gives zeros. */
typedef struct reader {
    kn_span rest;
    const char *why; /* NULL: nothing is wrong */
    bool no_memory;
} reader;

static const char *take_bytes(reader *from, size_t size)
{
    const char *at = from->rest.data;
    if (from->why != NULL || from->rest.length < size) {
        from->why = from->why != NULL ? from->why : "it ends in the middle of a field";
        return NULL;
    }
    from->rest = kn_span_of(at + size, from->rest.length - size);
    return at;
}

static uint32_t take_u32(reader *from)
{
    const char *at = take_bytes(from, 4);
    return at != NULL ? kn_get_u32(at) : 0;
}

static uint64_t take_u64(reader *from)
{
    const char *at = take_bytes(from, 8);
    return at != NULL ? kn_get_u64(at) : 0;
}

/* NULL, too, where it may be missing. */
static const char *take_string_or_none(reader *from)
{
    const uint32_t length = take_u32(from);
    if (length == NO_STRING) {
        return NULL;
    }
    const char *at = take_bytes(from, (size_t)length + 1);
    if (at != NULL && memchr(at, '\0', (size_t)length + 1) != at + length) {
        from->why = "a string does not end where it says";
        return NULL;
    }
    return at;
}

static const char *take_string(reader *from)
{
    const char *text = take_string_or_none(from);
    if (text == NULL && from->why == NULL) {
        from->why = "a string is missing";
    }
    return text;
}

static void take_digest(reader *from, uint8_t out[KN_DIGEST_SIZE])
{
    const char *at = take_bytes(from, KN_DIGEST_SIZE);
    if (at != NULL) {
        memcpy(out, at, KN_DIGEST_SIZE);
    }
}

static void take_object(reader *from, kn_object *object)
{
    take_digest(from, object->digest);
    object->size = take_u64(from);
}

/* Room for as many as there are; `least` is the smallest number of bytes that one takes. */
static void *take_list(reader *from, size_t least, size_t size, size_t *out_count)
{
    const size_t count = take_u32(from);
    *out_count = 0;
    if (from->why == NULL && count > from->rest.length / least) {
        from->why = "a list is longer than the file";
    }
    void *list = from->why == NULL ? calloc(count + 1, size) : NULL;
    if (list != NULL) {
        *out_count = count;
    } else if (from->why == NULL) {
        from->no_memory = true;
        from->why = "out of memory";
    }
    return list;
}

static const char *const *take_strings(reader *from, size_t *out_count)
{
    const char **list = (const char **)take_list(from, 5, sizeof(*list), out_count);
    for (size_t i = 0; i < *out_count; i++) {
        list[i] = take_string(from);
    }
    return list;
}

static void take_headers(reader *from, kn_recorded_text *text)
{
    kn_recorded_header *headers =
        (kn_recorded_header *)take_list(from, 45, sizeof(*headers), &text->header_count);
    text->headers = headers;
    for (size_t i = 0; i < text->header_count; i++) {
        headers[i].name = take_string(from);
        take_object(from, &headers[i].text);
    }
}

static void take_texts(reader *from, kn_recorded *program)
{
    kn_recorded_text *texts =
        (kn_recorded_text *)take_list(from, 49, sizeof(*texts), &program->text_count);
    program->texts = texts;
    for (size_t i = 0; i < program->text_count; i++) {
        take_object(from, &texts[i].text);
        texts[i].options = take_string(from);
        take_headers(from, &texts[i]);
    }
}

static void take_defines(reader *from, kn_recorded *program)
{
    kiln_define *defines =
        (kiln_define *)take_list(from, 9, sizeof(*defines), &program->define_count);
    program->defines = defines;
    for (size_t i = 0; i < program->define_count; i++) {
        defines[i].name = take_string(from);
        defines[i].value = take_string_or_none(from);
    }
}

static void take_files(reader *from, kn_recorded *program)
{
    kn_recorded_file *files =
        (kn_recorded_file *)take_list(from, 49, sizeof(*files), &program->file_count);
    program->files = files;
    for (size_t i = 0; i < program->file_count; i++) {
        files[i].path = take_string(from);
        take_object(from, &files[i].content);
        files[i].system = take_u32(from) != 0;
    }
}

static void take_head(reader *from, kn_recorded *program)
{
    const uint32_t frontend = take_u32(from);
    program->flags = take_u32(from);
    const char *language = take_string(from);
    if (from->why != NULL) {
        return;
    }
    program->language = kiln_language_parse(language);
    program->frontend = (kn_recorded_frontend)frontend;
    if (kn_recorded_frontend_name(program->frontend) == NULL) {
        from->why = "it was recorded by a frontend that this kiln does not know";
    } else if (program->language == KILN_LANG_NONE) {
        from->why = "it is in a language that this kiln does not know";
    }
}

static void take_program(reader *from, kn_recorded *program)
{
    take_head(from, program);
    program->name = take_string_or_none(from);
    program->dir = take_string(from);
    take_texts(from, program);
    take_defines(from, program);
    program->options = take_strings(from, &program->option_count);
    program->include_dirs = take_strings(from, &program->include_dir_count);
    program->entries = take_strings(from, &program->entry_count);
    program->link_options = take_string(from);
    take_files(from, program);
    if (from->why == NULL && program->text_count == 0) {
        from->why = "it has no text";
    }
    if (from->why == NULL && program->frontend != KN_FRONTEND_OPENCL && program->text_count > 1) {
        from->why = "it has several texts";
    }
}

static kiln_status end_reading(const reader *from, kn_frame_kind kind, kiln_diag *diag)
{
    if (from->no_memory) {
        return kn_no_memory(diag, "reading a recording");
    }
    if (from->why != NULL) {
        return kn_frame_corrupt(kind, from->why, diag);
    }
    return from->rest.length == 0 ? KILN_OK : kn_frame_corrupt(kind, "it is too long", diag);
}

kiln_status kn_recorded_decode(kn_span bytes, kn_recorded *out_program, kiln_diag *diag)
{
    reader from = {.why = NULL};
    *out_program = KN_RECORDED_INIT;
    kiln_status status = kn_frame_open(bytes, KN_FRAME_PROGRAM, &from.rest, diag);
    if (status == KILN_OK) {
        take_program(&from, out_program);
        status = end_reading(&from, KN_FRAME_PROGRAM, diag);
    }
    if (status != KILN_OK) {
        kn_recorded_deinit(out_program);
    }
    return status;
}

void kn_recorded_deinit(kn_recorded *program)
{
    for (size_t i = 0; program->texts != NULL && i < program->text_count; i++) {
        free((void *)(uintptr_t)program->texts[i].headers);
    }
    free((void *)(uintptr_t)program->texts);
    free((void *)(uintptr_t)program->defines);
    free((void *)(uintptr_t)program->options);
    free((void *)(uintptr_t)program->include_dirs);
    free((void *)(uintptr_t)program->entries);
    free((void *)(uintptr_t)program->files);
    *program = KN_RECORDED_INIT;
}

kiln_status kn_recorded_use_decode(kn_span bytes, kn_recorded_use *out_use, kiln_diag *diag)
{
    reader from = {.why = NULL};
    *out_use = (kn_recorded_use){.target = ""};
    kiln_status status = kn_frame_open(bytes, KN_FRAME_USE, &from.rest, diag);
    if (status == KILN_OK) {
        take_digest(&from, out_use->program);
        out_use->first_ns = (int64_t)take_u64(&from);
        out_use->compile_ns = take_u64(&from);
        out_use->target = take_string(&from);
        out_use->days = from.why == NULL && from.rest.length > 0 ? take_u32(&from) : 1;
        status = end_reading(&from, KN_FRAME_USE, diag);
    }
    return status;
}
