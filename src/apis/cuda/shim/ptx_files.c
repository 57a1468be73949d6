/* See ptx_files.h. The table of lines is that of DWARF 2: a file's name with its NUL, then three
 * numbers of seven bits a byte (LEB128): directory, time, size. */
#include "apis/cuda/shim/ptx_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "sys/file.h"

enum { FILES_MAX = 1024, PLACE_SIZE = 12, TIME_BYTES = 5, NUMBER_MAX = 10 };
#define NANOSECONDS INT64_C(1000000000)

/* --- numbers of seven bits a byte ------------------------------------------------------------- */

static size_t encode_number(uint64_t value, unsigned char out[NUMBER_MAX])
{
    size_t length = 0;
    do {
        out[length] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        length++;
    } while (value > 0);
    return length;
}

/* --- directives ------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at)) {
        at++;
    }
    return at;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    return at;
}

static void look_at_file(kn_ptx_file *file)
{
    kn_file_facts facts;
    unsigned char bytes[NUMBER_MAX];
    file->there = kn_file_stat(file->path, true, &facts, NULL) == KILN_OK;
    file->time = file->there ? (uint64_t)(facts.mtime_ns / NANOSECONDS) : 0;
    file->size = file->there ? facts.size : 0;
    /* From 1978 to 3058 a time takes five bytes. Others are in the key. */
    file->loose = file->there && encode_number(file->time, bytes) == TIME_BYTES;
}

static bool add_file(kn_ptx_files *files, const char *path, size_t length)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strlen(files->items[i].path) == length &&
            memcmp(files->items[i].path, path, length) == 0) {
            return true;
        }
    }
    kn_ptx_file *grown =
        files->count < FILES_MAX
            ? (kn_ptx_file *)realloc(files->items, (files->count + 1) * sizeof(*grown))
            : NULL;
    if (grown == NULL) {
        return false;
    }
    files->items = grown;
    grown[files->count] = (kn_ptx_file){.path = kn_text_copy_n(path, length)};
    if (grown[files->count].path == NULL) {
        return false;
    }
    look_at_file(&grown[files->count++]);
    return true;
}

static const char *name_of_file(const kn_ptx_file *file)
{
    const char *slash = strrchr(file->path, '/');
    return slash != NULL ? slash + 1 : file->path;
}

/* Rows of files of one name and size cannot be distinguished: their times are in the key. */
static void pin_twins(kn_ptx_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        for (size_t j = 0; j < i; j++) {
            kn_ptx_file *a = &files->items[i];
            kn_ptx_file *b = &files->items[j];
            if (a->size == b->size && strcmp(name_of_file(a), name_of_file(b)) == 0) {
                a->loose = false;
                b->loose = false;
            }
        }
    }
}

/* `at` is after ".file": NUMBER "PATH" [, TIME, SIZE]. */
static bool take_directive(kn_ptx_files *files, const char *at, const char *end)
{
    const char *number = skip_blanks(at, end);
    at = skip_digits(number, end);
    const char *quote = skip_blanks(at, end);
    if (number == at || quote == at || quote >= end || *quote != '"') {
        return false;
    }
    const char *path = quote + 1;
    const char *stop = memchr(path, '"', (size_t)(end - path));
    if (stop == NULL || memchr(path, '\\', (size_t)(stop - path)) != NULL ||
        memchr(path, '\n', (size_t)(stop - path)) != NULL ||
        memchr(path, '\0', (size_t)(stop - path)) != NULL) {
        return false;
    }
    const char *after = skip_blanks(stop + 1, end);
    const bool has_time = after < end && *after == ',';
    return has_time || add_file(files, path, (size_t)(stop - path));
}

bool kn_ptx_files_find(kn_span text, kn_ptx_files *out_files)
{
    static const char word[] = ".file";
    const char *end = text.data + text.length;
    const char *at = text.data;
    memset(out_files, 0, sizeof(*out_files));
    while (at < end && (at = memmem(at, (size_t)(end - at), word, sizeof(word) - 1)) != NULL) {
        at += sizeof(word) - 1;
        if (at < end && is_blank(*at) && !take_directive(out_files, at, end)) {
            return false;
        }
        if (at < end && (*at == '\n' || *at == '\r' || *at == '/')) {
            return false; /* its operands are elsewhere */
        }
    }
    pin_twins(out_files);
    return true;
}

void kn_ptx_files_deinit(kn_ptx_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
    }
    free(files->items);
    memset(files, 0, sizeof(*files));
}

bool kn_ptx_files_hold(const kn_ptx_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        kn_ptx_file now = {.path = files->items[i].path};
        look_at_file(&now);
        if (now.there != files->items[i].there || now.time != files->items[i].time ||
            now.size != files->items[i].size) {
            return false;
        }
    }
    return true;
}

void kn_ptx_files_add_to(const kn_ptx_files *files, kiln_recipe *recipe)
{
    for (size_t i = 0; i < files->count; i++) {
        const kn_ptx_file *file = &files->items[i];
        kiln_recipe_add_u64(recipe, file->there ? "file.size" : "file.absent", file->size);
        if (file->there && !file->loose) {
            kiln_recipe_add_u64(recipe, "file.time", file->time);
        }
    }
}

/* --- times in a table of lines ---------------------------------------------------------------- */

/* Whether the five bytes at `at` stand for this file's time: NAME, NUL, directory before them, the
 * size after them. */
static bool is_row_of(const kn_ptx_file *file, kn_span code, size_t at)
{
    unsigned char size[NUMBER_MAX];
    const size_t length = encode_number(file->size, size);
    const char *name = name_of_file(file);
    const size_t before = strlen(name) + 2; /* the NUL, and a directory below 128 */
    return at >= before && at + TIME_BYTES + length <= code.length &&
           memcmp(code.data + at + TIME_BYTES, size, length) == 0 &&
           memcmp(code.data + at - before, name, strlen(name) + 1) == 0 &&
           (code.data[at - 1] & 0x80) == 0;
}

bool kn_ptx_files_locate_times(const kn_ptx_files *files, kn_span code, kn_strbuf *out_places)
{
    for (size_t i = 0; i < files->count; i++) {
        unsigned char time[NUMBER_MAX];
        const size_t length = encode_number(files->items[i].time, time);
        const char *at = code.data;
        const char *end = code.data + code.length;
        while (files->items[i].loose &&
               (at = memmem(at, (size_t)(end - at), time, length)) != NULL) {
            const size_t offset = (size_t)(at - code.data);
            bool known = false;
            for (size_t j = 0; j < files->count && !known; j++) {
                known = files->items[j].there && files->items[j].time == files->items[i].time &&
                        is_row_of(&files->items[j], code, offset);
            }
            if (!known) {
                return false;
            }
            if (is_row_of(&files->items[i], code, offset)) {
                unsigned char place[PLACE_SIZE];
                kn_put_u32(place, (uint32_t)i);
                kn_put_u64(place + 4, offset);
                kn_strbuf_append(out_places, place, sizeof(place));
            }
            at += length;
        }
    }
    return kn_strbuf_ok(out_places);
}

bool kn_ptx_files_set_times(const kn_ptx_files *files, kn_span places, char *code, size_t length)
{
    bool set = places.length % PLACE_SIZE == 0;
    for (size_t at = 0; set && at < places.length; at += PLACE_SIZE) {
        unsigned char time[NUMBER_MAX] = {0};
        const uint32_t file = kn_get_u32(places.data + at);
        const uint64_t offset = kn_get_u64(places.data + at + 4);
        set = file < files->count && files->items[file].loose && offset <= length &&
              length - (size_t)offset >= TIME_BYTES;
        if (set) {
            const size_t size = encode_number(files->items[file].time, time);
            memcpy(code + offset, time, size);
        }
    }
    return set;
}
