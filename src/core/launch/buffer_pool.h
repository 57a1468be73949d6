/* Device buffers that are used again: taken for one submission, put back after it. Not locked: the
 * executor's mutex is around all but the creation of a buffer. */
#ifndef KILN_CORE_BUFFER_POOL_H
#define KILN_CORE_BUFFER_POOL_H

#include "core/launch/buffer.h"

typedef struct kn_pooled {
    struct kn_pooled *next;
    kiln_buffer *buffer;
} kn_pooled;

typedef struct kn_buffer_pool {
    kn_pooled *idle;     /* last used first */
    uint64_t idle_limit; /* bytes; 0: none */
    uint32_t count;
    uint64_t creates, reuses;
    uint64_t bytes, bytes_high;
    uint64_t used, used_high;
} kn_buffer_pool;

/* An idle buffer of at least `size` bytes and at most twice that, or NULL. */
kn_pooled *kn_buffer_pool_find(kn_buffer_pool *pool, size_t size);
/* What is to be asked from the device for `size` bytes, so that the next size fits as well. */
size_t kn_buffer_pool_round(size_t size);
/* A buffer that was made outside the lock comes in, in use. */
void kn_buffer_pool_add(kn_buffer_pool *pool, const kn_pooled *pooled);
void kn_buffer_pool_put(kn_buffer_pool *pool, kn_pooled *pooled);
/* Takes idle buffers out until at most `bytes` are idle: a list, the least recently used ones, to
 * be given to kn_pooled_destroy outside the lock. */
kn_pooled *kn_buffer_pool_trim(kn_buffer_pool *pool, uint64_t bytes);
void kn_pooled_destroy(kn_pooled *list);

#endif
