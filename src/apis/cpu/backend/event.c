/* Events: done or not, and how long it took by the host's clock, from the moment the queue's thread
 * began until it was finished. */
#include <stdlib.h>

#include "apis/cpu/backend/device.h"

cpu_event *kn_cpu_event_create(void)
{
    cpu_event *event = (cpu_event *)calloc(1, sizeof(*event));
    if (event != NULL) {
        atomic_init(&event->references, 2u);
        kn_mutex_init(&event->mutex);
        kn_cond_init(&event->cond);
    }
    return event;
}

cpu_event *kn_cpu_event_retain(cpu_event *event)
{
    (void)atomic_fetch_add(&event->references, 1u);
    return event;
}

void kn_cpu_event_release(cpu_event *event)
{
    if (event != NULL && atomic_fetch_sub(&event->references, 1u) == 1u) {
        kn_cond_deinit(&event->cond);
        kn_mutex_deinit(&event->mutex);
        free(event);
    }
}

void kn_cpu_event_complete(cpu_event *event, uint64_t begin_ns, uint64_t end_ns)
{
    kn_mutex_lock(&event->mutex);
    event->begin_ns = begin_ns;
    event->end_ns = end_ns;
    event->done = true;
    kn_cond_broadcast(&event->cond);
    kn_mutex_unlock(&event->mutex);
}

bool kn_cpu_event_done(void *device, void *event)
{
    cpu_event *e = (cpu_event *)event;
    (void)device;
    kn_mutex_lock(&e->mutex);
    const bool done = e->done;
    kn_mutex_unlock(&e->mutex);
    return done;
}

kiln_status kn_cpu_event_wait(void *device, void *event, kiln_diag *diag)
{
    cpu_event *e = (cpu_event *)event;
    (void)device;
    (void)diag; /* what was put in a queue was checked before, and cannot fail */
    kn_mutex_lock(&e->mutex);
    while (!e->done) {
        kn_cond_wait(&e->cond, &e->mutex);
    }
    kn_mutex_unlock(&e->mutex);
    return KILN_OK;
}

kiln_status kn_cpu_event_elapsed(void *device, void *event, uint64_t *out_ns, kiln_diag *diag)
{
    const cpu_event *e = (const cpu_event *)event;
    kiln_status status = kn_cpu_event_wait(device, event, diag);
    if (status == KILN_OK) {
        *out_ns = e->end_ns - e->begin_ns;
    }
    return status;
}

void kn_cpu_event_destroy(void *device, void *event)
{
    (void)device;
    kn_cpu_event_release((cpu_event *)event);
}
