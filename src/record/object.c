/* Where the files of a recording lie, and how they come there. This file must not know what is in
 * them. */
#include "record/object.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "record/file_frame.h"
#include "store/format/unzip.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/publish.h"

enum {
    TEXT_ZSTD = 1u << 0, /* the text is one zstd frame */
    AT_SIZE = KN_FRAME_HEADER,
    AT_TEXT_FLAGS = KN_FRAME_HEADER + 8,
    TEXT_HEADER = KN_FRAME_HEADER + 16, /* with 4 bytes that are zero */
    SMALL = 128,                        /* a text that is not worth packing */
    LEVEL = 3,
};

static const char keeping[] = "recording a program"; /* what fails without memory */

char *kn_object_path(const char *root, const char *kind, const uint8_t digest[KN_DIGEST_SIZE])
{
    char name[2 * KN_DIGEST_SIZE + 1];
    kn_strbuf path;
    kn_hex_encode(digest, KN_DIGEST_SIZE, name);
    kn_strbuf_init(&path, 0);
    kn_strbuf_printf(&path, "%s/%s/%.2s/%s", root, kind, name, name);
    return kn_strbuf_detach(&path, NULL);
}

/* A file that is shorter than its header lost its bytes in a crash of the system. */
static bool is_there(const char *path)
{
    kn_file_facts facts;
    return kn_file_stat(path, false, &facts, NULL) == KILN_OK && facts.kind == KN_FILE_REGULAR &&
           facts.size > KN_FRAME_HEADER;
}

static kiln_status publish_file(const char *root, const char *path, kn_span bytes,
                                uint64_t *out_written, kiln_diag *diag)
{
    kn_publish publish;
    char *dir = kn_path_join(root, "tmp");
    kiln_status status = dir != NULL ? kn_publish_begin_unnamed(&publish, dir, path, diag)
                                     : kn_no_memory(diag, keeping);
    if (status == KILN_OK) {
        kn_publish_write(&publish, bytes.data, bytes.length);
        status = kn_publish_commit(&publish, false, diag);
    }
    if (status == KILN_OK) {
        *out_written = bytes.length;
    }
    free(dir);
    return status;
}

static kiln_status publish_missing(const char *root, const char *kind,
                                   const uint8_t digest[KN_DIGEST_SIZE], kn_span bytes,
                                   uint64_t *out_written, kiln_diag *diag)
{
    char *path = kn_object_path(root, kind, digest);
    kiln_status status = KILN_OK;
    *out_written = 0;
    if (path == NULL) {
        status = kn_no_memory(diag, keeping);
    } else if (!is_there(path)) {
        status = publish_file(root, path, bytes, out_written, diag);
    }
    free(path);
    return status;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* The file's bytes; NULL: no memory. */
static char *pack_text(const void *text, size_t length, size_t *out_size)
{
    const size_t bound = ZSTD_compressBound(length);
    const size_t room = TEXT_HEADER + (bound > length ? bound : length);
    char *bytes = (char *)calloc(1, room);
    if (bytes == NULL) {
        return NULL;
    }
    size_t packed =
        length > SMALL ? ZSTD_compress(bytes + TEXT_HEADER, bound, text, length, LEVEL) : length;
    const bool smaller = !ZSTD_isError(packed) && packed < length;
    if (!smaller) {
        packed = length;
        if (length > 0) {
            memcpy(bytes + TEXT_HEADER, text, length);
        }
    }
    kn_put_u64(bytes + AT_SIZE, length);
    kn_put_u32(bytes + AT_TEXT_FLAGS, smaller ? TEXT_ZSTD : 0u);
    *out_size = TEXT_HEADER + packed;
    kn_frame_seal(bytes, *out_size, KN_FRAME_TEXT);
    return bytes;
}

static kiln_status put_missing_text(const char *root, const char *path, const void *text,
                                    size_t length, uint64_t *out_written, kiln_diag *diag)
{
    size_t size = 0;
    char *bytes = pack_text(text, length, &size);
    kiln_status status = bytes != NULL
                             ? publish_file(root, path, kn_span_of(bytes, size), out_written, diag)
                             : kn_no_memory(diag, keeping);
    free(bytes);
    return status;
}

kiln_status kn_object_put(const char *root, const void *text, size_t length, kn_object *out_object,
                          uint64_t *out_written, kiln_diag *diag)
{
    *out_written = 0;
    out_object->size = length;
    if (length > KN_OBJECT_MAX) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, keeping,
                             "a text of it has %zu bytes; %zu are recorded at most", length,
                             KN_OBJECT_MAX);
    }
    if (!kn_digest_of(text, length, out_object->digest)) {
        return kn_no_memory(diag, keeping);
    }
    char *path = kn_object_path(root, "objects", out_object->digest);
    kiln_status status = path != NULL ? KILN_OK : kn_no_memory(diag, keeping);
    if (status == KILN_OK && !is_there(path)) {
        status = put_missing_text(root, path, text, length, out_written, diag);
    }
    free(path);
    return status;
}

static kiln_status unpack_text(kn_span bytes, const kn_object *object, char **out_text,
                               kiln_diag *diag)
{
    kn_span body;
    kiln_status status = kn_frame_open(bytes, KN_FRAME_TEXT, &body, diag);
    if (status != KILN_OK) {
        return status;
    }
    const size_t start = TEXT_HEADER - KN_FRAME_HEADER;
    if (body.length < start || kn_get_u64(body.data) != object->size ||
        object->size > KN_OBJECT_MAX) {
        return kn_frame_corrupt(KN_FRAME_TEXT, "it is not as long as the program says", diag);
    }
    const kn_span stored = kn_span_of(body.data + start, body.length - start);
    const size_t size = (size_t)object->size;
    char *text = (char *)calloc(1, size + 1);
    if (text == NULL) {
        return kn_no_memory(diag, "reading a recorded text");
    }
    if ((kn_get_u32(body.data + 8) & TEXT_ZSTD) != 0) {
        status = kn_unzip(stored, (kn_span){NULL, 0}, 0, text, size);
    } else if (stored.length == size) {
        memcpy(text, stored.data, size);
    } else {
        status = KILN_E_CORRUPT;
    }
    uint8_t digest[KN_DIGEST_SIZE];
    if (status == KILN_OK &&
        !(kn_digest_of(text, size, digest) && memcmp(digest, object->digest, sizeof digest) == 0)) {
        status = KILN_E_CORRUPT;
    }
    if (status != KILN_OK) {
        free(text);
        return status == KILN_E_NOMEM
                   ? kn_no_memory(diag, "reading a recorded text")
                   : kn_frame_corrupt(KN_FRAME_TEXT, "it is not the text that its name says", diag);
    }
    *out_text = text;
    return KILN_OK;
}

kiln_status kn_object_get(const char *root, const kn_object *object, char **out_text,
                          kiln_diag *diag)
{
    void *bytes = NULL;
    size_t size = 0;
    char *path = kn_object_path(root, "objects", object->digest);
    *out_text = NULL;
    kiln_status status = path != NULL ? kn_file_read(path, TEXT_HEADER + KN_OBJECT_MAX, true,
                                                     &bytes, &size, NULL, diag)
                                      : kn_no_memory(diag, "reading a recorded text");
    if (status == KILN_OK) {
        status = unpack_text(kn_span_of(bytes, size), object, out_text, diag);
    } else if (status == KILN_MISS) {
        (void)kiln_diag_set(diag, KILN_MISS, NULL, "reading a recorded text",
                            "the recording lacks it");
    }
    free(bytes);
    free(path);
    return status;
}

/* --- programs and uses ------------------------------------------------------------------------ */

static kiln_status refuse_long(kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, keeping,
                         "a list or a string of it is too long");
}

kiln_status kn_object_put_program(const char *root, const kn_recorded *program,
                                  uint8_t out_digest[KN_DIGEST_SIZE], uint64_t *out_written,
                                  kiln_diag *diag)
{
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, 0);
    *out_written = 0;
    kiln_status status = kn_recorded_encode(program, &bytes) ? KILN_OK : refuse_long(diag);
    if (status == KILN_OK && (!kn_strbuf_ok(&bytes) ||
                              !kn_digest_of(kn_strbuf_text(&bytes), bytes.length, out_digest))) {
        status = kn_no_memory(diag, keeping);
    }
    if (status == KILN_OK) {
        status =
            publish_missing(root, "programs", out_digest,
                            kn_span_of(kn_strbuf_text(&bytes), bytes.length), out_written, diag);
    }
    kn_strbuf_deinit(&bytes);
    return status;
}

kiln_status kn_object_put_use(const char *root, const kiln_key *key, const kn_recorded_use *use,
                              uint64_t *out_written, kiln_diag *diag)
{
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, 0);
    *out_written = 0;
    char *path = kn_object_path(root, "uses", key->bytes);
    kiln_status status = kn_recorded_use_encode(use, &bytes) ? KILN_OK : refuse_long(diag);
    if (status == KILN_OK && (path == NULL || !kn_strbuf_ok(&bytes))) {
        status = kn_no_memory(diag, keeping);
    }
    if (status == KILN_OK) {
        status = publish_file(root, path, kn_span_of(kn_strbuf_text(&bytes), bytes.length),
                              out_written, diag);
    }
    kn_strbuf_deinit(&bytes);
    free(path);
    return status;
}

bool kn_object_has_use(const char *root, const kiln_key *key, uint64_t *out_age_s)
{
    kn_file_facts facts;
    char *path = kn_object_path(root, "uses", key->bytes);
    const bool there = path != NULL && kn_file_stat(path, false, &facts, NULL) == KILN_OK &&
                       facts.size > KN_FRAME_HEADER;
    if (there && out_age_s != NULL) {
        const int64_t age = kn_clock_wall_roughly() - facts.mtime_ns;
        *out_age_s = age > 0 ? (uint64_t)age / 1000000000u : 0;
    }
    free(path);
    return there;
}

/* Two processes at once may count one day. */
static kiln_status count_day(const char *root, const kiln_key *key, const char *path)
{
    kn_recorded_use use;
    void *bytes = NULL;
    size_t size = 0;
    uint64_t written = 0;
    kiln_status status = kn_file_read(path, KN_OBJECT_USE_MAX, true, &bytes, &size, NULL, NULL);
    if (status == KILN_OK) {
        status = kn_recorded_use_decode(kn_span_of(bytes, size), &use, NULL);
    }
    if (status == KILN_OK) {
        use.days += use.days < UINT32_MAX ? 1 : 0;
        status = kn_object_put_use(root, key, &use, &written, NULL);
    }
    free(bytes);
    return status;
}

bool kn_object_stamp_use(const char *root, const kiln_key *key)
{
    char *path = kn_object_path(root, "uses", key->bytes);
    const bool stamped =
        path != NULL && (count_day(root, key, path) == KILN_OK || kn_file_touch(path) == KILN_OK);
    free(path);
    return stamped;
}
