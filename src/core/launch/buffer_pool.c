/* The executor's buffers: best fit among the idle ones. A stream repeats a few sizes, so that the
 * list stays short. */
#include "core/launch/buffer_pool.h"

#include <stdlib.h>

#define GRAIN ((size_t)256)

static uint64_t idle_bytes(const kn_buffer_pool *pool)
{
    return pool->bytes - pool->used;
}

static void count_use(kn_buffer_pool *pool, size_t size)
{
    pool->used += size;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
}

kn_pooled *kn_buffer_pool_find(kn_buffer_pool *pool, size_t size)
{
    kn_pooled **best = NULL;
    for (kn_pooled **at = &pool->idle; *at != NULL; at = &(*at)->next) {
        const size_t has = (*at)->buffer->size;
        if (has >= size && (has / 2 <= size || has <= GRAIN) &&
            (best == NULL || has < (*best)->buffer->size)) {
            best = at;
        }
    }
    if (best == NULL) {
        return NULL;
    }
    kn_pooled *found = *best;
    *best = found->next;
    found->next = NULL;
    pool->reuses++;
    count_use(pool, found->buffer->size);
    return found;
}

size_t kn_buffer_pool_round(size_t size)
{
    return size > SIZE_MAX - GRAIN ? size : (size + GRAIN - 1) / GRAIN * GRAIN;
}

void kn_buffer_pool_add(kn_buffer_pool *pool, const kn_pooled *pooled)
{
    pool->count++;
    pool->creates++;
    pool->bytes += pooled->buffer->size;
    pool->bytes_high = pool->bytes > pool->bytes_high ? pool->bytes : pool->bytes_high;
    count_use(pool, pooled->buffer->size);
}

void kn_buffer_pool_put(kn_buffer_pool *pool, kn_pooled *pooled)
{
    pool->used -= pooled->buffer->size;
    pooled->next = pool->idle;
    pool->idle = pooled;
}

kn_pooled *kn_buffer_pool_trim(kn_buffer_pool *pool, uint64_t bytes)
{
    kn_pooled *out = NULL;
    while (pool->idle != NULL && idle_bytes(pool) > bytes) {
        kn_pooled **last = &pool->idle;
        while ((*last)->next != NULL) {
            last = &(*last)->next;
        }
        kn_pooled *gone = *last;
        *last = NULL;
        gone->next = out;
        out = gone;
        pool->count--;
        pool->bytes -= gone->buffer->size;
    }
    return out;
}

void kn_pooled_destroy(kn_pooled *list)
{
    while (list != NULL) {
        kn_pooled *gone = list;
        list = gone->next;
        kiln_buffer_destroy(gone->buffer);
        free(gone);
    }
}
