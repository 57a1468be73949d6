/* Keys first, entries when all compiles have finished. */
#include "warm/warm_pack.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/explain.h>
#include <kiln/unstable/pack.h>

#include "cli/diag.h"

/* One stage of one item. */
typedef struct noted_stage {
    kiln_key key; /* the first member: by_key */
    warm_item *item;
} noted_stage;

struct warm_pack {
    kiln_cache *cache;
    kiln_pack_writer *writer;
    cli_pool *pool;
    host_mutex *mutex;
    noted_stage *stages;
    size_t count, room;
};

kiln_status warm_pack_create(const char *path, kiln_cache *cache, cli_pool *pool, host_mutex *mutex,
                             warm_pack **out_pack, kiln_diag *diag)
{
    warm_pack *pack = pool_alloc(pool, sizeof(*pack));
    *out_pack = pack;
    if (pack == NULL) {
        return diag_no_memory(diag, path);
    }
    *pack = (warm_pack){.cache = cache, .pool = pool, .mutex = mutex};
    return kiln_pack_writer_create(path, NULL, &pack->writer, diag);
}

typedef struct noting {
    warm_pack *pack;
    warm_item *item;
    kiln_diag *diag;
} noting;

static bool append_stage(warm_pack *pack, const kiln_key *key, warm_item *item)
{
    if (pack->count == pack->room) {
        const size_t room = pack->room == 0 ? 64 : pack->room * 2;
        noted_stage *grown = realloc(pack->stages, room * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        pack->stages = grown;
        pack->room = room;
    }
    pack->stages[pack->count++] = (noted_stage){*key, item};
    return true;
}

static kiln_status note_stage(void *user, const kiln_explanation *stage)
{
    noting *n = user;
    bool good = true;
    host_mutex_lock(n->pack->mutex);
    if (stage->why == KILN_WHY_BYPASS) {
        n->item->unpacked = pool_format(n->pack->pool, "bypasses the cache: %s", stage->detail);
        good = n->item->unpacked != NULL;
    } else if (stage->why == KILN_WHY_NOT_YET) {
        n->item->unpacked = n->item->unpacked != NULL ? n->item->unpacked : "is not in the cache";
    } else {
        good = append_stage(n->pack, &stage->key, n->item);
    }
    host_mutex_unlock(n->pack->mutex);
    return good ? KILN_OK : diag_no_memory(n->diag, "filling a pack");
}

kiln_status warm_pack_note(warm_pack *pack, const cli_target *target, const kernel_source *source,
                           warm_item *item, kiln_diag *diag)
{
    noting n = {pack, item, diag};
    return kiln_compile_plan(target->runtime, target->name, &source->source, note_stage, &n, diag);
}

kiln_status warm_pack_note_key(warm_pack *pack, const kiln_key *key, warm_item *item,
                               kiln_diag *diag)
{
    host_mutex_lock(pack->mutex);
    const bool good = append_stage(pack, key, item);
    host_mutex_unlock(pack->mutex);
    return good ? KILN_OK : diag_no_memory(diag, "filling a pack");
}

static int by_key(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(kiln_key));
}

kiln_status warm_pack_write(warm_pack *pack, kiln_pack_info *out_info, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (pack->count > 0) {
        qsort(pack->stages, pack->count, sizeof(*pack->stages), by_key);
    }
    for (size_t i = 0; status == KILN_OK && i < pack->count; i++) {
        const noted_stage *stage = &pack->stages[i];
        status = kiln_pack_writer_add(pack->writer, pack->cache, &stage->key, NULL, diag);
        if (status == KILN_MISS) {
            stage->item->unpacked = "is not on disk: it could not be stored, or was evicted";
            status = KILN_OK;
        }
    }
    return status == KILN_OK ? kiln_pack_writer_finish(pack->writer, out_info, diag) : status;
}

void warm_pack_destroy(warm_pack *pack)
{
    if (pack != NULL) {
        kiln_pack_writer_destroy(pack->writer);
        free(pack->stages);
    }
}
