/* Whether the holder of a lock works on. The system frees the locks of a dead process. But a holder
 * may be stopped (SIGSTOP), or dead while a child that does not know of the lock has inherited it.
 *
 * A holder takes a second byte of the lock file, its pulse. The byte's offset contains the tag of
 * the holder's process (kn_process_tag), so a waiter finds the process and asks the system whether
 * it is halted. The holder does nothing more: a heartbeat would need a thread. A child that
 * inherits the lock inherits the pulse, and with it its parent's tag.
 *
 * A holder counts as working where its process cannot be looked up: in another pid or time
 * namespace, on another host, on Windows, and where it is an earlier kiln. Those took and dropped
 * another byte twice a second; they pass over a holder without that after 4 s and compile, too. */
#ifndef KILN_EXEC_PULSE_H
#define KILN_EXEC_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/lock.h"

/* Takes the pulse of a lock that is held in `file`, until that is closed. Locks that are held at
 * the same time differ in the lowest 26 bits of `id`. */
void kn_pulse_take(kn_lock_file *file, uint64_t id);

/* What was seen of one holder. It is silent when its process has been halted for long, by the clock
 * and by the number of looks: a waiter that was stopped itself has a late clock and few looks.
 * Zeros to begin. */
typedef struct kn_pulse_watch {
    uint64_t since; /* kn_clock_now; 0: not looked at yet */
    uint64_t base;  /* of the lock's pulses; 0: nothing is known here */
    uint32_t looks;
    uint32_t holder; /* its tag; 0: not known */
} kn_pulse_watch;

#define KN_PULSE_SILENT_NS UINT64_C(4000000000)
#define KN_PULSE_SILENT_LOOKS 40u

bool kn_pulse_is_silent(kn_pulse_watch *watch, kn_lock_file *file, uint64_t id);

#endif
