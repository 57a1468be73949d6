/* For bindings of other languages: recipes that can be copied and checked, waits that the language
 * can interrupt (Ctrl-C), and a flush for a process that exits with a cache still in use. */
#ifndef KILN_UNSTABLE_BINDING_H
#define KILN_UNSTABLE_BINDING_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

/* Copies a recipe with its fields and its first error: the cache refuses the copy of a recipe to
 * which a field could not be added, as it refuses the original.
 * Threads: any while nobody adds a field.   Blocks: never.
 * Owns: *out_recipe is yours, kiln_recipe_destroy().
 * Fails: KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_recipe_copy(const kiln_recipe *recipe,
                                                      kiln_recipe **out_recipe, kiln_diag *diag);

/* The first failure of kiln_recipe_add_* or kiln_recipe_set_target, for a language that reports it
 * where it happens.
 * Threads: any while nobody adds a field.   Blocks: never.   Owns: nothing.
 * Fails: KILN_E_INVALID, KILN_E_NOMEM, as those calls document. */
KILN_API KILN_MUST_CHECK kiln_status kiln_recipe_status(const kiln_recipe *recipe, kiln_diag *diag);

/* Returns true to cancel the call. It runs on the calling thread, about five times a second during
 * a wait and once before `compile`; the cache holds no lock meanwhile. */
typedef bool kiln_interrupted_fn(void *user);

/* As kiln_cache_get_or_compile, but `interrupted` can cancel it: while it waits for another thread,
 * process or host, and before it compiles. Another waiter for the same key then compiles.
 * Threads: any; equal keys share one compile.
 * Blocks: disk, another's compile, `compile`, as kiln_cache_get_or_compile.
 * Owns: *out_blob is yours, kiln_blob_release(). `out_origin` may be NULL; `user` is for both.
 * Fails: KILN_E_CANCELLED when interrupted, and what kiln_cache_get_or_compile fails with. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_get_or_compile_interruptible(
    kiln_cache *cache, const kiln_recipe *recipe, kiln_compile_fn *compile,
    kiln_interrupted_fn *interrupted, void *user, kiln_blob **out_blob, kiln_origin *out_origin,
    kiln_diag *diag);

/* Waits for uploads to remotes and writes the counters, as kiln_cache_destroy does. For a process
 * that exits while something still uses the cache.
 * Threads: any.   Blocks: disk, network (a remote's `flush`).   Owns: nothing.   Fails: never. */
KILN_API void kiln_cache_flush(kiln_cache *cache);

KILN_END_DECLS

#endif
