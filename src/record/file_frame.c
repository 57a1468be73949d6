/* The header of a recording's files: docs/reference/formats.md, "Recording". */
#include "record/file_frame.h"

#include <string.h>

#include "base/checked.h"
#include "store/format/checksum.h"

/* As an entry's: not ASCII, a line end of either kind, an end-of-file. */
static const unsigned char magic[8] = {0x89, 'K', 'R', 'C', '\r', '\n', 0x1a, '\n'};

enum {
    AT_CHECKSUM = 8,
    AT_VERSION = 24, /* from here on everything is under the checksum */
    AT_KIND = 28,
};

void kn_frame_seal_as(void *bytes, size_t size, kn_frame_kind kind, uint32_t version)
{
    char *header = (char *)bytes;
    memcpy(header, magic, sizeof magic);
    kn_put_u32(header + AT_VERSION, version);
    kn_put_u32(header + AT_KIND, (uint32_t)kind);
    const kn_span covered = kn_span_of(header + AT_VERSION, size - AT_VERSION);
    kn_checksum(&covered, 1, (unsigned char *)header + AT_CHECKSUM);
}

void kn_frame_seal(void *bytes, size_t size, kn_frame_kind kind)
{
    kn_frame_seal_as(bytes, size, kind, KN_FRAME_VERSION);
}

kiln_status kn_frame_corrupt(kn_frame_kind kind, const char *why, kiln_diag *diag)
{
    static const char *const what[] = {"reading a recording", "reading a recorded text",
                                       "reading a recorded program", "reading a recorded use"};
    const size_t index = (size_t)kind < sizeof(what) / sizeof(what[0]) ? (size_t)kind : 0;
    (void)kiln_diag_set(diag, KILN_E_CORRUPT, NULL, what[index], "%s", why);
    return KILN_E_CORRUPT;
}

kiln_status kn_frame_open(kn_span bytes, kn_frame_kind kind, kn_span *out_body, kiln_diag *diag)
{
    unsigned char checksum[KN_CHECKSUM_SIZE];
    if (bytes.length < KN_FRAME_HEADER) {
        return kn_frame_corrupt(kind, "it is shorter than a header", diag);
    }
    if (memcmp(bytes.data, magic, sizeof magic) != 0) {
        return kn_frame_corrupt(kind, "it does not start with the magic of a recording", diag);
    }
    const kn_span covered = kn_span_of(bytes.data + AT_VERSION, bytes.length - AT_VERSION);
    kn_checksum(&covered, 1, checksum);
    if (memcmp(bytes.data + AT_CHECKSUM, checksum, sizeof checksum) != 0) {
        return kn_frame_corrupt(kind, "its checksum does not match", diag);
    }
    if (kn_get_u32(bytes.data + AT_VERSION) > KN_FRAME_VERSION) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "update kiln", "reading a recording",
                             "a newer kiln wrote a file of it");
    }
    if (kn_get_u32(bytes.data + AT_VERSION) != KN_FRAME_VERSION ||
        kn_get_u32(bytes.data + AT_KIND) != (uint32_t)kind) {
        return kn_frame_corrupt(kind, "it is another kind of file", diag);
    }
    *out_body = kn_span_of(bytes.data + KN_FRAME_HEADER, bytes.length - KN_FRAME_HEADER);
    return KILN_OK;
}
