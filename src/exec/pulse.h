/* The pulse of locks that are held: a byte next to each that is taken and dropped in turn, so that
 * others can distinguish a holder that works from one that is stopped, or from a process that has
 * inherited the lock and does not know it. The system frees the locks of the dead; of the living it
 * says nothing.
 *
 * The beats are a thread's of its own, started with the first lock, so that they go on while the
 * holder computes. It is joined when the last lock is released: a program with one thread may do
 * what one with two may not, such as entering a user namespace. Without memory for a thread there
 * is no pulse. */
#ifndef KILN_EXEC_PULSE_H
#define KILN_EXEC_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/lock.h"
#include "sys/thread.h"

#define KN_PULSE_BEAT_NS UINT64_C(500000000)

/* One lock's; in place while it is held. */
typedef struct kn_pulse_beat {
    struct kn_pulse_beat *next, **link; /* link NULL: not in the list */
    kn_lock_file *lock;
    uint64_t offset;
    bool taken;
} kn_pulse_beat;

typedef struct kn_pulse {
    kn_mutex mutex; /* guards what follows, and the beats */
    kn_cond changed;
    kn_thread *thread;        /* NULL: not started */
    _Atomic uint64_t process; /* that started it; 0: none did. A forked child has no thread */
    bool stops;               /* it is to end, and is waited for */
    kn_pulse_beat *first;
} kn_pulse;

void kn_pulse_init(kn_pulse *pulse);
/* With no beat in it. */
void kn_pulse_deinit(kn_pulse *pulse);
/* `offset` is the byte that beats in `lock`. */
void kn_pulse_add(kn_pulse *pulse, kn_pulse_beat *beat, kn_lock_file *lock, uint64_t offset);
/* Waits for the thread's end where it is the last one. */
void kn_pulse_remove(kn_pulse *pulse, kn_pulse_beat *beat);

/* --- looking at another's --------------------------------------------------------------------- */

/* What was seen of one byte. It is silent when it has not changed for long, by the clock and by the
 * number of looks: who was stopped himself has a late clock and few looks. Zeros to begin. */
typedef struct kn_pulse_watch {
    uint64_t since; /* kn_clock_now; 0: not looked at yet */
    uint32_t looks;
    bool taken;
} kn_pulse_watch;

#define KN_PULSE_SILENT_NS (8 * KN_PULSE_BEAT_NS)
#define KN_PULSE_SILENT_LOOKS 40u

bool kn_pulse_is_silent(kn_pulse_watch *watch, kn_lock_file *lock, uint64_t offset);

#endif
