/* See late.h. */
#include "engine/late.h"

#include "store/cache/cache.h"

kiln_status kn_late_read(const kn_request *request, kn_late_fn *read, void *call,
                         kiln_blob **out_blob, kiln_diag *diag)
{
    const kiln_key key = kiln_recipe_key(request->recipe);
    kn_cache_work work;
    *out_blob = NULL;
    if (!kn_cache_work_begin(request->cache, &key, request->name, &work)) {
        return KILN_MISS;
    }
    const kiln_status status = read(call, out_blob, diag);
    kn_cache_work_end(request->cache, &work);
    return status;
}

kiln_status kn_late_publish(const kn_request *request, uint64_t compile_ns, kn_late_fn *read,
                            void *call, kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    kiln_status status = kn_late_read(request, read, call, &blob, diag);
    if (status == KILN_OK) {
        status = kiln_cache_put(request->cache, request->recipe, blob, compile_ns, diag);
    }
    kiln_blob_release(blob);
    return status;
}
