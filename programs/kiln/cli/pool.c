/* A list of blocks, one an allocation: the sanitizer then sees the bounds of each. */
#include "cli/pool.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool_block {
    struct pool_block *next;
    alignas(max_align_t) unsigned char data[];
};

void *pool_alloc(cli_pool *pool, size_t size)
{
    if (size > SIZE_MAX - sizeof(struct pool_block)) {
        return NULL;
    }
    struct pool_block *block = calloc(1, sizeof(*block) + size);
    if (block == NULL) {
        return NULL;
    }
    block->next = pool->blocks;
    pool->blocks = block;
    return block->data;
}

void *pool_array(cli_pool *pool, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    return pool_alloc(pool, count * size);
}

void *pool_grow(cli_pool *pool, void *list, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity) {
        return list;
    }
    const size_t more = *capacity > 0 ? *capacity * 2 : 16;
    void *grown = pool_array(pool, more, size);
    if (grown != NULL && count > 0) {
        memcpy(grown, list, count * size);
    }
    *capacity = grown != NULL ? more : *capacity;
    return grown;
}

char *pool_text(cli_pool *pool, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? pool_alloc(pool, length + 1) : NULL;
    if (copy != NULL && length > 0) {
        memcpy(copy, text, length);
    }
    return copy;
}

char *pool_format(cli_pool *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length >= 0 ? pool_alloc(pool, (size_t)length + 1) : NULL;
    if (text != NULL) {
        va_start(args, format);
        (void)vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    return text;
}

void pool_deinit(cli_pool *pool)
{
    while (pool->blocks != NULL) {
        struct pool_block *block = pool->blocks;
        pool->blocks = block->next;
        free(block);
    }
}
