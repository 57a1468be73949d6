/* Memory that lives as long as a command does: strings, rows, lists. Everything is zeroed, and all
 * of it is freed at once. NULL means out of memory, and every caller looks. */
#ifndef KILN_PROGRAM_POOL_H
#define KILN_PROGRAM_POOL_H

#include <stddef.h>

#include <kiln/status.h>

typedef struct cli_pool {
    struct pool_block *blocks;
} cli_pool;

#define POOL_INIT                                                                                  \
    {                                                                                              \
        NULL                                                                                       \
    }

void *pool_alloc(cli_pool *pool, size_t size);
/* `count` elements of `size` bytes; the product is checked. */
void *pool_array(cli_pool *pool, size_t count, size_t size);
/* `list` of `count` elements with room for one more: itself, or a copy of twice the capacity. */
void *pool_grow(cli_pool *pool, void *list, size_t *capacity, size_t count, size_t size);
char *pool_text(cli_pool *pool, const char *text, size_t length);
char *pool_format(cli_pool *pool, const char *format, ...) KILN_PRINTF(2, 3);
void pool_deinit(cli_pool *pool);

#endif
