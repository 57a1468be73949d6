/* Events: a fence, and two time stamps where the driver has them; else the host's clock. */
#include <stdlib.h>

#include "apis/opengl/backend/opengl.h"
#include "base/diag.h"
#include "sys/clock.h"

#define WAIT_SLICE_NS 1000000000ull

kn_gl_event *kn_gl_event_begin(const kn_gl_unit *unit, kiln_diag *diag)
{
    kn_gl_event *event = (kn_gl_event *)calloc(1, sizeof(*event));
    if (event == NULL) {
        (void)kn_no_memory(diag, "opengl");
        return NULL;
    }
    event->host_start = kn_clock_now();
    if (unit->limits.timestamps) {
        unit->gl.glGenQueries(2, event->times);
        unit->gl.glQueryCounter(event->times[0], GL_TIMESTAMP);
    }
    return event;
}

void kn_gl_event_end(const kn_gl_unit *unit, kn_gl_event *event)
{
    if (event->times[1] != 0) {
        unit->gl.glQueryCounter(event->times[1], GL_TIMESTAMP);
    }
    event->fence = unit->gl.glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    unit->gl.glFlush(); /* so that it gets there without being waited for */
}

static void finish_event(const kn_gl_unit *unit, kn_gl_event *event)
{
    unit->gl.glDeleteSync(event->fence);
    event->fence = NULL;
    event->host_end = kn_clock_now();
}

bool kn_gl_event_done(void *opaque, void *handle)
{
    const kn_gl_device *device = (const kn_gl_device *)opaque;
    kn_gl_event *event = (kn_gl_event *)handle;
    if (event->fence == NULL || kn_gl_enter(device->owner, device->unit, NULL) != KILN_OK) {
        return true;
    }
    if (device->unit->gl.glClientWaitSync(event->fence, 0, 0) == GL_TIMEOUT_EXPIRED) {
        return false;
    }
    finish_event(device->unit, event);
    return true;
}

kiln_status kn_gl_event_wait(void *opaque, void *handle, kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)opaque;
    kn_gl_event *event = (kn_gl_event *)handle;
    const kn_gl_api *gl = &device->unit->gl;
    GLenum answer = GL_TIMEOUT_EXPIRED;
    if (event->fence == NULL) {
        return KILN_OK;
    }
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    while (status == KILN_OK && answer == GL_TIMEOUT_EXPIRED) {
        answer = gl->glClientWaitSync(event->fence, GL_SYNC_FLUSH_COMMANDS_BIT, WAIT_SLICE_NS);
    }
    if (status == KILN_OK && answer == GL_WAIT_FAILED) {
        status = kn_gl_fail(gl->glGetError(), "glClientWaitSync", diag);
    }
    if (status == KILN_OK) {
        finish_event(device->unit, event);
    }
    return status;
}

kiln_status kn_gl_event_elapsed(void *opaque, void *handle, uint64_t *out_ns, kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)opaque;
    kn_gl_event *event = (kn_gl_event *)handle;
    const kn_gl_api *gl = &device->unit->gl;
    GLuint64 times[2] = {0, 0};
    kiln_status status = kn_gl_event_wait(opaque, handle, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (event->times[1] == 0) {
        *out_ns = event->host_end - event->host_start;
        return KILN_OK;
    }
    status = kn_gl_enter(device->owner, device->unit, diag);
    if (status != KILN_OK) {
        return status;
    }
    for (size_t i = 0; i < 2; i++) {
        gl->glGetQueryObjectui64v(event->times[i], GL_QUERY_RESULT, &times[i]);
    }
    *out_ns = times[1] > times[0] ? times[1] - times[0] : 0;
    return kn_gl_check(gl, "glGetQueryObjectui64v", diag);
}

void kn_gl_event_destroy(void *opaque, void *handle)
{
    const kn_gl_device *device = (const kn_gl_device *)opaque;
    kn_gl_event *event = (kn_gl_event *)handle;
    if (event == NULL) {
        return;
    }
    if (kn_gl_enter(device->owner, device->unit, NULL) == KILN_OK) {
        if (event->fence != NULL) {
            device->unit->gl.glDeleteSync(event->fence);
        }
        if (event->times[1] != 0) {
            device->unit->gl.glDeleteQueries(2, event->times);
        }
    }
    free(event);
}
