/* Aligned memory, and how much there is at all; see memory.h and processor.h. The C library here
 * has no aligned_alloc: the address that free() wants lies before the one that was asked for. */
#include "sys/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "base/checked.h"
#include "sys/processor.h"

enum { POINTER = sizeof(void *) };

void *kn_memory_create(size_t alignment, size_t size)
{
    size_t total = 0;
    if (!kn_add_size(size, alignment + POINTER, &total)) {
        return NULL;
    }
    char *whole = malloc(total);
    if (whole == NULL) {
        return NULL;
    }
    uintptr_t first = (uintptr_t)whole + POINTER;
    uintptr_t aligned = (first + alignment - 1) & ~(uintptr_t)(alignment - 1);
    char *memory = whole + (aligned - (uintptr_t)whole);
    memcpy(memory - POINTER, &whole, POINTER);
    return memory;
}

void kn_memory_destroy(void *memory)
{
    if (memory != NULL) {
        void *whole = NULL;
        memcpy(&whole, (char *)memory - POINTER, POINTER);
        free(whole);
    }
}

uint64_t kn_processor_memory(void)
{
    MEMORYSTATUSEX facts = {.dwLength = sizeof facts};
    return GlobalMemoryStatusEx(&facts) != 0 ? facts.ullTotalPhys : 0;
}
