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
#include "sys/process.h"
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
    bool claimed;
    kiln_status status;
    void *result;
    kiln_diag diag;
    kn_lock_file *lock; /* the leader's, while it holds a byte */
};

struct kn_flight {
    kn_mutex mutex; /* guards the map and all seats but `lock` */
    kn_map seats;
    size_t claims; /* of the seats */
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
        return kn_no_memory(diag, "preparing single flight");
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

static kn_flight_seat *take_seat(kn_flight *flight, const uint8_t key[KN_FLIGHT_KEY_SIZE],
                                 bool claimed)
{
    kn_flight_seat *seat = calloc(1, sizeof *seat);
    if (seat == NULL || !kn_map_put(&flight->seats, key, KN_FLIGHT_KEY_SIZE, seat, NULL)) {
        free(seat);
        return NULL;
    }
    memcpy(seat->key, key, KN_FLIGHT_KEY_SIZE);
    seat->leader = kn_thread_self();
    seat->people = 1;
    seat->claimed = claimed;
    flight->claims += claimed ? 1 : 0;
    seat->diag = (kiln_diag)KILN_DIAG_INIT;
    kn_cond_init(&seat->landed);
    return seat;
}

/* With the mutex held: whether this thread has a claim besides `but`. */
static bool has_claim(const kn_flight *flight, const kn_flight_seat *but)
{
    size_t cursor = 0;
    void *value = NULL;
    while (flight->claims > 0 && kn_map_next(&flight->seats, &cursor, NULL, NULL, &value)) {
        const kn_flight_seat *seat = value;
        if (seat != but && seat->claimed && seat->leader == kn_thread_self()) {
            return true;
        }
    }
    return false;
}

kn_flight_role kn_flight_claim(kn_flight *flight, const uint8_t key[KN_FLIGHT_KEY_SIZE],
                               kn_flight_seat **out_seat)
{
    kn_mutex_lock(&flight->mutex);
    const bool is_free = kn_map_find(&flight->seats, key, KN_FLIGHT_KEY_SIZE) == NULL;
    *out_seat = is_free ? take_seat(flight, key, true) : NULL;
    kn_mutex_unlock(&flight->mutex);
    return *out_seat != NULL ? KN_FLIGHT_LEADER : KN_FLIGHT_ALONE;
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
        *out_seat = take_seat(flight, key, false);
        role = *out_seat != NULL ? KN_FLIGHT_LEADER : KN_FLIGHT_ALONE;
    } else if (seat->leader == kn_thread_self() || seat->claimed || has_claim(flight, NULL)) {
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
 * those above 2^60. What is below belongs to others. */
#define LEVELS 4u

static uint64_t byte_of(const uint8_t key[KN_FLIGHT_KEY_SIZE], uint32_t level)
{
    const uint64_t first = UINT64_C(1) << 61, further = UINT64_C(1) << 60;
    const uint64_t number = kn_get_u64(key);
    return level == 0 ? first | (number & (first - 1))
                      : further | (number & (further - 1) & ~UINT64_C(7)) | level;
}

/* The byte that a claim's process holds besides, with its number in it: those who descend from it
 * know it by that. One that is taken for another's costs a compile. */
#define OWNERS 22u /* Linux' largest number of a process has so many bits */

static uint64_t owner_of(const uint8_t key[KN_FLIGHT_KEY_SIZE], uint64_t space, uint32_t process)
{
    const uint64_t base = UINT64_C(1) << 59, number = UINT64_C(1) << OWNERS;
    return base | (((kn_get_u64(key) ^ space) & (base - 1)) & ~(number - 1)) |
           (process & (number - 1));
}

static uint64_t pulse_of(const uint8_t key[KN_FLIGHT_KEY_SIZE], uint32_t level)
{
    return kn_get_u64(key) * LEVELS + level;
}

#define ANCESTORS 32u

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
    bool has_claim;           /* another one of this thread's: it does not wait */
    uint32_t self[ANCESTORS]; /* this process and its ancestors, once it waits */
    size_t ancestors;
    uint64_t space;
} approach;

/* Until a holder has closed the lock file, or else one pause between two tries, with some jitter,
 * so that those who wait together do not try together. */
static void wait_a_little(approach *a, uint64_t deadline, uint64_t now)
{
    const uint64_t jittered = a->pause - a->pause / 4 + kn_random_u64() % (a->pause / 4 + 1);
    (void)kn_lock_wait(a->lock, a->path, jittered < deadline - now ? jittered : deadline - now);
    a->pause = a->pause * 2 < LONGEST_PAUSE ? a->pause * 2 : LONGEST_PAUSE;
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
    /* Others have passed the holder over before. It may be gone now, but not its successor. */
    while (a->level + 1 < LEVELS && kn_lock_is_held(a->lock, byte_of(a->key, a->level + 1))) {
        pass_over(a);
    }
    return kn_lock_try(a->lock, byte_of(a->key, a->level));
}

/* True when the holder is not to be waited for any longer. */
static bool gives_up_holder(approach *a)
{
    if (!kn_pulse_is_silent(&a->watch, a->lock, pulse_of(a->key, a->level))) {
        return false;
    }
    a->wait->passed_over = true;
    kn_log(KILN_LOG_WARN,
           "another process that compiles the same is stopped or gone for %u ms: no longer "
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

/* Whether it may be this process that the holder waits for. */
static bool may_await_us(approach *a)
{
    if (a->has_claim || kn_lock_is_forkers(a->lock, byte_of(a->key, a->level))) {
        return true;
    }
    if (a->ancestors == 0) {
        a->ancestors = kn_process_ancestry(a->self, ANCESTORS);
        a->space = kn_process_space();
    }
    for (size_t i = 0; i < a->ancestors; i++) {
        if (kn_lock_is_held(a->lock, owner_of(a->key, a->space, a->self[i]))) {
            return true;
        }
    }
    return false;
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
        if (may_await_us(a)) {
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
    kn_mutex_lock(&flight->mutex);
    a.has_claim = has_claim(flight, seat);
    kn_mutex_unlock(&flight->mutex);
    kiln_status status = kn_lock_file_open(flight->lock_path, &a.lock, NULL);
    if (status == KILN_OK) {
        status = wait_for_byte(&a, deadline, look, user);
    }
    if (status == KILN_OK) {
        seat->lock = a.lock;
        if (seat->claimed) {
            /* Held already: by a collision, which says the same. */
            (void)kn_lock_try(a.lock, owner_of(seat->key, kn_process_space(), kn_process_id()));
        }
        kn_pulse_take(a.lock, pulse_of(seat->key, a.level));
    } else {
        kn_lock_file_close(a.lock);
    }
    return status;
}

void kn_flight_leave(kn_flight *flight, kn_flight_seat *seat, kiln_status status, void *result,
                     const kiln_diag *diag)
{
    kn_lock_file_close(seat->lock);
    seat->lock = NULL;
    kn_mutex_lock(&flight->mutex);
    seat->done = true;
    seat->status = status;
    if (status == KILN_OK && seat->people > 1) {
        seat->result = flight->retain(result);
    } else if (status != KILN_OK && seat->people > 1 && diag != NULL) {
        kn_diag_copy(&seat->diag, diag);
    }
    (void)kn_map_remove(&flight->seats, seat->key, KN_FLIGHT_KEY_SIZE);
    flight->claims -= seat->claimed ? 1 : 0;
    kn_cond_broadcast(&seat->landed);
    get_up(flight, seat);
    kn_mutex_unlock(&flight->mutex);
}
