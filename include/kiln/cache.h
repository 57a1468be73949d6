/* Level 1: the compile cache. Bytes in, bytes out; nothing here knows what a GPU is.
 *
 * Read this first:
 *  - A cache problem never fails a compile. A full, read-only, corrupt or slow store is logged
 *    once, counted, and worked around; kiln_cache_get_or_compile still returns what was compiled.
 *  - A recipe is everything that decides the output: source, options, compiler, target. What is not
 *    in it must not change the output; what does not change the output must not be in it (no paths,
 *    no times, no process ids).
 *  - Entries are verified on every read: magic, version, key, lengths, checksum. A bad one is a
 *    miss, is removed, and is counted.
 *  - Locks only save work. Two hosts on one network directory may compile the same thing twice;
 *    they never see half an entry.
 *  - A cache may be used from many threads. After fork() the child may go on using it.
 *
 *     const kiln_field fields[] = {{"source", text, length},
 *                                  {"compiler", version, strlen(version)}};
 *     kiln_blob *blob = NULL;
 *     if (kiln_cache_compile(cache, "my-engine.spirv", fields, 2, compile, user, &blob, &diag) ==
 *         KILN_OK) {
 *         use(kiln_blob_data(blob), kiln_blob_size(blob));
 *     }
 *     kiln_blob_release(blob);
 *
 * The same with a recipe of one's own, for lists, numbers, bytes and a target:
 *
 *     kiln_recipe *recipe = NULL;
 *     kiln_blob *again = NULL;
 *     kiln_origin origin = KILN_ORIGIN_NONE;
 *     kiln_status status = kiln_recipe_create("my-engine.spirv", 1, &recipe, &diag);
 *     if (status == KILN_OK) {
 *         kiln_recipe_set_target(recipe, "vulkan");
 *         kiln_recipe_add_text(recipe, "source", text, length);
 *         kiln_recipe_add_u64(recipe, "level", 2);
 *         status = kiln_cache_get_or_compile(cache, recipe, compile, user, &again, &origin, &diag);
 *     }
 *     if (status == KILN_OK) {
 *         use(kiln_blob_data(again), kiln_blob_size(again));
 *     }
 *     kiln_blob_release(again);
 *     kiln_recipe_destroy(recipe);
 */
#ifndef KILN_CACHE_H
#define KILN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/export.h"
#include "kiln/status.h"

KILN_BEGIN_DECLS

typedef struct kiln_cache kiln_cache;   /* create/destroy */
typedef struct kiln_recipe kiln_recipe; /* create/destroy */
typedef struct kiln_blob kiln_blob;     /* retain/release; immutable */

/* The SHA-256 of a recipe. Its text form is 64 lower-case hexadecimal digits. */
typedef struct kiln_key {
    uint8_t bytes[32];
} kiln_key;

#define KILN_KEY_TEXT_SIZE 65

/* Writes the text form of a key.
 * Threads: any.   Blocks: never.
 * Owns: nothing; `text` has room for KILN_KEY_TEXT_SIZE bytes.
 * Fails: never. */
KILN_API void kiln_key_format(const kiln_key *key, char *text);

/* --- recipes ---------------------------------------------------------------------------------- */

/* Starts a recipe for one cached function: `stage` names it ("my-engine.spirv"; letters, digits,
 * '.', '-', '_', 1 to 64 of them), `revision` is raised whenever the function itself changes.
 * Threads: one at a time per recipe.   Blocks: never.
 * Owns: *out_recipe is yours, kiln_recipe_destroy(). Copies `stage`.
 * Fails: KILN_E_INVALID, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_recipe_create(const char *stage, uint32_t revision,
                                                        kiln_recipe **out_recipe, kiln_diag *diag);
KILN_API void kiln_recipe_destroy(kiln_recipe *recipe);

/* Adds one field. Order counts, names may repeat (a list), an empty value differs from an absent
 * field, and fields are framed by length, so ["ab","c"] differs from ["a","bc"].
 * Text and numbers stay readable in the recipe's text (text over 4 KiB, and bytes, are kept there
 * as length and SHA-256, so that sources do not lie readable in a cache). `target` is the entry's
 * directory in the store: it groups entries for listing and pruning ("cpu-x86_64", "cuda-sm_90");
 * it is a field as well and can be set once.
 * A recipe remembers the first field that could not be added (a name that breaks the rules for
 * `stage`, a target set twice, no memory). Every call that stores or looks up with the recipe fails
 * with that error from then on.
 * Threads: one at a time per recipe.   Blocks: never.
 * Owns: copies the value.
 * Fails: never; the first call that uses the recipe gives KILN_E_INVALID or KILN_E_NOMEM. */
KILN_API void kiln_recipe_add_text(kiln_recipe *recipe, const char *name, const char *text,
                                   size_t length);
KILN_API void kiln_recipe_add_bytes(kiln_recipe *recipe, const char *name, const void *data,
                                    size_t size);
KILN_API void kiln_recipe_add_u64(kiln_recipe *recipe, const char *name, uint64_t value);
KILN_API void kiln_recipe_set_target(kiln_recipe *recipe, const char *target);

/* The key of the recipe as it stands, and its readable text: one "name type value" line a field.
 * The key is the SHA-256 of that text; all zeros, which no entry has, if a field could not be
 * added.
 * Threads: any while nobody adds a field.   Blocks: never.
 * Owns: the text belongs to the recipe and changes with the next field added.
 * Fails: never. */
KILN_API kiln_key kiln_recipe_key(const kiln_recipe *recipe);
KILN_API const char *kiln_recipe_text(const kiln_recipe *recipe);

/* --- blobs ------------------------------------------------------------------------------------ */

/* A blob is what a compile made: the payload, and `facts`: whatever else the caller needs on a hit
 * exactly as on a miss (reflection, lowered names, warnings), in the caller's own encoding.
 * Threads: any.   Blocks: never.
 * Owns: kiln_blob_create copies both parts; *out_blob is yours. Data lives as long as the blob.
 * Fails: KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_blob_create(const void *data, size_t size,
                                                      const void *facts, size_t facts_size,
                                                      kiln_blob **out_blob, kiln_diag *diag);
KILN_API kiln_blob *kiln_blob_retain(kiln_blob *blob);
KILN_API void kiln_blob_release(kiln_blob *blob);
KILN_API const void *kiln_blob_data(const kiln_blob *blob);
KILN_API size_t kiln_blob_size(const kiln_blob *blob);
KILN_API const void *kiln_blob_facts(const kiln_blob *blob);
KILN_API size_t kiln_blob_facts_size(const kiln_blob *blob);

/* --- the cache -------------------------------------------------------------------------------- */

/* How the cache behaves as a whole, and the variable that says the same.
 * KILN_NO_CACHE: always compile, store nothing, open nothing. */
#define KILN_CACHE_DISABLED (1u << 0)
#define KILN_CACHE_RECACHE (1u << 1)  /* KILN_RECACHE: always compile, store */
#define KILN_CACHE_READONLY (1u << 2) /* KILN_READONLY: read every tier, write memory only */
#define KILN_CACHE_NO_DISK (1u << 3)  /* memory, and packs, only */
/* KILN_KEEP_SOURCES: keep a recording of all programs in the root, in its directory "recording". A
 * cache that names another (`record`), or that writes nothing to disk, keeps none there. */
#define KILN_CACHE_KEEP_SOURCES (1u << 4)

/* Fill it with kiln_cache_options_init, then change what you want. */
typedef struct kiln_cache_options {
    size_t struct_size;
    const char *root; /* disk tier, an absolute path; NULL: the user's directory for caches */
    uint32_t flags;   /* KILN_CACHE_* */
    uint64_t disk_max_bytes;   /* 0: 2 GiB */
    uint64_t disk_max_files;   /* 0: 100,000 */
    uint64_t memory_max_bytes; /* 0: 256 MiB */
    uint32_t memory_max_count; /* 0: 4,096 */
    uint32_t wait_ms;          /* longest wait for another process's compile; 0: 10 minutes */
    bool no_fsync;             /* KILN_FSYNC=0: not written at once; checksums find torn files */
    const char *packs; /* KILN_PACKS: read-only packs (kiln/unstable/pack.h), absolute paths in
                          order, between them ':' (Windows: ';'); NULL: none */
    uint64_t disk_max_age_s; /* entries not used for so long are evicted; 0: any age */
    uint64_t disk_min_free;  /* puts stop rather than leave less free on the file system; 0: 5 % of
                                it, at most 1 GiB; UINT64_MAX: no floor */
    const char *remote;      /* KILN_REMOTE: URLs of remotes in order, between them blanks
                                (docs/operate/remotes.md); NULL: none */
    const char *record;      /* KILN_RECORD: records every program that is compiled or found, with
                                its source and headers, in this directory, an absolute path
                                (docs/operate/record.md); NULL: nothing is recorded */
    uint64_t record_max_bytes; /* its largest size, at which it stops growing; 0: 1 GiB */
    const char *name_space; /* KILN_NAMESPACE: the part of the root that is used, a cache of its own
                               with its own limits and counters, in "namespaces/NAME" below the
                               root; NULL or "": the root itself */
} kiln_cache_options;

/* Fills `options` with defaults, then with what the environment says (KILN_CACHE_DIR,
 * KILN_NAMESPACE, KILN_CACHE_MAX_SIZE, KILN_CACHE_MAX_AGE, KILN_CACHE_MIN_FREE, KILN_NO_CACHE,
 * KILN_RECACHE, KILN_READONLY, KILN_FSYNC, KILN_PACKS, KILN_REMOTE, KILN_RECORD,
 * KILN_RECORD_MAX_SIZE, KILN_KEEP_SOURCES). The library learns how large the caller's struct is,
 * and writes no further: `size` is sizeof(kiln_cache_options).
 * Threads: any, while nobody changes the environment.   Blocks: never.
 * Owns: `root`, `packs`, `remote`, `record` and `name_space` borrow from the environment.
 * Fails: KILN_E_INVALID names the malformed variable; `options` then holds usable defaults. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_options_init_sized(kiln_cache_options *options,
                                                                   size_t size, kiln_diag *diag);
static inline KILN_MUST_CHECK kiln_status kiln_cache_options_init(kiln_cache_options *options,
                                                                  kiln_diag *diag)
{
    return kiln_cache_options_init_sized(options, sizeof(*options), diag);
}

/* Opens a cache. NULL options mean kiln_cache_options_init's. A disk tier that cannot be used is
 * left out, logged, and reported by kiln_cache_disk_reason; a pack that cannot be used is left out
 * and logged: neither is a failure.
 * Threads: any.   Blocks: disk.
 * Owns: *out_cache is yours, kiln_cache_destroy(); blobs may outlive it. Copies the options.
 * Fails: KILN_E_INVALID (options or environment), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_create(const kiln_cache_options *options,
                                                       kiln_cache **out_cache, kiln_diag *diag);
KILN_API void kiln_cache_destroy(kiln_cache *cache);

/* The disk tier's directory ("" if there is none), and why there is none, or why nothing is written
 * to the one there is (a read-only mount, missing rights); "" if all is well.
 * Threads: any.   Blocks: never.   Owns: borrowed from the cache.   Fails: never. */
KILN_API const char *kiln_cache_root(const kiln_cache *cache);
KILN_API const char *kiln_cache_disk_reason(const kiln_cache *cache);

/* Where a blob came from. */
typedef enum kiln_origin {
    KILN_ORIGIN_NONE = 0,
    KILN_ORIGIN_COMPILED,
    KILN_ORIGIN_MEMORY,
    KILN_ORIGIN_DISK,
    KILN_ORIGIN_PACK,
    KILN_ORIGIN_REMOTE,
    KILN_ORIGIN_SHARED, /* compiled by another thread of this process while we waited */
} kiln_origin;

/* "none", "compiled", "memory", "disk", "pack", "remote", "shared".
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never; "unknown". */
KILN_API const char *kiln_origin_name(kiln_origin origin);

/* Looks an entry up, verified. `out_origin` may be NULL.
 * Threads: any.   Blocks: disk.
 * Owns: *out_blob is yours, kiln_blob_release().
 * Fails: KILN_MISS (no diag). Damage and I/O errors are misses too, counted. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_get(kiln_cache *cache, const kiln_key *key,
                                                    kiln_blob **out_blob, kiln_origin *out_origin,
                                                    kiln_diag *diag);

/* Says of each key whether a lookup would find it, without reading, counting or compiling anything;
 * damage shows only when an entry is read. Ten thousand keys take milliseconds.
 * Threads: any.   Blocks: disk.   Owns: `out_there` has room for `count`.   Fails: never. */
KILN_API void kiln_cache_contains(kiln_cache *cache, const kiln_key *keys, size_t count,
                                  bool *out_there);

/* Stores a blob under its recipe, in place of what memory and disk have; a remote keeps the entry
 * that it has. `compile_ns` is kept for statistics.
 * Threads: any.   Blocks: disk.
 * Owns: borrows; the memory tier keeps a reference to the blob.
 * Fails: KILN_E_INVALID (empty payload: a failure is never stored). Errors of the store are counted
 * and logged, and KILN_OK returned: the caller has the bytes. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_put(kiln_cache *cache, const kiln_recipe *recipe,
                                                    kiln_blob *blob, uint64_t compile_ns,
                                                    kiln_diag *diag);

/* Drops an entry from every writable tier.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_MISS if no tier had it, KILN_E_IO. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_remove(kiln_cache *cache, const kiln_key *key,
                                                       kiln_diag *diag);

/* Makes the blob for a recipe. Runs on the calling thread, holds none of the cache's locks, and may
 * use the cache for other keys. Returns KILN_OK with *out_blob set (kiln_blob_create), or a
 * failure, which is passed to everyone waiting for this key and never stored. */
typedef kiln_status kiln_compile_fn(void *user, kiln_blob **out_blob, kiln_diag *diag);

/* The one call most programs need: a hit, or one compile however many threads and processes ask.
 * Threads: any; equal keys share one compile.
 * Blocks: disk, another's compile (options.wait_ms, seconds where that one is stopped), `compile`.
 * Owns: *out_blob is yours, kiln_blob_release(). `out_origin` may be NULL.
 * Fails: what `compile` returns, KILN_E_NOMEM. A broken cache never fails it. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_get_or_compile(
    kiln_cache *cache, const kiln_recipe *recipe, kiln_compile_fn *compile, void *user,
    kiln_blob **out_blob, kiln_origin *out_origin, kiln_diag *diag);

/* One field of a recipe, as kiln_recipe_add_text takes it. */
typedef struct kiln_field {
    const char *name;
    const char *text;
    size_t length;
} kiln_field;

/* kiln_cache_get_or_compile for a recipe of `stage`, revision 1, with these fields in this order.
 * Threads: any; equal fields share one compile.
 * Blocks: as kiln_cache_get_or_compile.
 * Owns: *out_blob is yours, kiln_blob_release(). Copies the fields.
 * Fails: as kiln_recipe_create and kiln_cache_get_or_compile. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_compile(kiln_cache *cache, const char *stage,
                                                        const kiln_field *fields, size_t count,
                                                        kiln_compile_fn *compile, void *user,
                                                        kiln_blob **out_blob, kiln_diag *diag);

KILN_END_DECLS

#endif
