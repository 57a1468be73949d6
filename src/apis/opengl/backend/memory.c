/* Buffers, and moving bytes in and out of them. A context runs everything in order, so these only
 * need OpenGL's barriers; they return when the bytes have been taken or delivered. */
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/opengl.h"
#include "base/diag.h"

kiln_status kn_gl_buffer_create(void *opaque, size_t size, void **out_buffer, kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)opaque;
    const kn_gl_api *gl = &device->unit->gl;
    const uint64_t limit = device->unit->limits.buffer_bytes;
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (size > PTRDIFF_MAX || (limit > 0 && size > limit)) {
        return kiln_diag_set(diag, KILN_E_NOMEM, "use smaller buffers", "opengl buffer",
                             "this driver's storage buffers have at most %llu bytes",
                             (unsigned long long)limit);
    }
    kn_gl_buffer *buffer = (kn_gl_buffer *)calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "opengl buffer");
    }
    buffer->size = size;
    gl->glGenBuffers(1, &buffer->name);
    gl->glBindBuffer(GL_COPY_WRITE_BUFFER, buffer->name);
    /* A word more than asked for: shaders may read bytes as whole words. */
    gl->glBufferData(GL_COPY_WRITE_BUFFER, (GLsizeiptr)((size + 3) & ~(size_t)3), NULL,
                     GL_DYNAMIC_DRAW);
    status = kn_gl_check(gl, "glBufferData", diag);
    if (status != KILN_OK) {
        gl->glDeleteBuffers(1, &buffer->name);
        free(buffer);
        return status;
    }
    *out_buffer = buffer;
    return KILN_OK;
}

/* OpenGL keeps the storage until work that uses it is done. */
void kn_gl_buffer_destroy(void *opaque, void *handle)
{
    const kn_gl_device *device = (const kn_gl_device *)opaque;
    kn_gl_buffer *buffer = (kn_gl_buffer *)handle;
    if (kn_gl_enter(device->owner, device->unit, NULL) == KILN_OK) {
        device->unit->gl.glDeleteBuffers(1, &buffer->name);
    }
    free(buffer);
}

/* A queue is the device's context, which has only one order. */
kiln_status kn_gl_queue_create(void *device, void **out_queue, kiln_diag *diag)
{
    (void)diag;
    *out_queue = device;
    return KILN_OK;
}

void kn_gl_queue_destroy(void *device, void *queue)
{
    (void)device;
    (void)kn_gl_queue_finish(queue, NULL) /* a failure shows in what waits */;
}

kiln_status kn_gl_queue_finish(void *queue, kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)queue;
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    if (status != KILN_OK) {
        return status;
    }
    device->unit->gl.glFinish();
    return kn_gl_check(&device->unit->gl, "glFinish", diag);
}

static kiln_status finish_copy(const kn_gl_device *device, const char *what, void **out_event,
                               kiln_diag *diag)
{
    kiln_status status = kn_gl_check(&device->unit->gl, what, diag);
    if (status != KILN_OK || out_event == NULL) {
        return status;
    }
    kn_gl_event *event = kn_gl_event_begin(device->unit, diag);
    if (event == NULL) {
        return KILN_E_NOMEM;
    }
    kn_gl_event_end(device->unit, event);
    *out_event = event;
    return KILN_OK;
}

kiln_status kn_gl_queue_write(void *queue, void *buffer, size_t offset, const void *data,
                              size_t size, void **out_event, kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)queue;
    const kn_gl_api *gl = &device->unit->gl;
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    if (status != KILN_OK) {
        return status;
    }
    gl->glBindBuffer(GL_COPY_WRITE_BUFFER, ((const kn_gl_buffer *)buffer)->name);
    gl->glBufferSubData(GL_COPY_WRITE_BUFFER, (GLintptr)offset, (GLsizeiptr)size, data);
    return finish_copy(device, "glBufferSubData", out_event, diag);
}

kiln_status kn_gl_queue_read(void *queue, void *buffer, size_t offset, void *data, size_t size,
                             void **out_event, kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)queue;
    const kn_gl_api *gl = &device->unit->gl;
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    if (status != KILN_OK) {
        return status;
    }
    gl->glBindBuffer(GL_COPY_READ_BUFFER, ((const kn_gl_buffer *)buffer)->name);
    gl->glGetBufferSubData(GL_COPY_READ_BUFFER, (GLintptr)offset, (GLsizeiptr)size, data);
    return finish_copy(device, "glGetBufferSubData", out_event, diag);
}

kiln_status kn_gl_queue_fill(void *queue, void *buffer, size_t offset, const void *pattern,
                             size_t pattern_size, size_t size, kiln_diag *diag)
{
    static const struct {
        size_t size;
        GLenum internal, format, type;
    } rows[] = {
        {1, GL_R8UI, GL_RED_INTEGER, GL_UNSIGNED_BYTE},
        {2, GL_R16UI, GL_RED_INTEGER, GL_UNSIGNED_SHORT},
        {4, GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT},
        {8, GL_RG32UI, GL_RG_INTEGER, GL_UNSIGNED_INT},
        {16, GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT},
    };
    const kn_gl_device *device = (const kn_gl_device *)queue;
    const kn_gl_api *gl = &device->unit->gl;
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    if (status != KILN_OK) {
        return status;
    }
    size_t row = 0;
    while (row < 4 && rows[row].size != pattern_size) {
        row++;
    }
    gl->glBindBuffer(GL_COPY_WRITE_BUFFER, ((const kn_gl_buffer *)buffer)->name);
    gl->glClearBufferSubData(GL_COPY_WRITE_BUFFER, rows[row].internal, (GLintptr)offset,
                             (GLsizeiptr)size, rows[row].format, rows[row].type, pattern);
    return kn_gl_check(gl, "glClearBufferSubData", diag);
}

kiln_status kn_gl_queue_copy(void *queue, void *from, size_t from_offset, void *to,
                             size_t to_offset, size_t size, kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)queue;
    const kn_gl_api *gl = &device->unit->gl;
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    if (status != KILN_OK) {
        return status;
    }
    gl->glBindBuffer(GL_COPY_READ_BUFFER, ((const kn_gl_buffer *)from)->name);
    gl->glBindBuffer(GL_COPY_WRITE_BUFFER, ((const kn_gl_buffer *)to)->name);
    gl->glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, (GLintptr)from_offset,
                            (GLintptr)to_offset, (GLsizeiptr)size);
    return kn_gl_check(gl, "glCopyBufferSubData", diag);
}
