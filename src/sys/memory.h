/* Memory at aligned addresses. It is not free()'s on every system: destroy what was created. */
#ifndef KILN_SYS_MEMORY_H
#define KILN_SYS_MEMORY_H

#include <stddef.h>

/* `alignment` is a power of two, `size` a multiple of it. NULL when out of memory. */
void *kn_memory_create(size_t alignment, size_t size);
void kn_memory_destroy(void *memory);

#endif
