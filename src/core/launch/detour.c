/* The detour: whole buffers through the host, in the order of the queue. Slow, and right. */
#include "core/launch/detour.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "core/launch/buffer.h"
#include "sys/clock.h"

/* A buffer of the launch and what stands for it on the other device. */
typedef struct pair {
    kiln_buffer *here, *there;
    const void *handle; /* here */
    size_t size;
} pair;

typedef struct detour {
    kiln_queue *here, *there;
    kiln_arg *args;
    pair *pairs;
    size_t pair_count;
    void *bytes; /* room for the largest buffer */
} detour;

static kiln_buffer *other_of(const detour *d, const kiln_buffer *here)
{
    for (size_t i = 0; i < d->pair_count; i++) {
        /* Two views of one buffer are one buffer. */
        if (d->pairs[i].handle == here->handle) {
            return d->pairs[i].there;
        }
    }
    return NULL;
}

/* Brings one buffer over, once however often the launch names it. */
static kiln_status bring_buffer(detour *d, kiln_buffer *here, kiln_buffer **out_there,
                                kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    *out_there = other_of(d, here);
    if (*out_there == NULL) {
        pair *p = &d->pairs[d->pair_count];
        status = kiln_buffer_create(d->there->device, here->size, &p->there, diag);
        if (status == KILN_OK) {
            p->here = here;
            p->handle = here->handle;
            p->size = here->size;
            d->pair_count++;
            *out_there = p->there;
            status = kiln_queue_read(d->here, here, 0, d->bytes, here->size, diag);
        }
        if (status == KILN_OK) {
            status = kiln_queue_write(d->there, p->there, 0, d->bytes, here->size, diag);
        }
    }
    return status;
}

static kiln_status bring_back(const detour *d, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < d->pair_count; i++) {
        const pair *p = &d->pairs[i];
        status = kiln_queue_read(d->there, p->there, 0, d->bytes, p->size, diag);
        if (status == KILN_OK) {
            status = kiln_queue_write(d->here, p->here, 0, d->bytes, p->size, diag);
        }
    }
    return status;
}

static bool reserve_args(detour *d, const kiln_launch *launch)
{
    size_t largest = 1;
    for (size_t i = 0; i < launch->arg_count; i++) {
        const kiln_arg *arg = &launch->args[i];
        if (arg->kind == KILN_ARG_BUFFER && arg->buffer != NULL && arg->buffer->size > largest) {
            largest = arg->buffer->size;
        }
    }
    d->args = (kiln_arg *)calloc(launch->arg_count + 1, sizeof(*d->args));
    d->pairs = (pair *)calloc(launch->arg_count + 1, sizeof(*d->pairs));
    d->bytes = malloc(largest);
    return d->args != NULL && d->pairs != NULL && d->bytes != NULL;
}

/* The arguments as they are there. What no device takes is left to the launch to refuse. */
static kiln_status bring_all(detour *d, const kiln_launch *launch, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < launch->arg_count; i++) {
        d->args[i] = launch->args[i];
        if (launch->args[i].kind == KILN_ARG_BUFFER && launch->args[i].buffer != NULL) {
            status = bring_buffer(d, launch->args[i].buffer, &d->args[i].buffer, diag);
        }
    }
    return status;
}

kiln_status kn_detour_launch(kiln_queue *queue, kiln_program *program, const char *entry,
                             const kiln_launch *launch, uint64_t *out_ns, kiln_diag *diag)
{
    detour d = {.here = queue};
    kn_trace *trace = queue->device->runtime->trace;
    const uint64_t start = kn_clock_now();
    kiln_launch there;
    *out_ns = 0;
    kiln_status status = kiln_queue_create(program->device, &d.there, diag);
    if (status == KILN_OK && !reserve_args(&d, launch)) {
        status = kn_no_memory(diag, entry);
    }
    if (status == KILN_OK) {
        status = bring_all(&d, launch, diag);
    }
    if (status == KILN_OK) {
        there = *launch;
        there.args = d.args;
        status = kiln_queue_launch(d.there, program, entry, &there, NULL, diag);
    }
    if (status == KILN_OK) {
        status = kiln_queue_finish(d.there, diag);
    }
    if (status == KILN_OK) {
        status = bring_back(&d, diag);
    }
    *out_ns = kn_clock_now() - start;
    kn_trace_end(trace, start, "detour", &(kn_trace_about){.what = entry, .device = queue->device});
    for (size_t i = 0; i < d.pair_count; i++) {
        kiln_buffer_destroy(d.pairs[i].there);
    }
    kiln_queue_destroy(d.there);
    free(d.bytes);
    free(d.pairs);
    free(d.args);
    return status;
}
