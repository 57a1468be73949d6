/* What an administrator's program does with a cache (kiln ls, show, verify, stats): to look at its
 * entries one by one, to verify them, to see what bypasses it. */
#ifndef KILN_UNSTABLE_ADMIN_H
#define KILN_UNSTABLE_ADMIN_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

/* Reads the text form of a key: exactly 64 hexadecimal digits.
 * Threads: any.   Blocks: never.   Owns: nothing.
 * Fails: KILN_E_INVALID with the position of the first bad digit. */
KILN_API KILN_MUST_CHECK kiln_status kiln_key_parse(const char *text, kiln_key *out_key,
                                                    kiln_diag *diag);

/* Time the original compile took, in nanoseconds; 0 if it is not known.
 * Threads: any.   Blocks: never.   Owns: nothing.   Fails: never. */
KILN_API uint64_t kiln_blob_compile_ns(const kiln_blob *blob);

/* One entry on disk, as kiln_cache_walk and kiln_cache_inspect see it. Strings live for the call.
 */
typedef struct kiln_entry_info {
    size_t struct_size;
    kiln_key key;
    const char *target;
    const char *recipe;       /* text; NULL in a walk */
    uint64_t stored_size;     /* bytes of the file */
    uint64_t payload_size;    /* bytes of the payload, uncompressed; 0 in a walk */
    uint64_t facts_size;      /* 0 in a walk */
    int64_t created_ns;       /* wall clock, ns since 1970; 0 in a walk */
    int64_t used_ns;          /* last use that was stamped */
    uint64_t compile_ns;      /* 0 in a walk */
    const char *kiln_version; /* NULL in a walk */
    const char *label;        /* "scale.cu: scale, add": what people call it; "" where nobody said,
                                 NULL in a walk. Any program's text: escape it */
} kiln_entry_info;

/* Called for each entry; any status but KILN_OK ends the walk and is returned by it. */
typedef kiln_status kiln_entry_fn(void *user, const kiln_entry_info *info);

/* Calls `visit` for every entry on disk (`target` NULL: of every target), in no order.
 * Threads: any.   Blocks: disk.   Owns: info is borrowed for the call.
 * Fails: KILN_E_IO, or what `visit` returns. Entries that vanish meanwhile are skipped. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_walk(kiln_cache *cache, const char *target,
                                                     kiln_entry_fn *visit, void *user,
                                                     kiln_diag *diag);

/* Reads one entry whole, verifies it, and reports everything about it.
 * Threads: any.   Blocks: disk.   Owns: info is borrowed for the call.
 * Fails: KILN_MISS, KILN_E_CORRUPT (the entry is left in place), or what `visit` returns. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_inspect(kiln_cache *cache, const kiln_key *key,
                                                        kiln_entry_fn *visit, void *user,
                                                        kiln_diag *diag);

/* Reports how far kiln_cache_walk, prune, clear and verify are: at most some fifty times a second,
 * on the thread that called them. `total` is what is to be expected, not a promise. NULL: no
 * reports (the default).
 * Threads: one at a time, while none of these runs.   Blocks: never.
 * Owns: borrows `user` until the next call.   Fails: never. */
typedef void kiln_cache_progress_fn(void *user, uint64_t done, uint64_t total);
KILN_API void kiln_cache_on_progress(kiln_cache *cache, kiln_cache_progress_fn *progress,
                                     void *user);

/* Reads and verifies every entry on disk. With `remove`, bad ones are removed.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_INVALID (out_result->struct_size, which is set before the call), KILN_E_IO (also
 * when an entry could not be read: it is left, and the others are verified), KILN_E_UNAVAILABLE
 * without a disk tier; bad entries are counted, not a failure. */
typedef struct kiln_verify_result {
    size_t struct_size;
    uint64_t entries_good, entries_bad, bytes;
} kiln_verify_result;
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_verify(kiln_cache *cache, bool remove,
                                                       kiln_verify_result *out_result,
                                                       kiln_diag *diag);

/* Temporary files in the cache's directory, and their bytes: of writers that are at work, and of
 * some that were killed, where the system cannot write a file that has no name. They count against
 * the cap; the next eviction, prune or clear removes those whose writers are gone.
 * Threads: any.   Blocks: disk.   Owns: nothing.   Fails: never (zeros without a disk tier). */
KILN_API void kiln_cache_get_temporaries(kiln_cache *cache, uint64_t *out_files,
                                         uint64_t *out_bytes);

/* Looks for what keeps the disk tier from working and does not pass by itself: a file in place of a
 * directory of the cache, or a directory in place of one of its files.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_UNAVAILABLE with the path and what to do. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_examine(kiln_cache *cache, kiln_diag *diag);

/* Counts a compile that bypassed the cache (__DATE__, a computed include, ...), lists it under its
 * reason, and logs that once. The second process that pays for a reason says so in one line at the
 * default level of the log, that is, on standard error where nobody has taken the log and KILN_LOG
 * is not set; after that it is not repeated in this cache directory.
 * Threads: any.   Blocks: disk.   Owns: nothing.   Fails: never. */
KILN_API void kiln_cache_count_bypass(kiln_cache *cache, const char *what, const char *reason);

/* Compiles that bypassed the cache for one reason, over all processes. */
typedef struct kiln_bypass {
    size_t struct_size;
    const char *reason;
    const char *what; /* one of the kernels, the last */
    uint64_t count;   /* of compiles */
    uint64_t time_ns; /* what they took; 0 where that was not measured */
    int64_t last_ns;  /* wall clock, ns since 1970 */
} kiln_bypass;

/* Any status but KILN_OK ends the walk and is returned by it. */
typedef kiln_status kiln_bypass_fn(void *user, const kiln_bypass *bypass);

/* Shows the reasons for which compiles bypassed the cache, by time. At most 64 reasons
 * are remembered, and two processes at once may lose a count, which `bypassed` of the counters has.
 * Threads: any.   Blocks: disk.   Owns: `bypass` is borrowed for the call.
 * Fails: KILN_E_NOMEM, or what `visit` returns. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_walk_bypasses(kiln_cache *cache,
                                                              kiln_bypass_fn *visit, void *user,
                                                              kiln_diag *diag);

/* Calls `visit` with the name of each namespace below the cache's root, in no order; a cache that
 * is itself in a namespace has none. Any status but KILN_OK ends the walk and is returned by it.
 * Threads: any.   Blocks: disk.   Owns: `name` is borrowed for the call.
 * Fails: KILN_E_IO, KILN_E_NOMEM, or what `visit` returns. */
typedef kiln_status kiln_namespace_fn(void *user, const char *name);
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_walk_namespaces(kiln_cache *cache,
                                                                kiln_namespace_fn *visit,
                                                                void *user, kiln_diag *diag);

/* What to prune: entries not used for `max_age_ns` (0: any age), least recently used ones beyond
 * `max_bytes` (UINT64_MAX: no limit), of one target only (NULL: all). Set struct_size. */
typedef struct kiln_prune_options {
    size_t struct_size;
    uint64_t max_age_ns;
    uint64_t max_bytes;
    const char *target;
} kiln_prune_options;

/* What was looked at, and what was removed. Set struct_size before the call. */
typedef struct kiln_prune_result {
    size_t struct_size;
    uint64_t entries_seen, bytes_seen, entries_removed, bytes_removed, temporaries_removed;
} kiln_prune_result;

/* Removes entries on disk by age and size, and temporary files that their writers left behind.
 * Readers are never disturbed. kiln_cache_clear removes every entry, and the precompiled headers
 * that compilers keep next to them (counted with the temporaries).
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_INVALID (a struct_size), KILN_E_IO, KILN_E_UNAVAILABLE without a disk tier,
 * KILN_E_UNSUPPORTED when read-only. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_prune(kiln_cache *cache,
                                                      const kiln_prune_options *options,
                                                      kiln_prune_result *out_result,
                                                      kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_clear(kiln_cache *cache,
                                                      kiln_prune_result *out_result,
                                                      kiln_diag *diag);

/* What kiln_cache_prune would remove with these options now: only counted, in a cache that is only
 * read, too. Temporary files are not looked at.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: as kiln_cache_prune, but for KILN_E_UNSUPPORTED. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_prune_plan(kiln_cache *cache,
                                                           const kiln_prune_options *options,
                                                           kiln_prune_result *out_result,
                                                           kiln_diag *diag);

/* Sets the counters of kiln_cache_get_totals to zero; what other processes add meanwhile is kept.
 * Entries, and the list of kiln_cache_walk_bypasses, stay.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_UNAVAILABLE without a disk tier, KILN_E_UNSUPPORTED when read-only, KILN_E_BUSY,
 * KILN_E_IO. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_zero_totals(kiln_cache *cache, kiln_diag *diag);

KILN_END_DECLS

#endif
