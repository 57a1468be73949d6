/* Single flight in a process and between processes. This file must not know what is made, or where
 * results are kept. */
#include "exec/flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "exec/pulse.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/random.h"
#include "sys/thread.h"

#define MS UINT64_C(1000000)
#define FIRST_PAUSE MS
#define LONGEST_PAUSE (50 * MS)
#define TELL_AFTER (2000 * MS)

/* The seat is what a key's leader and followers share. It lives until the last has left. */
struct kn_flight_seat {
    uint8_t key[KN_FLIGHT_KEY_SIZE];
    uintptr_t leader; /* thread */
    kn_cond landed;
    size_t people;
    bool done;
    kiln_status status;
    void *result;
    kiln_diag diag;
    kn_lock_file *lock; /* the leader's, while it holds a byte */
    uint64_t byte;
    kn_pulse_beat beat;
};

struct kn_flight {
    kn_mutex mutex; /* guards the map and all seats but `lock` */
    kn_map seats;
    char *lock_path;
    kn_pulse pulse;
    void *(*retain)(void *result);
    void (*release)(void *result);
};

kiln_status kn_flight_create(const char *lock_path, void *(*retain)(void *result),
                             void (*release)(void *result), kn_flight **out_flight, kiln_diag *diag)
{
    *out_flight = NULL;
    kn_flight *flight = calloc(1, sizeof *flight);
    char *path = lock_path != NULL ? kn_text_copy(lock_path) : NULL;
    if (flight == NULL || (lock_path != NULL && path == NULL)) {
        free(flight);
        free(path);
        return kn_no_memory(diag, "preparing single flight");
    }
    kn_mutex_init(&flight->mutex);
    kn_map_init(&flight->seats);
    kn_pulse_init(&flight->pulse);
    flight->lock_path = path;
    flight->retain = retain;
    flight->release = release;
    *out_flight = flight;
    return KILN_OK;
}

void kn_flight_destroy(kn_flight *flight)
{
    if (flight != NULL) {
        kn_pulse_deinit(&flight->pulse);
        kn_map_deinit(&flight->seats);
        kn_mutex_deinit(&flight->mutex);
        free(flight->lock_path);
        free(flight);
    }
}

/* With the mutex held: one person less; the last one clears the seat away. */
static void get_up(kn_flight *flight, kn_flight_seat *seat)
{
    seat->people--;
    if (seat->people > 0) {
        return;
    }
    if (seat->result != NULL) {
        flight->release(seat->result);
    }
    kn_cond_deinit(&seat->landed);
    kiln_diag_clear(&seat->diag);
    free(seat);
}

static kn_flight_seat *take_seat(kn_flight *flight, const uint8_t key[KN_FLIGHT_KEY_SIZE])
{
    kn_flight_seat *seat = calloc(1, sizeof *seat);
    if (seat == NULL || !kn_map_put(&flight->seats, key, KN_FLIGHT_KEY_SIZE, seat, NULL)) {
        free(seat);
        return NULL;
    }
    memcpy(seat->key, key, KN_FLIGHT_KEY_SIZE);
    seat->leader = kn_thread_self();
    seat->people = 1;
    seat->diag = (kiln_diag)KILN_DIAG_INIT;
    kn_cond_init(&seat->landed);
    return seat;
}

kn_flight_role kn_flight_enter(kn_flight *flight, const uint8_t key[KN_FLIGHT_KEY_SIZE],
                               uint64_t deadline, kn_flight_seat **out_seat, void **out_result,
                               kiln_status *out_status, kiln_diag *diag)
{
    *out_seat = NULL;
    *out_result = NULL;
    *out_status = KILN_OK;
    kn_flight_role role = KN_FLIGHT_FOLLOWER;

    kn_mutex_lock(&flight->mutex);
    kn_flight_seat *seat = kn_map_find(&flight->seats, key, KN_FLIGHT_KEY_SIZE);
    if (seat == NULL) {
        *out_seat = take_seat(flight, key);
        role = *out_seat != NULL ? KN_FLIGHT_LEADER : KN_FLIGHT_ALONE;
    } else if (seat->leader == kn_thread_self()) {
        role = KN_FLIGHT_ALONE;
    } else {
        seat->people++;
        while (!seat->done && role == KN_FLIGHT_FOLLOWER) {
            if (!kn_cond_wait_until(&seat->landed, &flight->mutex, deadline) && !seat->done) {
                role = KN_FLIGHT_TIMED_OUT;
            }
        }
        if (role == KN_FLIGHT_FOLLOWER) {
            *out_status = seat->status;
            if (seat->status == KILN_OK) {
                *out_result = flight->retain(seat->result);
            } else {
                kn_diag_copy(diag, &seat->diag);
            }
        }
        get_up(flight, seat);
    }
    kn_mutex_unlock(&flight->mutex);
    return role;
}

/* --- among processes -------------------------------------------------------------------------- */

/* The bytes of a key. The first holder has the one above 2^61; who passes it over has the next of
 * eight above 2^60, of which each has a pulse. What is below belongs to others. */
#define LEVELS 4u

static uint64_t byte_of(const uint8_t key[KN_FLIGHT_KEY_SIZE], uint32_t level)
{
    const uint64_t first = UINT64_C(1) << 61, further = UINT64_C(1) << 60;
    const uint64_t number = kn_get_u64(key);
    return level == 0 ? first | (number & (first - 1))
                      : further | (number & (further - 1) & ~UINT64_C(7)) | level;
}

static uint64_t pulse_of(const uint8_t key[KN_FLIGHT_KEY_SIZE], uint32_t level)
{
    return byte_of(key, LEVELS + level);
}

/* A leader on its way to a byte. */
typedef struct approach {
    const char *path;
    const uint8_t *key;
    kn_lock_file *lock;
    uint32_t level;
    kn_pulse_watch watch; /* of the holder at this level */
    kn_flight_wait *wait;
    uint64_t start, pause;
    bool said;
} approach;

/* Until a holder has closed the lock file, or else one pause between two tries, with some jitter,
 * so that those who wait together do not try together. */
static void wait_a_little(approach *a, uint64_t deadline, uint64_t now)
{
    const uint64_t jittered = a->pause - a->pause / 4 + kn_random_u64() % (a->pause / 4 + 1);
    (void)kn_lock_wait(a->lock, a->path, jittered < deadline - now ? jittered : deadline - now);
    a->pause = a->pause * 2 < LONGEST_PAUSE ? a->pause * 2 : LONGEST_PAUSE;
}

static bool has_successor(const approach *a)
{
    return a->level + 1 < LEVELS && kn_lock_is_held(a->lock, byte_of(a->key, a->level + 1));
}

/* To the next byte: its holder is the one to wait for, or this process takes it. */
static void pass_over(approach *a)
{
    a->level++;
    a->watch = (kn_pulse_watch){.since = 0};
    a->pause = FIRST_PAUSE;
}

/* KILN_E_BUSY: another is at work. KILN_OK, KILN_E_UNSUPPORTED, KILN_E_IO: go on. */
static kiln_status try_byte(approach *a)
{
    const uint64_t byte = byte_of(a->key, a->level);
    kiln_status status = kn_lock_try(a->lock, byte);
    if (status == KILN_OK && has_successor(a)) {
        /* The one that was passed over is gone, and the one who did that is not. */
        kn_lock_drop(a->lock, byte);
        status = KILN_E_BUSY;
    }
    return status;
}

/* True when the holder is not to be waited for any longer. */
static bool gives_up_holder(approach *a)
{
    if (has_successor(a)) { /* others have seen it before */
        pass_over(a);
        return false;
    }
    if (!kn_pulse_is_silent(&a->watch, a->lock, pulse_of(a->key, a->level))) {
        return false;
    }
    a->wait->passed_over = true;
    kn_log(KILN_LOG_WARN,
           "another process that compiles the same has shown no activity for %u ms: no longer "
           "waiting for it",
           (unsigned)(KN_PULSE_SILENT_NS / MS));
    if (a->level + 1 == LEVELS) {
        return true;
    }
    pass_over(a);
    return false;
}

static void say_that_it_waits(approach *a, uint64_t now)
{
    if (!a->said && now - a->start > TELL_AFTER) {
        a->said = true;
        kn_log(KILN_LOG_INFO, "waiting for another process that compiles the same");
    }
}

/* Until the byte is taken, or need not be. */
static kiln_status wait_for_byte(approach *a, uint64_t deadline, kn_flight_look *look, void *user)
{
    for (;;) {
        kiln_status status = try_byte(a);
        if (status != KILN_E_BUSY) {
            return status;
        }
        a->wait->waited = true;
        if (kn_lock_is_forkers(a->lock, byte_of(a->key, a->level))) {
            return KILN_E_BUSY;
        }
        const uint64_t now = kn_clock_now();
        if (look(user)) {
            return KILN_MISS;
        }
        if (now >= deadline || gives_up_holder(a)) {
            return KILN_E_TIMEOUT;
        }
        say_that_it_waits(a, now);
        wait_a_little(a, deadline, now);
    }
}

kiln_status kn_flight_lock(kn_flight *flight, kn_flight_seat *seat, uint64_t deadline,
                           kn_flight_look *look, void *user, kn_flight_wait *out_wait)
{
    *out_wait = (kn_flight_wait){.waited = false};
    if (flight->lock_path == NULL) {
        return KILN_E_UNSUPPORTED;
    }
    approach a = {.path = flight->lock_path,
                  .key = seat->key,
                  .wait = out_wait,
                  .start = kn_clock_now(),
                  .pause = FIRST_PAUSE};
    kiln_status status = kn_lock_file_open(flight->lock_path, &a.lock, NULL);
    if (status == KILN_OK) {
        status = wait_for_byte(&a, deadline, look, user);
    }
    if (status == KILN_OK) {
        seat->lock = a.lock;
        seat->byte = byte_of(seat->key, a.level);
        kn_pulse_add(&flight->pulse, &seat->beat, a.lock, pulse_of(seat->key, a.level));
    } else {
        kn_lock_file_close(a.lock);
    }
    return status;
}

void kn_flight_leave(kn_flight *flight, kn_flight_seat *seat, kiln_status status, void *result,
                     const kiln_diag *diag)
{
    if (seat->lock != NULL) {
        /* By name, not only by closing: a child that was forked meanwhile shares the descriptor. */
        kn_pulse_remove(&flight->pulse, &seat->beat);
        kn_lock_drop(seat->lock, seat->byte);
        kn_lock_file_close(seat->lock);
        seat->lock = NULL;
    }
    kn_mutex_lock(&flight->mutex);
    seat->done = true;
    seat->status = status;
    if (status == KILN_OK && seat->people > 1) {
        seat->result = flight->retain(result);
    } else if (status != KILN_OK && seat->people > 1 && diag != NULL) {
        kn_diag_copy(&seat->diag, diag);
    }
    (void)kn_map_remove(&flight->seats, seat->key, KN_FLIGHT_KEY_SIZE);
    kn_cond_broadcast(&seat->landed);
    get_up(flight, seat);
    kn_mutex_unlock(&flight->mutex);
}
