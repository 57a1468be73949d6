/* The OpenGL functions of one context, and what can be done with them alone: facts of the context,
 * programs from text and from binaries. Serves the backend and the level 2 header, so it knows no
 * device, no launch and no cache. Every call needs the context current on the calling thread.
 *
 * kn_gl_class_of is in unit.c. */
#ifndef KILN_OPENGL_BACKEND_API_H
#define KILN_OPENGL_BACKEND_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <GL/glcorearb.h>

#include "kiln/sys/backend.h"

typedef struct kn_gl_api {
#define X(group, type, name) type name;
#include "apis/opengl/backend/gl.def"
#undef X
} kn_gl_api;

typedef enum kn_gl_group { KN_GL_PROGRAM = 0, KN_GL_COMPUTE = 1 } kn_gl_group;

typedef void kn_gl_function(void);
typedef kn_gl_function *kn_gl_get(const char *name);

/* Fills the table up to `group`; the name of the first function that is missing, or NULL. */
const char *kn_gl_bind(kn_gl_get *get, kn_gl_group group, kn_gl_api *out_api);

/* --- facts.c: what a context says of itself --------------------------------------------------- */

enum { KN_GL_MAX_FORMATS = 16 };

typedef struct kn_gl_facts {
    char vendor[KILN_DEVICE_TEXT];
    char renderer[KILN_DEVICE_TEXT];
    char version[KILN_DEVICE_TEXT];
    char glsl[64];
    int major, minor;
    bool es;
    uint32_t profile, flags; /* GL_CONTEXT_PROFILE_MASK, GL_CONTEXT_FLAGS */
    uint32_t formats[KN_GL_MAX_FORMATS];
    size_t format_count; /* 0: this driver gives no program binaries (now) */
} kn_gl_facts;

void kn_gl_facts_query(const kn_gl_api *gl, kn_gl_facts *out_facts);
/* The code-generating libraries behind the context, as sorted lines "name build-id"; malloc'ed. ""
 * for a driver whose version text says it all. */
kiln_status kn_gl_modules_find(const kn_gl_facts *facts, char **out_modules, kiln_diag *diag);
/* OpenGL does not say what kind of device it runs on; its names do. */
kiln_device_class kn_gl_class_of(const kn_gl_facts *facts);
/* Emits everything that a program binary depends on besides its source. */
void kn_gl_identify_context(const kn_gl_facts *facts, const char *modules,
                            const kiln_identity *identity);

/* --- shader.c --------------------------------------------------------------------------------- */

/* GL's error as status and diag; `what` is the call. kn_gl_check gives KILN_OK when there is none;
 * kn_gl_forget drops what is pending. */
kiln_status kn_gl_fail(GLenum code, const char *what, kiln_diag *diag);
kiln_status kn_gl_check(const kn_gl_api *gl, const char *what, kiln_diag *diag);
void kn_gl_forget(const kn_gl_api *gl);

/* One shader from pieces of text. `names` (count of them, each with its NUL, one after the other)
 * stand for the string numbers in the compiler's log. *out_log: warnings, malloc'ed, or NULL. */
typedef struct kn_gl_names {
    const char *text;
    size_t size;
} kn_gl_names;
kiln_status kn_gl_compile_shader(const kn_gl_api *gl, GLenum stage, const char *const *pieces,
                                 const GLint *lengths, GLsizei count, const char *name,
                                 kn_gl_names names, GLuint *out_shader, char **out_log,
                                 kiln_diag *diag);
/* Links a program object that has its shaders attached; KILN_E_COMPILE with the log. */
kiln_status kn_gl_link(const kn_gl_api *gl, GLuint program, const char *name, kiln_diag *diag);
/* A binary that this context would take, by its format and, where that is known, by its header. */
bool kn_gl_binary_is_sound(const kn_gl_facts *facts, uint32_t format, const void *data,
                           size_t size);
/* Into an empty program object. KILN_E_REJECTED when the driver refuses, or would have to. */
kiln_status kn_gl_load_binary(const kn_gl_api *gl, const kn_gl_facts *facts, GLuint program,
                              uint32_t format, const void *data, size_t size, const char *name,
                              kiln_diag *diag);
/* malloc'ed; *out_size 0 and KILN_OK when the driver has none to give. */
kiln_status kn_gl_read_binary(const kn_gl_api *gl, GLuint program, const char *name,
                              uint32_t *out_format, void **out_data, size_t *out_size,
                              kiln_diag *diag);

#endif
