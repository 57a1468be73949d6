/* What identifies a program file; see object.h. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "apis/cpu/backend/object.h"
#include "base/text.h"

enum { CHUNK = 1 << 20, READ_LIMIT = 64 << 20 };

/* Digest of the whole file, a piece at a time. */
static bool file_digest(kn_file *file, uint64_t size, char *id)
{
    XXH3_state_t *state = XXH3_createState();
    unsigned char *chunk = (unsigned char *)malloc(CHUNK);
    bool ok = state != NULL && chunk != NULL && XXH3_128bits_reset(state) == XXH_OK;
    for (uint64_t at = 0; ok && at < size;) {
        const size_t length = size - at < CHUNK ? (size_t)(size - at) : (size_t)CHUNK;
        ok = kn_file_read_at(file, at, chunk, length) == KILN_OK &&
             XXH3_128bits_update(state, chunk, length) == XXH_OK;
        at += length;
    }
    if (ok) {
        XXH128_canonical_t digest;
        XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(state));
        kn_hex_encode(digest.digest, sizeof(digest.digest), id);
    }
    free(chunk);
    (void)XXH3_freeState(state);
    return ok;
}

bool kn_cpu_object_identify(const char *path, char *id, size_t id_size, bool *out_dynamic)
{
    char text[136];
    kn_file *file = NULL;
    kn_file_facts facts;
    bool ok = false;

    *out_dynamic = false;
    char *resolved = kn_path_resolve(path);
    if (resolved == NULL || kn_file_stat(resolved, false, &facts, NULL) != KILN_OK ||
        facts.kind != KN_FILE_REGULAR || kn_file_open(resolved, false, &file, NULL) != KILN_OK) {
        free(resolved);
        return false;
    }
    free(resolved);
    if (kn_cpu_object_build_id(path, text, sizeof(text), out_dynamic)) {
        kn_text_putf(id, id_size, "build-id:%s:%llu", text, (unsigned long long)facts.size);
        ok = true;
    } else if (file_digest(file, facts.size, text)) {
        kn_text_putf(id, id_size, "xxh3:%s:%llu", text, (unsigned long long)facts.size);
        ok = true;
    }
    kn_file_close(file);
    return ok;
}

bool kn_cpu_object_begins(const char *path, const char *two)
{
    char first[2] = {0};
    kn_file *file = NULL;
    const bool opened = kn_file_open(path, false, &file, NULL) == KILN_OK;
    const bool begins = opened && kn_file_read_at(file, 0, first, sizeof(first)) == KILN_OK &&
                        memcmp(first, two, sizeof(first)) == 0;
    if (opened) {
        kn_file_close(file);
    }
    return begins;
}

bool kn_cpu_object_holds(const char *path, const char *text)
{
    const size_t length = strlen(text);
    void *data = NULL;
    size_t size = 0;
    bool found = false;
    if (kn_file_read(path, READ_LIMIT, false, &data, &size, NULL, NULL) != KILN_OK) {
        return false;
    }
    const char *at = (const char *)data, *end = at + size;
    while (!found && at != NULL && (size_t)(end - at) >= length) {
        at = (const char *)memchr(at, text[0], (size_t)(end - at) - length + 1);
        found = at != NULL && memcmp(at, text, length) == 0;
        at += at != NULL ? 1 : 0;
    }
    free(data);
    return found;
}
