/* Aligned memory, and how much there is at all; see memory.h and processor.h. */
#include "sys/memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "sys/processor.h"

void *kn_memory_create(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

void kn_memory_destroy(void *memory)
{
    free(memory);
}

uint64_t kn_processor_memory(void)
{
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0) {
        return (uint64_t)pages * (uint64_t)size;
    }
#endif
    return 0;
}
