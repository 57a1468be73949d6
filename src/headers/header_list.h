/* A header list: what following the includes of one source found, in a form that the next start can
 * check with a stat a place. docs/reference/formats.md, section "Header list", has its bytes.
 *
 * A place is where a header was looked for, written without an absolute path: relative to the
 * source's directory, to the n-th include dir, to the n-th system dir. So a header list outlives a
 * move of the tree. This file opens nothing; closure.c does. */
#ifndef KILN_HEADERS_HEADER_LIST_H
#define KILN_HEADERS_HEADER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/stages.h"
#include "base/strbuf.h"
#include "kiln/status.h"
#include "sys/file.h"

/* Raised with the bytes, and when a scan finds more or stops where it went on: a source whose list
 * holds is not scanned again. */
#define KN_MANIFEST_VERSION ((uint32_t)KN_REVISION_headers)
_Static_assert(KN_REVISION_headers == KN_REVISION_kiln_manifest, "one format");
#define KN_MANIFEST_MAX_ROWS 500000u

typedef enum kn_place_base {
    KN_PLACE_MEMORY = 0,   /* a header in memory; index 0 */
    KN_PLACE_DIR = 1,      /* the source's own directory; index 0 */
    KN_PLACE_INCLUDE = 2,  /* include dir number `index` */
    KN_PLACE_SYSTEM = 3,   /* system dir number `index` */
    KN_PLACE_ABSOLUTE = 4, /* written as an absolute path in the text; index 0 */
    KN_PLACE_SHIPS = 5,    /* as an absent place only: the toolchain has it; index 0 */
    KN_PLACE_BASES,
} kn_place_base;

/* A name is an offset into the header list's pool, where a NUL follows it. */
typedef struct kn_place {
    kn_place_base base;
    uint32_t index;
    uint32_t name;
    uint32_t name_length;
    uint32_t dir;  /* row in `dirs` plus 1, whose path is the start of the name; 0: none */
    uint32_t next; /* of the same kind in that directory, plus 1; 0: the last. Not in the bytes */
} kn_place;

/* A directory that rows lie in, so that a check walks down to it once. */
typedef struct kn_header_list_directory {
    kn_place_base base;
    uint32_t index;
    uint32_t name;                       /* the start of a row's name, its last "/" included */
    uint32_t length;                     /* 0: the place's own directory */
    uint32_t first_header, first_absent; /* plus 1; 0: none. Not in the bytes */
} kn_header_list_directory;

/* What a file's times and numbers were when it was read; all 0 for a header in memory. The group,
 * which git compares, is left out: to change it moves ctime, and those who make images with fixed
 * times give all files of a tree the same one. */
typedef struct kn_stamp {
    uint64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns;
    uint64_t inode;
    uint64_t device; /* images with fixed times give the same inode to other content */
    uint32_t owner;
    uint32_t mode;
} kn_stamp;

kn_stamp kn_stamp_of(const kn_file_facts *facts);

typedef struct kn_header_list_header {
    kn_place place;
    uint32_t written; /* the name as the including text has it */
    uint32_t written_length;
    kn_stamp stamp;
    uint8_t digest[32];
    /* For a walk, and not kept: found under another spelling of the path, too; #pragma once. */
    bool is_alias, is_once;
} kn_header_list_header;

typedef struct kn_header_list {
    int64_t recorded_ns; /* wall clock before the first file was read */
    bool names_seen;     /* some text mentions the name of the file that it is in */
    bool twins_seen;     /* headers at two places have the same content (twins.h) */
    bool imports_seen;   /* a text has #import; not kept */
    uint8_t
        graph[32]; /* which include of which file reaches which header; system headers' digests */
    kn_header_list_header *headers;
    size_t header_count, header_capacity;
    kn_place *absent; /* looked at, and nothing was there */
    size_t absent_count, absent_capacity;
    kn_header_list_directory *dirs; /* kn_header_list_group */
    size_t dir_count, dir_capacity;
    kn_strbuf names; /* the pool of one that is being made */
    kn_span pool;    /* of one that was parsed: borrowed from its bytes */
} kn_header_list;

void kn_header_list_init(kn_header_list *list);
void kn_header_list_deinit(kn_header_list *list);

/* Puts a name into the pool. False when out of memory or over the bounds. */
bool kn_header_list_add_name(kn_header_list *list, kn_span name, uint32_t *out_offset);
/* Copies a row whose names are in the pool. False as above. */
bool kn_header_list_add_header(kn_header_list *list, const kn_header_list_header *header);
bool kn_header_list_add_absent(kn_header_list *list, const kn_place *place);

static inline const char *kn_header_list_name(const kn_header_list *list, uint32_t offset)
{
    return (list->pool.data != NULL ? list->pool.data : kn_strbuf_text(&list->names)) + offset;
}

/* All places of a list: those of the headers, then the absent ones. */
static inline size_t kn_header_list_places(const kn_header_list *list)
{
    return list->header_count + list->absent_count;
}

static inline kn_place *kn_header_list_place(const kn_header_list *list, size_t i)
{
    return i < list->header_count ? &list->headers[i].place : &list->absent[i - list->header_count];
}

/* Whether places of this base have paths. */
static inline bool kn_place_is_on_disk(kn_place_base base)
{
    return base != KN_PLACE_MEMORY && base != KN_PLACE_SHIPS;
}

/* Begins the key of a place in a map: the base and the index; a name is to follow. */
void kn_place_key_start(kn_strbuf *key, kn_place_base base, uint32_t index);
/* Appends a name without ".", "..", and doubled separators where that can be seen from the text. */
void kn_place_key_append_normal(kn_strbuf *key, const char *name);

/* Finds the directories of all rows. False when out of memory; the rows have no directories
 * then. */
bool kn_header_list_group(kn_header_list *list);

/* Appends the bytes of a header list to `out`; the caller asks kn_strbuf_ok. Without `stamps` they
 * are the same on every machine, and a check of them reads each header. */
void kn_header_list_write(const kn_header_list *list, bool stamps, kn_strbuf *out);

/* Reads the bytes of a header list, whose names it borrows until it is deinitialised. Every length,
 * offset, base, name and directory is checked; indices are checked against the request by the one
 * who uses them. *out_list is initialised in every case.
 * KILN_E_CORRUPT (no diag: the caller scans again), KILN_E_NOMEM. */
kiln_status kn_header_list_parse(kn_span bytes, kn_header_list *out_list);

/* True if a file that looks like `now` certainly holds what it held when `then` was taken, at
 * `recorded_ns`: all is equal, and its times are real and clearly older than the record. */
bool kn_stamp_holds(const kn_stamp *then, const kn_stamp *now, int64_t recorded_ns);

#endif
