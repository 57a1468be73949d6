/* Packs: many entries of a cache in one immutable file, for app bundles and container images.
 *
 * A pack is mapped and opened in the same few microseconds whatever its size. A cache that is given
 * packs (kiln_cache_options.packs, $KILN_PACKS) looks in them after its disk; a hit is kept in
 * memory and not copied to disk. Nothing in a pack names the machine or the user that made it.
 *
 *  - A pack must never be changed or cut short in place: a process that has it open is killed
 *    (SIGBUS). kiln writes a new file and renames it over the old one; do the same (`cp` does not,
 *    `mv` and `install` do).
 *  - A pack holds code that will run: a file that everybody may write to is refused.
 *  - Entries whose stage starts with "kiln." are notes of one machine and are left out.
 *
 *     kiln_pack_writer_create("app.kpack", NULL, &writer, &diag);
 *     kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, &diag);
 *     kiln_pack_writer_finish(writer, &info, &diag);
 *     kiln_pack_writer_destroy(writer);
 */
#ifndef KILN_UNSTABLE_PACK_H
#define KILN_UNSTABLE_PACK_H

#include "kiln/unstable/admin.h"

KILN_BEGIN_DECLS

typedef struct kiln_pack kiln_pack;               /* open/close; immutable */
typedef struct kiln_pack_writer kiln_pack_writer; /* create/destroy */

/* What a pack says of itself. The library owns that of an open pack. */
typedef struct kiln_pack_info {
    size_t struct_size;
    uint64_t entries;
    uint64_t file_bytes;
    uint64_t dictionary_bytes; /* 0: without */
    uint64_t payload_bytes;    /* unpacked; known to the writer alone, 0 otherwise */
    int64_t created_ns;        /* when its newest entry was made */
    char kiln_version[17];
} kiln_pack_info;

/* Opens a pack. Reads its first and last bytes alone; each entry is verified when it is asked for.
 * Threads: any.   Blocks: disk.
 * Owns: *out_pack is yours, kiln_pack_close(); blobs may outlive it.
 * Fails: KILN_MISS (no such file; no diag), KILN_E_CORRUPT, KILN_E_UNSUPPORTED (another version, a
 * file that everybody may write to), KILN_E_IO, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_open(const char *path, kiln_pack **out_pack,
                                                    kiln_diag *diag);
KILN_API void kiln_pack_close(kiln_pack *pack);

/* Threads: any.   Blocks: never.   Owns: borrowed from the pack.   Fails: never. */
KILN_API const kiln_pack_info *kiln_pack_get_info(const kiln_pack *pack);

/* Looks an entry up, verified. What is stored as it is, is used where it lies in the file.
 * Threads: any.   Blocks: disk.
 * Owns: *out_blob is yours, kiln_blob_release().
 * Fails: KILN_MISS (no diag), KILN_E_CORRUPT, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_get(kiln_pack *pack, const kiln_key *key,
                                                   kiln_blob **out_blob, kiln_diag *diag);

/* Calls `visit` for every entry of `target` (NULL: of every one) in order of keys; everything in
 * the info is known but used_ns. Each entry is verified: a damaged one ends the walk.
 * Threads: any.   Blocks: disk.   Owns: info is borrowed for the call.
 * Fails: KILN_E_CORRUPT, KILN_E_NOMEM, or what `visit` returns. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_walk(kiln_pack *pack, const char *target,
                                                    kiln_entry_fn *visit, void *user,
                                                    kiln_diag *diag);

/* Verifies index, dictionary and every entry; each entry's key must be its recipe's.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_CORRUPT (index or dictionary), KILN_E_NOMEM; bad entries are counted. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_verify(kiln_pack *pack,
                                                      kiln_verify_result *out_result,
                                                      kiln_diag *diag);

/* What became of the entries that were to be copied. Set struct_size before the call. */
typedef struct kiln_pack_copied {
    size_t struct_size;
    uint64_t added;   /* new at the destination */
    uint64_t present; /* there already; never replaced */
    uint64_t skipped; /* notes of one machine, damaged ones, ones that vanished meanwhile */
} kiln_pack_copied;

/* Copies the entries of `target` (NULL: all) into a cache's disk tier. What is there is kept:
 * copying twice changes nothing. An entry whose recipe does not give its key is skipped.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_UNAVAILABLE without a disk tier, KILN_E_UNSUPPORTED when it is read-only,
 * KILN_E_CORRUPT (the index), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_extract(kiln_pack *pack, kiln_cache *cache,
                                                       const char *target,
                                                       kiln_pack_copied *out_copied,
                                                       kiln_diag *diag);

/* --- writing ---------------------------------------------------------------------------------- */

#define KILN_PACK_LEVEL_DEFAULT 12
#define KILN_PACK_LEVEL_MAX 22

/* Zero it and set struct_size; then what you want. */
typedef struct kiln_pack_writer_options {
    size_t struct_size;
    int level;       /* of zstd, 1 to 22; 0: KILN_PACK_LEVEL_DEFAULT */
    bool raw;        /* no compression: the fastest hits */
    kiln_pack *base; /* begin with its entries and dictionary (borrowed for the call), or NULL */
} kiln_pack_writer_options;

/* Starts a pack that will be published at `path`. A dictionary is trained of the first small
 * entries, and kept where it pays.
 * Threads: one at a time per writer.   Blocks: disk.
 * Owns: *out_writer is yours, kiln_pack_writer_destroy(). NULL options mean defaults.
 * Fails: KILN_E_INVALID, KILN_E_IO, KILN_E_CORRUPT (the base), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status
kiln_pack_writer_create(const char *path, const kiln_pack_writer_options *options,
                        kiln_pack_writer **out_writer, kiln_diag *diag);

/* Adds one entry: from the disk tier of a cache, or its packs, by key; or one of your own.
 * `out_added` (may be NULL) is false where the pack has the key already: the entry that is there
 * is kept.
 * Threads: one at a time per writer.   Blocks: disk.   Owns: copies.
 * Fails: KILN_MISS (the cache has none; no diag), KILN_E_CORRUPT, KILN_E_INVALID (a recipe that
 * could not be completed, too large, empty), KILN_E_IO, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_writer_add(kiln_pack_writer *writer,
                                                          kiln_cache *cache, const kiln_key *key,
                                                          bool *out_added, kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_writer_add_blob(kiln_pack_writer *writer,
                                                               const kiln_recipe *recipe,
                                                               const kiln_blob *blob,
                                                               bool *out_added, kiln_diag *diag);

/* Adds every entry of `target` (NULL: of every one) that is on disk. `visit` (may be NULL) is
 * called for each before it is read. Damaged entries are skipped.
 * Threads: one at a time per writer.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_IO, KILN_E_NOMEM, or what `visit` returns. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_writer_add_all(kiln_pack_writer *writer,
                                                              kiln_cache *cache, const char *target,
                                                              kiln_entry_fn *visit, void *user,
                                                              kiln_pack_copied *out_copied,
                                                              kiln_diag *diag);

/* Adds every entry of `target` (NULL: of every one) of another pack, verified and as fresh as it is
 * there. Damaged entries, and notes of one machine, are skipped.
 * Threads: one at a time per writer; the pack from any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_CORRUPT (the pack's index or dictionary), KILN_E_IO, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_writer_add_pack(kiln_pack_writer *writer,
                                                               kiln_pack *pack, const char *target,
                                                               kiln_pack_copied *out_copied,
                                                               kiln_diag *diag);

/* Completes the file and publishes it, readable by everybody, by rename: until then, and after a
 * failure, what was at the path is untouched. The writer takes no entries afterwards.
 * Threads: one at a time per writer.   Blocks: disk.
 * Owns: *out_info (may be NULL) is the caller's struct, its struct_size set before.
 * Fails: KILN_E_INVALID (struct_size), KILN_E_IO, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_writer_finish(kiln_pack_writer *writer,
                                                             kiln_pack_info *out_info,
                                                             kiln_diag *diag);
/* Without a finish nothing is left of it. */
KILN_API void kiln_pack_writer_destroy(kiln_pack_writer *writer);

KILN_END_DECLS

#endif
