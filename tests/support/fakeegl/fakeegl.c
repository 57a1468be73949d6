/* An EGL and an OpenGL that lie: all calls go to the real libEGL ($FAKE_REAL_LIBRARY), and one
 * number of their answers is replaced by what lies.h says. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glcorearb.h>

#include "support/lies.h"

typedef __eglMustCastToProperFunctionPointerType function;

static void *real_symbol(const char *name)
{
    static void *library;
    const char *path = getenv("FAKE_REAL_LIBRARY");
    if (library == NULL && path != NULL) {
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library != NULL ? dlsym(library, name) : NULL;
}

/* `real` of the type, from the library or through eglGetProcAddress. */
#define REAL_EGL(type, name)                                                                       \
    type real = NULL;                                                                              \
    void *symbol = real_symbol(#name);                                                             \
    memcpy(&real, &symbol, sizeof(symbol));
#define REAL_GL(type, name) const type real = (type)real_address(#name);

static function real_address(const char *name)
{
    REAL_EGL(PFNEGLGETPROCADDRESSPROC, eglGetProcAddress)
    return real != NULL ? real(name) : NULL;
}

static void lie_i32(const char *call, unsigned question, GLint *field)
{
    uint64_t number = 0;
    if (field != NULL && lie_is_told_of(call, question, "value", &number)) {
        *field = (GLint)(uint32_t)number;
    }
}

/* --- OpenGL ----------------------------------------------------------------------------------- */

static void APIENTRY fake_glGetIntegerv(GLenum name, GLint *value)
{
    REAL_GL(PFNGLGETINTEGERVPROC, glGetIntegerv)
    real(name, value);
    lie_i32("glGetIntegerv", name, value);
}

static void APIENTRY fake_glGetIntegeri_v(GLenum name, GLuint index, GLint *value)
{
    REAL_GL(PFNGLGETINTEGERI_VPROC, glGetIntegeri_v)
    real(name, index, value);
    lie_i32("glGetIntegeri_v", name, value);
}

static void APIENTRY fake_glGetInteger64v(GLenum name, GLint64 *value)
{
    uint64_t number = 0;
    REAL_GL(PFNGLGETINTEGER64VPROC, glGetInteger64v)
    real(name, value);
    if (lie_is_told_of("glGetInteger64v", name, "value", &number)) {
        *value = (GLint64)number;
    }
}

static void APIENTRY fake_glGetQueryiv(GLenum target, GLenum name, GLint *value)
{
    REAL_GL(PFNGLGETQUERYIVPROC, glGetQueryiv)
    real(target, name, value);
    lie_i32("glGetQueryiv", name, value);
}

static void APIENTRY fake_glGetQueryObjectui64v(GLuint id, GLenum name, GLuint64 *value)
{
    uint64_t number = 0;
    REAL_GL(PFNGLGETQUERYOBJECTUI64VPROC, glGetQueryObjectui64v)
    real(id, name, value);
    if (lie_is_told_of("glGetQueryObjectui64v", name, "value", &number)) {
        *value = number;
    }
}

static void APIENTRY fake_glGetShaderiv(GLuint shader, GLenum name, GLint *value)
{
    REAL_GL(PFNGLGETSHADERIVPROC, glGetShaderiv)
    real(shader, name, value);
    lie_i32("glGetShaderiv", name, value);
}

static void APIENTRY fake_glGetProgramiv(GLuint program, GLenum name, GLint *value)
{
    REAL_GL(PFNGLGETPROGRAMIVPROC, glGetProgramiv)
    real(program, name, value);
    for (int i = 0; i < (name == GL_COMPUTE_WORK_GROUP_SIZE ? 3 : 1); i++) {
        lie_i32("glGetProgramiv", name, value + i);
    }
}

static void APIENTRY fake_glGetProgramInterfaceiv(GLuint program, GLenum interface, GLenum name,
                                                  GLint *value)
{
    REAL_GL(PFNGLGETPROGRAMINTERFACEIVPROC, glGetProgramInterfaceiv)
    real(program, interface, name, value);
    lie_i32("glGetProgramInterfaceiv", interface, value);
}

static void APIENTRY fake_glGetProgramResourceiv(GLuint program, GLenum interface, GLuint index,
                                                 GLsizei count, const GLenum *names, GLsizei room,
                                                 GLsizei *length, GLint *values)
{
    REAL_GL(PFNGLGETPROGRAMRESOURCEIVPROC, glGetProgramResourceiv)
    real(program, interface, index, count, names, room, length, values);
    for (GLsizei i = 0; i < count && i < room; i++) {
        lie_i32("glGetProgramResourceiv", names[i], &values[i]);
    }
}

static void APIENTRY fake_glGetProgramBinary(GLuint program, GLsizei room, GLsizei *length,
                                             GLenum *format, void *data)
{
    uint64_t number = 0;
    REAL_GL(PFNGLGETPROGRAMBINARYPROC, glGetProgramBinary)
    real(program, room, length, format, data);
    if (lie_is_told("glGetProgramBinary", "length", &number)) {
        *length = (GLsizei)(uint32_t)number;
    }
    if (lie_is_told("glGetProgramBinary", "value", &number)) {
        *format = (GLenum)number;
    }
}

/* --- EGL -------------------------------------------------------------------------------------- */

static EGLBoolean EGLAPIENTRY fake_eglQueryDevicesEXT(EGLint room, EGLDeviceEXT *devices,
                                                      EGLint *count)
{
    uint64_t number = 0;
    REAL_GL(PFNEGLQUERYDEVICESEXTPROC, eglQueryDevicesEXT)
    const EGLBoolean result = real(room, devices, count);
    if (lie_is_told("eglQueryDevicesEXT", "value", &number)) {
        *count = (EGLint)(uint32_t)number;
    }
    return result;
}

function EGLAPIENTRY eglGetProcAddress(const char *name)
{
    static const struct {
        const char *name;
        function fake;
    } fakes[] = {
#define FAKE(name) {#name, (function)fake_##name},
        FAKE(glGetIntegerv) FAKE(glGetIntegeri_v) FAKE(glGetInteger64v) FAKE(glGetQueryiv)
            FAKE(glGetQueryObjectui64v) FAKE(glGetShaderiv) FAKE(glGetProgramiv)
                FAKE(glGetProgramInterfaceiv) FAKE(glGetProgramResourceiv) FAKE(glGetProgramBinary)
                    FAKE(eglQueryDevicesEXT)};
#undef FAKE
    for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++) {
        if (strcmp(fakes[i].name, name) == 0) {
            return fakes[i].fake;
        }
    }
    return real_address(name);
}

const char *EGLAPIENTRY eglQueryString(EGLDisplay display, EGLint name)
{
    REAL_EGL(PFNEGLQUERYSTRINGPROC, eglQueryString)
    return real != NULL ? real(display, name) : NULL;
}

EGLint EGLAPIENTRY eglGetError(void)
{
    REAL_EGL(PFNEGLGETERRORPROC, eglGetError)
    return real != NULL ? real() : EGL_NOT_INITIALIZED;
}

EGLBoolean EGLAPIENTRY eglInitialize(EGLDisplay display, EGLint *major, EGLint *minor)
{
    REAL_EGL(PFNEGLINITIALIZEPROC, eglInitialize)
    return real != NULL ? real(display, major, minor) : EGL_FALSE;
}

EGLBoolean EGLAPIENTRY eglBindAPI(EGLenum api)
{
    REAL_EGL(PFNEGLBINDAPIPROC, eglBindAPI)
    return real != NULL ? real(api) : EGL_FALSE;
}

EGLBoolean EGLAPIENTRY eglChooseConfig(EGLDisplay display, const EGLint *wanted, EGLConfig *configs,
                                       EGLint room, EGLint *count)
{
    REAL_EGL(PFNEGLCHOOSECONFIGPROC, eglChooseConfig)
    return real != NULL ? real(display, wanted, configs, room, count) : EGL_FALSE;
}

EGLContext EGLAPIENTRY eglCreateContext(EGLDisplay display, EGLConfig config, EGLContext shared,
                                        const EGLint *wanted)
{
    REAL_EGL(PFNEGLCREATECONTEXTPROC, eglCreateContext)
    return real != NULL ? real(display, config, shared, wanted) : EGL_NO_CONTEXT;
}

EGLBoolean EGLAPIENTRY eglDestroyContext(EGLDisplay display, EGLContext context)
{
    REAL_EGL(PFNEGLDESTROYCONTEXTPROC, eglDestroyContext)
    return real != NULL ? real(display, context) : EGL_FALSE;
}

EGLBoolean EGLAPIENTRY eglMakeCurrent(EGLDisplay display, EGLSurface draw, EGLSurface read,
                                      EGLContext context)
{
    REAL_EGL(PFNEGLMAKECURRENTPROC, eglMakeCurrent)
    return real != NULL ? real(display, draw, read, context) : EGL_FALSE;
}

EGLBoolean EGLAPIENTRY eglReleaseThread(void)
{
    REAL_EGL(PFNEGLRELEASETHREADPROC, eglReleaseThread)
    return real != NULL ? real() : EGL_FALSE;
}
