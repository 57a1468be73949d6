/* kiln_cache_contains: is it there, without reading, counting or compiling anything. */
#include "store/cache.h"

#include <string.h>

void kiln_cache_contains(kiln_cache *cache, const kiln_key *keys, size_t count, bool *out_there)
{
    memset(out_there, 0, count * sizeof *out_there);
    kn_cache_check_fork(cache);
    if (cache->options.flags & (KILN_CACHE_DISABLED | KILN_CACHE_RECACHE)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        out_there[i] =
            (cache->stack.memory != NULL && kn_mem_contains(cache->stack.memory, &keys[i])) ||
            (cache->disk != NULL && kn_disk_locate(cache->disk, &keys[i]) != NULL) ||
            kn_packs_contain(cache->packs, &keys[i]);
    }
}
