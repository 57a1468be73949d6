/* Beats for locks that are held, and watching those of others. This file must not know what is
 * locked. */
#include "exec/pulse.h"

#include <stdatomic.h>
#include <stddef.h>

#include "sys/clock.h"
#include "sys/process.h"

void kn_pulse_init(kn_pulse *pulse)
{
    *pulse = (kn_pulse){.thread = NULL};
    kn_mutex_init(&pulse->mutex);
    kn_cond_init(&pulse->changed);
}

void kn_pulse_deinit(kn_pulse *pulse)
{
    kn_cond_deinit(&pulse->changed);
    kn_mutex_deinit(&pulse->mutex);
}

/* A forked child has no such thread, and perhaps a mutex that stays locked: the thread holds it
 * when it begins, or another thread did at the fork. */
static void leave_parent(kn_pulse *pulse)
{
    const uint64_t started = atomic_load(&pulse->process);
    if (started != 0 && started != kn_process_id()) {
        kn_mutex_init(&pulse->mutex);
        kn_cond_init(&pulse->changed);
        pulse->thread = NULL;
        pulse->stops = false;
        atomic_store(&pulse->process, 0);
    }
}

static void beat_once(kn_pulse_beat *beat)
{
    if (beat->taken) {
        kn_lock_drop(beat->lock, beat->offset);
        beat->taken = false;
    } else {
        /* Nobody else takes it, but for a holder that was passed over. */
        beat->taken = kn_lock_try(beat->lock, beat->offset) == KILN_OK;
    }
}

static void beat_until_idle(void *user)
{
    kn_pulse *pulse = user;
    kn_mutex_lock(&pulse->mutex);
    while (!pulse->stops) {
        const uint64_t due = kn_clock_now() + KN_PULSE_BEAT_NS;
        while (!pulse->stops && kn_cond_wait_until(&pulse->changed, &pulse->mutex, due)) {
        }
        for (kn_pulse_beat *beat = pulse->first; beat != NULL; beat = beat->next) {
            beat_once(beat);
        }
    }
    kn_mutex_unlock(&pulse->mutex);
}

/* With the mutex held, which the thread needs to end: who adds a beat meanwhile waits. */
static void end_thread(kn_pulse *pulse)
{
    kn_thread *thread = pulse->thread;
    pulse->stops = true;
    kn_cond_broadcast(&pulse->changed);
    kn_mutex_unlock(&pulse->mutex);
    kn_thread_join_gone(thread);
    kn_mutex_lock(&pulse->mutex);
    pulse->thread = NULL;
    pulse->stops = false;
    kn_cond_broadcast(&pulse->changed);
}

void kn_pulse_add(kn_pulse *pulse, kn_pulse_beat *beat, kn_lock_file *lock, uint64_t offset)
{
    leave_parent(pulse);
    kn_mutex_lock(&pulse->mutex);
    while (pulse->stops) {
        kn_cond_wait(&pulse->changed, &pulse->mutex);
    }
    *beat = (kn_pulse_beat){
        .next = pulse->first, .link = &pulse->first, .lock = lock, .offset = offset};
    if (beat->next != NULL) {
        beat->next->link = &beat->next;
    }
    pulse->first = beat;
    if (pulse->thread == NULL) {
        atomic_store(&pulse->process, kn_process_id());
        if (kn_thread_start(beat_until_idle, pulse, &pulse->thread, NULL) != KILN_OK) {
            pulse->thread = NULL;
        }
    }
    kn_mutex_unlock(&pulse->mutex);
}

void kn_pulse_remove(kn_pulse *pulse, kn_pulse_beat *beat)
{
    leave_parent(pulse);
    kn_mutex_lock(&pulse->mutex);
    if (beat->link != NULL) {
        *beat->link = beat->next;
        if (beat->next != NULL) {
            beat->next->link = beat->link;
        }
        beat->link = NULL;
        if (beat->taken) {
            kn_lock_drop(beat->lock, beat->offset);
        }
        if (pulse->first == NULL && pulse->thread != NULL) {
            end_thread(pulse);
        }
    }
    kn_mutex_unlock(&pulse->mutex);
}

bool kn_pulse_is_silent(kn_pulse_watch *watch, kn_lock_file *lock, uint64_t offset)
{
    const bool taken = kn_lock_is_held(lock, offset);
    const uint64_t now = kn_clock_now();
    if (watch->since == 0 || taken != watch->taken) {
        *watch = (kn_pulse_watch){.since = now, .taken = taken};
        return false;
    }
    watch->looks++;
    return watch->looks >= KN_PULSE_SILENT_LOOKS && now - watch->since >= KN_PULSE_SILENT_NS;
}
