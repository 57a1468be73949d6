/* Single flight: one works for a key, the others wait for what comes of it.
 *
 *     kn_flight_seat *seat;
 *     switch (kn_flight_enter(flight, key, deadline, &seat, &result, &status, diag)) {
 *     case KN_FLIGHT_FOLLOWER:                       // the leader's result, or its failure
 *         return status;
 *     case KN_FLIGHT_ALONE:
 *         ... work without a seat; nobody waits for it
 *     case KN_FLIGHT_LEADER:
 *         kn_flight_lock(flight, seat, deadline, look, user);  // against other processes
 *         ... work ...
 *         kn_flight_leave(flight, seat, status, result, diag); // in every case
 *     }
 *
 * In this process, followers sleep on a condition variable. Between processes the leaders contend
 * for one byte of a lock file at an offset taken from the key; the kernel frees it when its holder
 * dies. It is tried with pauses from 1 to 50 ms, and at each try the leader looks whether the
 * result has appeared: so it needs neither the lock nor a second compile then. All waiting ends at
 * the deadline. No lock is held while the leader works, except that byte; it may enter other keys.
 * A holder whose process is halted for KN_PULSE_SILENT_NS (pulse.h: stopped, or dead while a child
 * has the lock) is passed over: one of those who wait takes the next of the key's bytes, and the
 * others wait for that one.
 * A thread that enters a key it leads itself works alone. Results are opaque here.
 *
 * A claim is a lead whose work goes on outside the library, perhaps in other threads and processes,
 * which may come back and ask for anything. Two rules keep them from waiting for each other:
 *  - nobody of the claimant's process, and no process that descends from it, waits for a claim;
 *  - a thread that has a claim waits for nobody. */
#ifndef KILN_EXEC_FLIGHT_H
#define KILN_EXEC_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/status.h"

#define KN_FLIGHT_KEY_SIZE 32 /* a digest's: bytes that nobody chooses */

typedef struct kn_flight kn_flight;
typedef struct kn_flight_seat kn_flight_seat;

typedef enum kn_flight_role {
    KN_FLIGHT_LEADER,
    KN_FLIGHT_FOLLOWER,
    KN_FLIGHT_ALONE,     /* led by this very thread, or claimed; this thread has a claim and would
                          * have to wait; no memory for a seat */
    KN_FLIGHT_TIMED_OUT, /* alone, too: the leader took longer than the deadline */
} kn_flight_role;

/* `lock_path` NULL: this process only. `retain` makes a reference of a result's own, `release`
 * drops one. */
kiln_status kn_flight_create(const char *lock_path, void *(*retain)(void *result),
                             void (*release)(void *result), kn_flight **out_flight,
                             kiln_diag *diag);
/* Nobody may be inside. */
void kn_flight_destroy(kn_flight *flight);

/* For a follower, *out_status is the leader's; with KILN_OK *out_result is a reference of the
 * caller's own, otherwise `diag` is a copy of the leader's, log included. `deadline` by
 * kn_clock_now. */
kn_flight_role kn_flight_enter(kn_flight *flight, const uint8_t key[KN_FLIGHT_KEY_SIZE],
                               uint64_t deadline, kn_flight_seat **out_seat, void **out_result,
                               kiln_status *out_status, kiln_diag *diag);

/* A claim, without waiting: KN_FLIGHT_LEADER, or KN_FLIGHT_ALONE where a thread of this process has
 * the key. Any thread may leave it. */
kn_flight_role kn_flight_claim(kn_flight *flight, const uint8_t key[KN_FLIGHT_KEY_SIZE],
                               kn_flight_seat **out_seat);

/* KILN_OK: the byte is held (until leave). KILN_MISS: `look` found the result, nothing is held.
 * KILN_E_TIMEOUT: the deadline passed. KILN_E_BUSY: who holds it may be waiting for this process:
 * the thread that forked it, an ancestor's claim, or anyone where this thread has another claim.
 * KILN_E_UNSUPPORTED, KILN_E_IO: there are no locks here. In
 * all but the second the leader goes on working. */
typedef struct kn_flight_wait {
    bool waited;      /* another held it */
    bool passed_over; /* one whose process is halted */
} kn_flight_wait;
typedef bool kn_flight_look(void *user);
kiln_status kn_flight_lock(kn_flight *flight, kn_flight_seat *seat, uint64_t deadline,
                           kn_flight_look *look, void *user, kn_flight_wait *out_wait);

/* Hands the outcome to the followers: with KILN_OK `result` is borrowed, otherwise `diag` (may be
 * NULL) is copied for each. Drops the byte and the seat. */
void kn_flight_leave(kn_flight *flight, kn_flight_seat *seat, kiln_status status, void *result,
                     const kiln_diag *diag);

#endif
