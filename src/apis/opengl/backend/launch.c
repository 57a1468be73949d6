/* Launches: buffers go to the program's bindings in ascending order, the n-th value to the uniform
 * at location n; work-group memory given at launch (KILN_ARG_LOCAL) is not a GLSL notion and is
 * passed over: a shader declares its shared arrays itself. */
#include <string.h>

#include "apis/opengl/backend/opengl.h"

static kiln_status bind_buffer(const kn_gl_device *device, const kn_gl_interface *interface,
                               const kiln_sys_launch *launch, size_t index, size_t place,
                               kiln_diag *diag)
{
    const kiln_sys_arg *arg = &launch->args[index];
    const kn_gl_limits *limits = &device->unit->limits;
    const kn_gl_buffer *buffer = (const kn_gl_buffer *)arg->buffer;
    if (place >= interface->binding_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                             "argument %zu: the shader has %zu buffers, more were given", index,
                             interface->binding_count);
    }
    const kn_gl_binding *binding = &interface->bindings[place];
    const uint32_t align = binding->uniform ? limits->uniform_align : limits->storage_align;
    kiln_status status = kn_glsl_check_offset(launch, index, align, diag);
    if (status != KILN_OK) {
        return status;
    }
    const size_t whole = (buffer->size + 3) & ~(size_t)3;
    device->unit->gl.glBindBufferRange(
        binding->uniform ? GL_UNIFORM_BUFFER : GL_SHADER_STORAGE_BUFFER, binding->binding,
        buffer->name, (GLintptr)arg->offset, (GLsizeiptr)(whole - arg->offset));
    return KILN_OK;
}

static kiln_status bind_value(const kn_gl_device *device, const kn_gl_variant *variant,
                              const kiln_sys_launch *launch, size_t index, size_t place,
                              kiln_diag *diag)
{
    const kiln_sys_arg *arg = &launch->args[index];
    const kn_gl_interface *interface = &variant->interface;
    size_t i = 0;
    while (i < interface->value_count && (size_t)interface->values[i].location != place) {
        i++;
    }
    if (i == interface->value_count) {
        return KILN_OK; /* a value that the shader does not use is not there after linking */
    }
    const char *type = NULL;
    const size_t size = kn_gl_value_size(&interface->values[i], &type);
    kiln_status status =
        kn_glsl_check_value(launch, index, type, interface->values[i].name, size, diag);
    if (status != KILN_OK) {
        return status;
    }
    /* Copied: a value may lie anywhere. */
    double aligned[64];
    if (size > sizeof(aligned)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "put large values in a buffer",
                             launch->entry, "argument %zu has %zu bytes", index, size);
    }
    memcpy(aligned, arg->value, size);
    kn_gl_value_set(&device->unit->gl, variant->program, &interface->values[i], aligned);
    return KILN_OK;
}

static kiln_status bind_args(const kn_gl_device *device, const kn_gl_variant *variant,
                             const kiln_sys_launch *launch, kiln_diag *diag)
{
    const kn_gl_interface *interface = &variant->interface;
    size_t buffers = 0, values = 0;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < launch->arg_count && status == KILN_OK; i++) {
        if (launch->args[i].kind == KILN_ARG_BUFFER) {
            status = bind_buffer(device, interface, launch, i, buffers++, diag);
        } else if (launch->args[i].kind == KILN_ARG_VALUE) {
            status = bind_value(device, variant, launch, i, values++, diag);
        }
    }
    if (status != KILN_OK) {
        return status;
    }
    if (buffers != interface->binding_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                             "the shader takes %zu buffers; %zu were given",
                             interface->binding_count, buffers);
    }
    if (interface->value_count > 0) {
        const kn_gl_value *last = &interface->values[interface->value_count - 1];
        if ((size_t)last->location >= values) {
            return kiln_diag_set(diag, KILN_E_INVALID, "give the n-th value the location n",
                                 launch->entry,
                                 "the shader takes the value %s at location %d; %zu were given",
                                 last->name, last->location, values);
        }
    }
    return KILN_OK;
}

kiln_status kn_gl_queue_launch(void *queue, const kiln_sys_launch *launch, void **out_event,
                               kiln_diag *diag)
{
    const kn_gl_device *device = (const kn_gl_device *)queue;
    const kn_gl_api *gl = &device->unit->gl;
    const kn_gl_variant *variant = NULL;
    kn_gl_event *event = NULL;
    uint32_t groups[3] = {0, 0, 0};
    kiln_status status = kn_gl_enter(device->owner, device->unit, diag);
    if (status == KILN_OK) {
        status = kn_gl_program_variant((kn_gl_program *)launch->program, launch, &variant, diag);
    }
    if (status == KILN_OK) {
        status = kn_glsl_count_groups(&device->unit->limits.groups, launch,
                                      variant->interface.local, groups, diag);
    }
    if (status == KILN_OK) {
        status = bind_args(device, variant, launch, diag);
    }
    if (status == KILN_OK && out_event != NULL) {
        event = kn_gl_event_begin(device->unit, diag);
        status = event != NULL ? KILN_OK : KILN_E_NOMEM;
    }
    if (status != KILN_OK) {
        return status;
    }
    gl->glUseProgram(variant->program);
    gl->glDispatchCompute(groups[0], groups[1], groups[2]);
    gl->glMemoryBarrier(GL_ALL_BARRIER_BITS); /* whatever comes next sees what this writes */
    if (event != NULL) {
        kn_gl_event_end(device->unit, event);
    }
    status = kn_gl_check(gl, "glDispatchCompute", diag);
    if (status != KILN_OK && event != NULL) {
        kn_gl_event_destroy(queue, event);
        return status;
    }
    if (event != NULL) {
        *out_event = event;
    }
    return status;
}
