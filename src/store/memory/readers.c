/* The writer's half of lock-free reading. This file must not know what is read. */
#include "store/memory/readers.h"

#include <string.h>

#include "sys/fence.h"
#include "sys/memory.h"

bool kn_readers_init(kn_readers *readers)
{
    memset(readers, 0, sizeof *readers);
    size_t size = KN_READER_SLOTS * sizeof *readers->slots;
    readers->slots = kn_memory_create(alignof(kn_reader), size);
    if (readers->slots == NULL) {
        return false;
    }
    memset(readers->slots, 0, size);
    readers->fenced = !kn_fence_available();
    return true;
}

void kn_readers_deinit(kn_readers *readers)
{
    kn_memory_destroy(readers->slots);
    memset(readers, 0, sizeof *readers);
}

void kn_readers_counted(const kn_readers *readers, uint64_t *out_hits, uint64_t *out_amount)
{
    uint64_t hits = 0, amount = 0;
    for (size_t i = 0; i < KN_READER_SLOTS; i++) {
        const kn_reader *reader = &readers->slots[i];
        hits += atomic_load_explicit(&reader->hits, memory_order_relaxed) +
                atomic_load_explicit(&reader->guest_hits, memory_order_relaxed);
        amount += atomic_load_explicit(&reader->amount, memory_order_relaxed) +
                  atomic_load_explicit(&reader->guest_amount, memory_order_relaxed);
    }
    *out_hits = hits;
    *out_amount = amount;
}

void kn_readers_start(kn_readers *readers, kn_readers_wait *wait)
{
    /* Pairs with the fence in enter: after it, a reader's mark is visible here, or the reader does
     * not find what was unlinked before. Registering may take milliseconds, so that it waits for
     * the first writer that frees something. */
    if (readers->fenced) {
        atomic_thread_fence(memory_order_seq_cst);
    } else {
        readers->registered = readers->registered || kn_fence_register();
        atomic_thread_fence(memory_order_seq_cst);
        kn_fence_everywhere();
    }
    memset(wait->unseen, 0xff, sizeof wait->unseen);
}

bool kn_readers_passed(const kn_readers *readers, kn_readers_wait *wait)
{
    bool passed = true;
    for (size_t i = 0; i < KN_READER_SLOTS; i++) {
        uint64_t bit = UINT64_C(1) << (i % 64);
        const kn_reader *reader = &readers->slots[i];
        if (!(wait->unseen[i / 64] & bit)) {
            continue;
        }
        /* seq_cst for the guests: it orders this look after the unlinking. */
        if (atomic_load_explicit(&reader->depth, memory_order_acquire) == 0 &&
            atomic_load_explicit(&reader->guests, memory_order_seq_cst) == 0) {
            wait->unseen[i / 64] &= ~bit;
        } else {
            passed = false;
        }
    }
    return passed;
}
