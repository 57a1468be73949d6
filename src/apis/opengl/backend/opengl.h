/* What the files of the opengl backend share. Written against OpenGL 4.3 and EGL 1.4 from the
 * distribution's headers; nothing is linked. A context lives on one thread, so this backend has no
 * KILN_CAP_ANY_THREAD: its calls come from the thread that core gave it, but those that only report
 * what is known. These share nothing that changes but the list of modules, which has the lock. */
#ifndef KILN_OPENGL_BACKEND_OPENGL_H
#define KILN_OPENGL_BACKEND_OPENGL_H

#define EGL_EGL_PROTOTYPES 0
#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include "apis/opengl/backend/api.h"
#include "apis/opengl/backend/flatten.h"
#include "hal/glsl.h"
#include "sys/dylib.h"
#include "sys/thread.h"

typedef struct kn_egl_api {
#define X(need, type, name) type name;
#include "apis/opengl/backend/egl.def"
#undef X
} kn_egl_api;

enum { KN_GL_MAX_UNITS = 32, KN_GL_MAX_BUFFERS = 32, KN_GL_MAX_VALUES = 32 };

typedef struct kn_gl_limits {
    kn_glsl_groups groups;
    uint32_t local_bytes, bindings;
    uint64_t buffer_bytes;
    uint32_t storage_align, uniform_align;
    bool timestamps;
} kn_gl_limits;

/* One EGL device with a context of ours. */
typedef struct kn_gl_unit {
    EGLDisplay display;
    EGLContext context;
    const char *path; /* "device" or "surfaceless": the EGL platform */
    kn_gl_api gl;
    kn_gl_facts facts;
    kn_gl_limits limits;
    kiln_device_info info;
    char *modules; /* identity: NULL until the device is opened or asked for */
} kn_gl_unit;

typedef struct kn_gl {
    const kiln_host *host;
    kn_dylib *library;
    kn_egl_api egl;
    kn_gl_unit units[KN_GL_MAX_UNITS];
    uint32_t unit_count;
    const kn_gl_unit *current;
    kn_mutex lock; /* of the units' modules */
} kn_gl;

typedef struct kn_gl_device {
    kn_gl *owner;
    kn_gl_unit *unit;
} kn_gl_device;

typedef struct kn_gl_buffer {
    GLuint name;
    size_t size;
} kn_gl_buffer;

typedef struct kn_gl_event {
    GLsync fence; /* NULL: done */
    GLuint times[2];
    uint64_t host_start, host_end;
} kn_gl_event;

/* reflect.c: what a linked program takes. */
typedef struct kn_gl_binding {
    uint32_t binding;
    bool uniform; /* a uniform block instead of a storage buffer */
} kn_gl_binding;

typedef struct kn_gl_value {
    GLint location;
    GLenum type;
    GLint count; /* array size */
    char name[64];
} kn_gl_value;

typedef struct kn_gl_interface {
    kn_gl_binding bindings[KN_GL_MAX_BUFFERS]; /* by binding */
    size_t binding_count;
    kn_gl_value values[KN_GL_MAX_VALUES]; /* by location */
    size_t value_count;
    uint32_t local[3];
} kn_gl_interface;

kiln_status kn_gl_reflect(const kn_gl_api *gl, GLuint program, const char *name,
                          kn_gl_interface *out_interface, kiln_diag *diag);
/* Bytes and GLSL name of a value; 0 if it is of a type that kiln does not set. */
size_t kn_gl_value_size(const kn_gl_value *value, const char **out_type);
void kn_gl_value_set(const kn_gl_api *gl, GLuint program, const kn_gl_value *value,
                     const void *data);

/* probe.c, unit.c */
kiln_status kn_gl_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                       kiln_diag *diag);
void kn_gl_close(void *instance);
/* A context of ours on an EGL display, current and described; false with the reason. */
bool kn_gl_unit_init(kn_gl *gl, EGLDisplay display, const char *path, kn_gl_unit *unit, char *why,
                     size_t why_size);
void kn_gl_unit_describe(kn_gl_unit *unit, uint32_t index);
/* Makes a device's context the current one. */
kiln_status kn_gl_enter(kn_gl *gl, const kn_gl_unit *unit, kiln_diag *diag);

#define KN_OPERATION(name) kn_gl_##name
#include "hal/operations.h"

/* target.c: sees to it that unit->modules is there. */
kiln_status kn_gl_unit_modules(kn_gl *gl, kn_gl_unit *unit, kiln_diag *diag);

/* program.c: a text, and one linked program for each work-group size that was launched. */
typedef struct kn_gl_variant {
    uint32_t local[3]; /* asked for; zeros where the text fixes the size */
    GLuint program;
    kn_gl_interface interface;
} kn_gl_variant;
typedef struct kn_gl_program kn_gl_program;
/* The linked program for a launch; linked now if this size is new. */
kiln_status kn_gl_program_variant(kn_gl_program *program, const kiln_sys_launch *launch,
                                  const kn_gl_variant **out_variant, kiln_diag *diag);

/* event.c: an event for work given to GL from here on; `begin` before it, `end` after it. NULL: no
 * memory.
 */
kn_gl_event *kn_gl_event_begin(const kn_gl_unit *unit, kiln_diag *diag);
void kn_gl_event_end(const kn_gl_unit *unit, kn_gl_event *event);

#endif
