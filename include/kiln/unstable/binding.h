/* What a binding of another language needs besides: objects that are copied, waits that end with a
 * signal of the language's own, an end of the process at which objects are still in use. */
#ifndef KILN_UNSTABLE_BINDING_H
#define KILN_UNSTABLE_BINDING_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

/* Copies a recipe as it stands. A copy of one to which a field could not be added is refused by the
 * cache like the recipe.
 * Threads: any while nobody adds a field.   Blocks: never.
 * Owns: *out_recipe is yours, kiln_recipe_destroy().
 * Fails: KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_recipe_copy(const kiln_recipe *recipe,
                                                      kiln_recipe **out_recipe, kiln_diag *diag);

/* Whether the call is to end. It is called on the calling thread while no lock of the cache is
 * held: about five times a second in a wait, and before `compile`. */
typedef bool kiln_interrupted_fn(void *user);

/* kiln_cache_get_or_compile that `interrupted` can end: in its wait for another thread, process or
 * host, and before it compiles. One of those who wait for the same key takes its place.
 * Threads: any; equal keys share one compile.
 * Blocks: disk, another's compile, `compile`, as kiln_cache_get_or_compile.
 * Owns: *out_blob is yours, kiln_blob_release(). `out_origin` may be NULL; `user` is for both.
 * Fails: KILN_E_CANCELLED when interrupted, and what kiln_cache_get_or_compile fails with. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_get_or_compile_interruptible(
    kiln_cache *cache, const kiln_recipe *recipe, kiln_compile_fn *compile,
    kiln_interrupted_fn *interrupted, void *user, kiln_blob **out_blob, kiln_origin *out_origin,
    kiln_diag *diag);

/* Waits for uploads to remotes, and writes what was counted, as kiln_cache_destroy does: before a
 * process ends with a cache that something still uses.
 * Threads: any.   Blocks: disk, network (a remote's `flush`).   Owns: nothing.   Fails: never. */
KILN_API void kiln_cache_flush(kiln_cache *cache);

KILN_END_DECLS

#endif
