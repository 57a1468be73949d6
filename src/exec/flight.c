/* Single flight in a process and between processes. Must not know what is made, or where results
 * are kept. */
#include "exec/flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
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
    kn_lock_file *lock; /* the leader's, open while it waits for or holds the byte */
};

struct kn_flight {
    kn_mutex mutex; /* guards the map and all seats but `lock` */
    kn_map seats;
    char *lock_path;
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
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "preparing single flight", NULL);
    }
    kn_mutex_init(&flight->mutex);
    kn_map_init(&flight->seats);
    flight->lock_path = path;
    flight->retain = retain;
    flight->release = release;
    *out_flight = flight;
    return KILN_OK;
}

void kn_flight_destroy(kn_flight *flight)
{
    if (flight != NULL) {
        kn_map_deinit(&flight->seats);
        kn_mutex_deinit(&flight->mutex);
        free(flight->lock_path);
        free(flight);
    }
}

static void copy_diag(kiln_diag *to, const kiln_diag *from)
{
    if (to == NULL) {
        return;
    }
    kiln_diag_clear(to);
    *to = *from;
    to->log = NULL;
    to->log_length = 0;
    kiln_diag_set_log(to, from->log, from->log_length);
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
                copy_diag(diag, &seat->diag);
            }
        }
        get_up(flight, seat);
    }
    kn_mutex_unlock(&flight->mutex);
    return role;
}

/* Keys' bytes start at 2^32; what is below belongs to others. */
static uint64_t offset_of(const uint8_t key[KN_FLIGHT_KEY_SIZE])
{
    return (kn_get_u64(key) & ((UINT64_C(1) << 61) - 1)) | (UINT64_C(1) << 61);
}

/* One pause between two tries, with some jitter, so that those who wait together do not try
 * together.
 */
static void wait_a_little(uint64_t *pause, uint64_t deadline, uint64_t now)
{
    uint64_t jittered = *pause - *pause / 4 + kn_random_u64() % (*pause / 4 + 1);
    kn_clock_sleep(jittered < deadline - now ? jittered : deadline - now);
    *pause = *pause * 2 < LONGEST_PAUSE ? *pause * 2 : LONGEST_PAUSE;
}

kiln_status kn_flight_lock(kn_flight *flight, kn_flight_seat *seat, uint64_t deadline,
                           kn_flight_look *look, void *user, bool *out_waited)
{
    *out_waited = false;
    if (flight->lock_path == NULL) {
        return KILN_E_UNSUPPORTED;
    }
    kn_lock_file *lock = NULL;
    kiln_status status = kn_lock_file_open(flight->lock_path, &lock, NULL);
    uint64_t offset = offset_of(seat->key);
    uint64_t pause = FIRST_PAUSE, start = kn_clock_now();
    bool told = false;
    while (status == KILN_OK) {
        status = kn_lock_try(lock, offset);
        if (status == KILN_OK) {
            seat->lock = lock;
            return KILN_OK;
        }
        if (status != KILN_E_BUSY) {
            break;
        }
        *out_waited = true;
        uint64_t now = kn_clock_now();
        if (look(user)) {
            status = KILN_MISS;
        } else if (now >= deadline) {
            status = KILN_E_TIMEOUT;
        } else {
            if (!told && now - start > TELL_AFTER) {
                told = true;
                kn_log(KILN_LOG_INFO, "another process is compiling the same: waiting for it");
            }
            wait_a_little(&pause, deadline, now);
            status = KILN_OK;
        }
    }
    if (lock != NULL) {
        kn_lock_file_close(lock);
    }
    return status;
}

void kn_flight_leave(kn_flight *flight, kn_flight_seat *seat, kiln_status status, void *result,
                     const kiln_diag *diag)
{
    if (seat->lock != NULL) {
        /* By name, not only by closing: a child that was forked meanwhile shares the descriptor. */
        kn_lock_drop(seat->lock, offset_of(seat->key));
        kn_lock_file_close(seat->lock);
        seat->lock = NULL;
    }
    kn_mutex_lock(&flight->mutex);
    seat->done = true;
    seat->status = status;
    if (status == KILN_OK && seat->people > 1) {
        seat->result = flight->retain(result);
    } else if (status != KILN_OK && seat->people > 1 && diag != NULL) {
        copy_diag(&seat->diag, diag);
    }
    (void)kn_map_remove(&flight->seats, seat->key, KN_FLIGHT_KEY_SIZE);
    kn_cond_broadcast(&seat->landed);
    get_up(flight, seat);
    kn_mutex_unlock(&flight->mutex);
}
