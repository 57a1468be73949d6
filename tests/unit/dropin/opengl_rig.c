#include "unit/dropin/opengl_rig.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/skip.h"
#include "sys/dylib.h"

PFNEGLGETPROCADDRESSPROC rig_get;

static bool open_library(void)
{
    static const char *const names[] = {"libEGL.so.1", NULL};
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kn_dylib *egl = NULL;
    if (kn_dylib_open(names, &egl, &outcome, NULL) != KILN_OK) {
        return false;
    }
    void *symbol = kn_dylib_symbol(egl, "eglGetProcAddress");
    memcpy(&rig_get, &symbol, sizeof(rig_get));
    kn_dylib_retire(egl);
    return rig_get != NULL;
}

static EGLDisplay find_display(void)
{
    return RIG_CALL(PFNEGLGETPLATFORMDISPLAYPROC, eglGetPlatformDisplay)(
        EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
}

static bool make_context(void)
{
    static const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 3,
                                    EGL_NONE};
    const EGLDisplay display = find_display();
    if (display == EGL_NO_DISPLAY ||
        RIG_CALL(PFNEGLINITIALIZEPROC, eglInitialize)(display, NULL, NULL) != EGL_TRUE ||
        RIG_CALL(PFNEGLBINDAPIPROC, eglBindAPI)(EGL_OPENGL_API) != EGL_TRUE) {
        return false;
    }
    const EGLContext context =
        RIG_CALL(PFNEGLCREATECONTEXTPROC, eglCreateContext)(display, NULL, EGL_NO_CONTEXT, wanted);
    return context != EGL_NO_CONTEXT &&
           RIG_CALL(PFNEGLMAKECURRENTPROC, eglMakeCurrent)(display, EGL_NO_SURFACE, EGL_NO_SURFACE,
                                                           context) == EGL_TRUE;
}

bool rig_open_context(void)
{
    return (rig_get != NULL || open_library()) && make_context();
}

void rig_need_context(void)
{
    GLint formats = 0;
    if (!rig_open_context()) {
        kn_test_skip("opengl", "no OpenGL 4.3 context without a display");
    }
    RIG_CALL(PFNGLGETINTEGERVPROC, glGetIntegerv)(GL_NUM_PROGRAM_BINARY_FORMATS, &formats);
    if (formats == 0) {
        kn_test_skip("opengl", "this driver gives no program binaries");
    }
}

bool rig_has_context(void)
{
    return RIG_CALL(PFNEGLGETCURRENTCONTEXTPROC, eglGetCurrentContext)() != EGL_NO_CONTEXT;
}

void rig_close_context(void)
{
    const EGLDisplay display = find_display();
    const EGLContext context = RIG_CALL(PFNEGLGETCURRENTCONTEXTPROC, eglGetCurrentContext)();
    assert_int_equal(RIG_CALL(PFNEGLMAKECURRENTPROC, eglMakeCurrent)(
                         display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT),
                     EGL_TRUE);
    assert_int_equal(RIG_CALL(PFNEGLDESTROYCONTEXTPROC, eglDestroyContext)(display, context),
                     EGL_TRUE);
}
