/* Who is reading: lets a table be read without a lock, and says when what was taken out of it can
 * be freed.
 *
 *     reader:  kn_reader *r = kn_readers_enter(&readers, &guest);
 *              ... follow atomic pointers ...
 *              kn_readers_leave(r, guest);
 *     writer:  unlink(node);                      // one writer at a time
 *              kn_readers_start(&readers, seen);  // from here on nobody new can reach it
 *              ... now and then: if (kn_readers_passed(&readers, seen)) free(node);
 *
 * Each thread that reads owns a slot, found by its own identity, and marks it with plain stores: a
 * reader writes no memory that another thread writes. The barrier that this needs is paid by the
 * writer, who asks the kernel to put one on every processor (sys/fence.h); where the kernel cannot,
 * readers pay for a fence themselves. A thread whose slot is taken is a guest there and counts
 * itself in and out with atomic additions: slower, but right. There are no thread-local variables
 * and nothing to do when a thread ends, so that nothing can outlive the library. */
#ifndef KILN_STORE_READERS_H
#define KILN_STORE_READERS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys/thread.h"

#define KN_READER_SLOTS 128 /* a power of two */

typedef struct kn_reader {
    alignas(64) _Atomic uintptr_t owner; /* a thread, for good; 0: nobody yet */
    _Atomic uint32_t depth;              /* of the owner; written by it alone */
    _Atomic uint32_t guests;
    /* Counters that ride along for free. */
    _Atomic uint64_t hits, amount;
    _Atomic uint64_t guest_hits, guest_amount;
} kn_reader;

typedef struct kn_readers {
    kn_reader *slots;
    bool fenced;     /* readers put the barrier */
    bool registered; /* with the kernel, by the first writer that needs it */
} kn_readers;

/* False when out of memory. */
bool kn_readers_init(kn_readers *readers);
void kn_readers_deinit(kn_readers *readers);

static inline kn_reader *kn_readers_enter(const kn_readers *readers, bool *out_guest)
{
    uintptr_t self = kn_thread_self();
    /* Threads differ in the middle bits of their descriptors' addresses. */
    uint64_t mixed = (uint64_t)self * UINT64_C(0x9e3779b97f4a7c15);
    kn_reader *reader = &readers->slots[(mixed >> 40) & (KN_READER_SLOTS - 1)];
    uintptr_t owner = atomic_load_explicit(&reader->owner, memory_order_relaxed);
    if (owner == 0) {
        uintptr_t nobody = 0;
        owner = atomic_compare_exchange_strong(&reader->owner, &nobody, self) ? self : nobody;
    }
    if (owner == self) {
        uint32_t depth = atomic_load_explicit(&reader->depth, memory_order_relaxed);
        atomic_store_explicit(&reader->depth, depth + 1, memory_order_relaxed);
        if (readers->fenced) {
            atomic_thread_fence(memory_order_seq_cst);
        } else {
            atomic_signal_fence(memory_order_seq_cst);
        }
        *out_guest = false;
    } else {
        atomic_fetch_add_explicit(&reader->guests, 1, memory_order_seq_cst);
        if (readers->fenced) {
            /* The addition alone keeps no later load after it (C11 7.17.3). No test here can show
             * that: on x86 it is a whole fence, and the thread sanitizer knows none. */
            atomic_thread_fence(memory_order_seq_cst);
        }
        *out_guest = true;
    }
    return reader;
}

static inline void kn_readers_leave(kn_reader *reader, bool guest)
{
    if (guest) {
        atomic_fetch_sub_explicit(&reader->guests, 1, memory_order_release);
    } else {
        uint32_t depth = atomic_load_explicit(&reader->depth, memory_order_relaxed);
        atomic_store_explicit(&reader->depth, depth - 1, memory_order_release);
    }
}

/* Counts one hit and its amount. Between enter and leave. */
static inline void kn_readers_count(kn_reader *reader, bool guest, uint64_t amount)
{
    if (guest) {
        atomic_fetch_add_explicit(&reader->guest_hits, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&reader->guest_amount, amount, memory_order_relaxed);
    } else {
        uint64_t hits = atomic_load_explicit(&reader->hits, memory_order_relaxed);
        uint64_t sum = atomic_load_explicit(&reader->amount, memory_order_relaxed);
        atomic_store_explicit(&reader->hits, hits + 1, memory_order_relaxed);
        atomic_store_explicit(&reader->amount, sum + amount, memory_order_relaxed);
    }
}
void kn_readers_counted(const kn_readers *readers, uint64_t *out_hits, uint64_t *out_amount);

/* Slots in which, since the start, a moment without readers has not been seen yet. */
typedef struct kn_readers_wait {
    uint64_t unseen[KN_READER_SLOTS / 64];
} kn_readers_wait;
void kn_readers_start(kn_readers *readers, kn_readers_wait *wait);
bool kn_readers_passed(const kn_readers *readers, kn_readers_wait *wait);

#endif
