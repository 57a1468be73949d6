/* See handles.h. Each block is a hash table of addresses, four times the size of the one before. An
 * address lies in one of the few slots that follow its hash, in any block; since all of them are
 * looked at, a slot is emptied by a NULL. */
#include "interpose/handles.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 256, NEXT_FACTOR = 4, WINDOW = 8 };

struct kn_handle_block {
    kn_handle_block *_Atomic next;
    size_t slot_count; /* a power of two */
    const void *_Atomic slots[];
};

static size_t hash_handle(const void *handle)
{
    /* Fibonacci hashing: addresses differ in their middle bits. */
    return (size_t)(((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15U) >> 32);
}

/* The slot of the block that holds `wanted`, and then holds `replacement`. */
static bool exchange_slot(kn_handle_block *block, size_t hash, const void *wanted,
                          const void *replacement)
{
    for (size_t i = 0; i < WINDOW; i++) {
        const void *expected = wanted;
        const void *_Atomic *slot = &block->slots[(hash + i) & (block->slot_count - 1)];
        if (atomic_load(slot) == wanted &&
            atomic_compare_exchange_strong(slot, &expected, replacement)) {
            return true;
        }
    }
    return false;
}

static kn_handle_block *append_block(kn_handle_block *_Atomic *link, size_t slot_count)
{
    kn_handle_block *none = NULL;
    kn_handle_block *made =
        (kn_handle_block *)calloc(1, sizeof(*made) + slot_count * sizeof(const void *_Atomic));
    if (made == NULL) {
        return NULL;
    }
    made->slot_count = slot_count;
    if (!atomic_compare_exchange_strong(link, &none, made)) {
        free(made);
        return none; /* another thread's */
    }
    return made;
}

bool kn_handles_add(kn_handles *set, const void *handle)
{
    const size_t hash = hash_handle(handle);
    size_t slot_count = FIRST_SLOTS;
    kn_handle_block *_Atomic *link = &set->first;
    for (;;) {
        kn_handle_block *block = atomic_load(link);
        if (block == NULL) {
            block = append_block(link, slot_count);
        }
        if (block == NULL) {
            return false;
        }
        if (exchange_slot(block, hash, NULL, handle)) {
            return true;
        }
        slot_count = block->slot_count * NEXT_FACTOR;
        link = &block->next;
    }
}

bool kn_handles_remove(kn_handles *set, const void *handle)
{
    const size_t hash = hash_handle(handle);
    for (kn_handle_block *block = handle != NULL ? atomic_load(&set->first) : NULL; block != NULL;
         block = atomic_load(&block->next)) {
        if (exchange_slot(block, hash, handle, NULL)) {
            return true;
        }
    }
    return false;
}

bool kn_handles_have(kn_handles *set, const void *handle)
{
    const size_t hash = hash_handle(handle);
    for (kn_handle_block *block = handle != NULL ? atomic_load(&set->first) : NULL; block != NULL;
         block = atomic_load(&block->next)) {
        for (size_t i = 0; i < WINDOW; i++) {
            if (atomic_load(&block->slots[(hash + i) & (block->slot_count - 1)]) == handle) {
                return true;
            }
        }
    }
    return false;
}
