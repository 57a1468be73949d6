/* The entry file: one cached result with everything that is known about it. formats.md has it
 * byte by byte; tests/golden holds files that must be readable for ever.
 *
 * The parser takes bytes of any origin: it checks every length against the bytes that are there
 * before it uses one, and accepts nothing whose checksum does not match. */
#ifndef KILN_STORE_ENTRY_H
#define KILN_STORE_ENTRY_H

#include "kiln/cache.h"

#include "base/span.h"

#define KN_ENTRY_VERSION 1u
#define KN_ENTRY_HEADER 128u
/* Larger ones are never stored, and claims of more are damage. */
#define KN_ENTRY_LIMIT ((size_t)1 << 30)

enum { KN_ENTRY_ZSTD = 1u << 0 }; /* the payload is one zstd frame */

/* What is in an entry; the spans borrow from the bytes that were parsed. */
typedef struct kn_entry {
    kiln_key key;
    uint32_t flags;
    uint64_t compile_ns;
    int64_t created_ns;
    char writer[17]; /* kiln's version */
    kn_span payload; /* as stored */
    uint64_t payload_size;
    kn_span facts;
    kn_span recipe;
    uint64_t until; /* set by who takes it from a stranger: unpacking ends then (kn_unzip) */
} kn_entry;

/* Verifies `bytes` whole. `key` NULL: of any key. KILN_E_CORRUPT with the reason. */
kiln_status kn_entry_parse(kn_span bytes, const kiln_key *key, kn_entry *out_entry,
                           kiln_diag *diag);

/* Whether a file of this size that begins with these KN_ENTRY_HEADER bytes can be an entry: nobody
 * reads a large one to its end to find out that it is not. */
bool kn_entry_may_begin(const void *header, uint64_t size);

/* What a blob of it takes in memory. */
uint64_t kn_entry_unpacked(const kn_entry *entry);

/* Makes a blob of a parsed entry, unpacking its payload. `memory` is the malloc'ed memory that
 * entry was parsed in, `memory_size` long; it is taken over (freed or kept) in every case.
 * KILN_E_CORRUPT if the payload cannot be unpacked, KILN_E_NOMEM, KILN_E_TIMEOUT (`until`). */
kiln_status kn_entry_load(void *memory, size_t memory_size, const kn_entry *entry,
                          kiln_blob **out_blob, kiln_diag *diag);

/* The same for memory whose first KN_BLOB_ROOM bytes are free: an entry that is not packed becomes
 * a blob where it lies. */
kiln_status kn_entry_load_in(void *memory, size_t memory_size, const kn_entry *entry,
                             kiln_blob **out_blob, kiln_diag *diag);

/* An entry to be written: three parts, in this order. They borrow from blob and recipe. */
typedef struct kn_entry_parts {
    unsigned char header[KN_ENTRY_HEADER];
    kn_span body;
    kn_span recipe;
    void *packed; /* memory of a compressed body, or NULL */
} kn_entry_parts;

typedef struct kn_entry_request {
    const kiln_key *key;
    kn_span recipe;
    const kiln_blob *blob;
    int64_t created_ns;
    const char *writer; /* NULL: this version of kiln */
    bool compress;      /* where it saves at least an eighth */
} kn_entry_request;

/* KILN_E_INVALID when it would be larger than KN_ENTRY_LIMIT, KILN_E_NOMEM. */
kiln_status kn_entry_write(const kn_entry_request *request, kn_entry_parts *out_parts,
                           kiln_diag *diag);
/* The same in one piece, malloc'ed, with `spare` bytes of room after it. */
kiln_status kn_entry_bytes(const kn_entry_request *request, size_t spare, void **out_data,
                           size_t *out_size, kiln_diag *diag);
size_t kn_entry_parts_size(const kn_entry_parts *parts);
void kn_entry_parts_deinit(kn_entry_parts *parts);

#endif
