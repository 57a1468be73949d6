/* Level 2: OpenGL programs through the cache, for a program that has its own context current.
 *
 * Replace
 *
 *     glCompileShader() of each shader, glAttachShader(), glLinkProgram()
 *
 * with
 *
 *     kiln_opengl_shader shaders[] = {{GL_VERTEX_SHADER, vertex, 0},
 *                                     {GL_FRAGMENT_SHADER, fragment, 0}};
 *     kiln_opengl_build_program(NULL, shaders, 2, NULL, &program, &diag);
 *
 * Shaders of any stages, OpenGL 4.1 or ES 3.0 and up, or ARB_get_program_binary. No OpenGL header
 * is needed: the numbers are OpenGL's own. */
#ifndef KILN_UNSTABLE_OPENGL_H
#define KILN_UNSTABLE_OPENGL_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

/* One shader of a program. */
typedef struct kiln_opengl_shader {
    uint32_t stage; /* GLenum: GL_VERTEX_SHADER, GL_COMPUTE_SHADER, ... */
    const char *text;
    size_t length; /* 0: up to the NUL */
} kiln_opengl_shader;

/* Any function of OpenGL. */
typedef void (*kiln_opengl_function)(void);

/* Zero it and set struct_size; all else may be left zero. */
typedef struct kiln_opengl_options {
    size_t struct_size;
    /* Finds OpenGL's functions; NULL: through EGL or GLX, whichever has the context. */
    kiln_opengl_function (*get_proc_address)(const char *name);
    bool separable; /* GL_PROGRAM_SEPARABLE */
    /* Called between attaching and linking (glBindAttribLocation, glTransformFeedbackVaryings,
     * ...), when the program has to be linked. `link_state` must say everything it sets, in any
     * words: it is part of the key. */
    void (*before_link)(void *user, uint32_t program);
    const char *link_state;
    void *user;
} kiln_opengl_options;

/* A linked program: from the cache through glProgramBinary, or from source, storing what was
 * linked. Where a driver gives no program binaries, or a shader has an #include
 * (ARB_shading_language_include), it is made from source each time, which is counted and logged.
 * State that linking sets back (uniform values, block bindings) is as after a link.
 * Threads: the one that has the context current; equal requests of processes share one compile.
 * Blocks: disk, another's compile, driver.
 * Owns: *out_program is yours, glDeleteProgram(). `cache` NULL: the default cache, opened for the
 * call.
 * Fails: KILN_E_COMPILE (log in diag; the shader is named by its place in the list),
 * KILN_E_UNAVAILABLE (no context is current, or one without program binaries' functions),
 * KILN_E_INVALID, KILN_E_NOMEM. A broken cache never fails it. */
KILN_API KILN_MUST_CHECK kiln_status kiln_opengl_build_program(
    kiln_cache *cache, const kiln_opengl_shader *shaders, size_t count,
    const kiln_opengl_options *options, uint32_t *out_program, kiln_diag *diag);

KILN_END_DECLS

#endif
