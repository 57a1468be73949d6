/* Uses of programs: counted by the key of their first stage, which is known before any compile. */
#include <string.h>

#include "core/runtime/runtime.h"
#include "kiln/unstable/warm.h"
#include "store/cache/cache.h"
#include "store/disk/use_counts.h"
#include "sys/clock.h"

#define SECOND_NS 1000000000

void kn_uses_note(kiln_runtime *runtime, const kiln_key *first_key)
{
    static const kiln_key none;
    const kiln_key *key = first_key;
    if (memcmp(key, &none, sizeof(none)) == 0 || !kn_cache_writes(runtime->cache)) {
        return;
    }
    kn_mutex_lock(&runtime->mutex);
    const uintptr_t count = (uintptr_t)kn_map_find(&runtime->uses, key->bytes, sizeof(key->bytes));
    /* Out of memory: a use that is not counted. A number in the place of a pointer. */
    (void)kn_map_put(&runtime->uses, key->bytes, sizeof(key->bytes), (void *)(count + 1), NULL);
    kn_mutex_unlock(&runtime->mutex);
}

void kn_uses_flush(kiln_runtime *runtime)
{
    size_t cursor = 0;
    const void *bytes = NULL;
    void *count = NULL;
    if (runtime->uses.count == 0 || !kn_cache_root_stands(runtime->cache)) {
        return;
    }
    kn_file *file = kn_uses_open(kiln_cache_root(runtime->cache), true);
    const uint32_t now = (uint32_t)(kn_clock_wall() / SECOND_NS);
    while (kn_map_next(&runtime->uses, &cursor, &bytes, NULL, &count)) {
        kiln_key key;
        memcpy(key.bytes, bytes, sizeof(key.bytes));
        kn_uses_add(file, &key, (uint32_t)(uintptr_t)count, now);
    }
    kn_uses_close(file);
}

void kiln_cache_uses(kiln_cache *cache, const kiln_key *keys, size_t count, uint64_t *out_counts,
                     int64_t *out_last_ns)
{
    kn_file *file = kn_uses_open(kiln_cache_root(cache), false);
    for (size_t i = 0; i < count; i++) {
        const kn_use use = kn_uses_find(file, &keys[i]);
        if (out_counts != NULL) {
            out_counts[i] = use.count;
        }
        if (out_last_ns != NULL) {
            out_last_ns[i] = (int64_t)use.last_s * SECOND_NS;
        }
    }
    kn_uses_close(file);
}
