/* What the tests of kiln/unstable/opengl.h share: contexts without a display. */
#ifndef KILN_TESTS_DROPIN_OPENGL_RIG_H
#define KILN_TESTS_DROPIN_OPENGL_RIG_H

#include <stdbool.h>

#define EGL_EGL_PROTOTYPES 0
#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glcorearb.h>

extern PFNEGLGETPROCADDRESSPROC rig_get; /* once there is a context */

#define RIG_CALL(type, name) ((type)rig_get(#name))

/* A context of the calling thread, which is current; false where there is no OpenGL 4.3. */
bool rig_open_context(void);
/* The same, or the end of the test program: where the driver gives no program binaries, too. */
void rig_need_context(void);
bool rig_has_context(void);
void rig_close_context(void);

#endif
