/* An OpenGL program of the ordinary kind, without a window: where it compiled and linked its
 * shaders, it now asks kiln. The second start finds the linked programs in the cache.
 *     cc opengl_program.c $(pkg-config --cflags --libs kiln) -lEGL && ./a.out */
#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glcorearb.h>
#include <stdio.h>

#include <kiln/unstable/opengl.h>

#define N 64

static const char vertex[] = "#version 430 core\nin vec4 place;\n"
                             "void main() { gl_Position = place; }\n";
static const char fragment[] = "#version 430 core\nout vec4 colour;\n"
                               "void main() { colour = vec4(1.0, 0.5, 0.25, 1.0); }\n";
static const char compute[] = "#version 430 core\nlayout(local_size_x = 64) in;\n"
                              "layout(std430, binding = 0) buffer data_block { int data[]; };\n"
                              "void main() { data[gl_GlobalInvocationID.x] *= 3; }\n";

/* A context without a display server; 0 if there is none. */
static int make_context(void)
{
    static const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 3,
                                    EGL_NONE};
    EGLDisplay display =
        eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    if (display == EGL_NO_DISPLAY || !eglInitialize(display, NULL, NULL) ||
        !eglBindAPI(EGL_OPENGL_API)) {
        return 0;
    }
    EGLContext context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, wanted);
    return context != EGL_NO_CONTEXT &&
           eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context);
}

/* What the program does before it links; link_state below says so to kiln. */
static void before_link(void *user, uint32_t program)
{
    PFNGLBINDATTRIBLOCATIONPROC bind =
        (PFNGLBINDATTRIBLOCATIONPROC)eglGetProcAddress("glBindAttribLocation");
    (void)user;
    bind(program, 5, "place");
}

static int scale(GLuint program)
{
    int data[N];
    GLuint buffer = 0;
    PFNGLGENBUFFERSPROC gen = (PFNGLGENBUFFERSPROC)eglGetProcAddress("glGenBuffers");
    PFNGLBINDBUFFERBASEPROC bind = (PFNGLBINDBUFFERBASEPROC)eglGetProcAddress("glBindBufferBase");
    PFNGLBUFFERDATAPROC fill = (PFNGLBUFFERDATAPROC)eglGetProcAddress("glBufferData");
    PFNGLUSEPROGRAMPROC use = (PFNGLUSEPROGRAMPROC)eglGetProcAddress("glUseProgram");
    PFNGLDISPATCHCOMPUTEPROC go = (PFNGLDISPATCHCOMPUTEPROC)eglGetProcAddress("glDispatchCompute");
    PFNGLGETBUFFERSUBDATAPROC read =
        (PFNGLGETBUFFERSUBDATAPROC)eglGetProcAddress("glGetBufferSubData");
    for (int i = 0; i < N; i++) {
        data[i] = i;
    }
    gen(1, &buffer);
    bind(GL_SHADER_STORAGE_BUFFER, 0, buffer);
    fill(GL_SHADER_STORAGE_BUFFER, sizeof(data), data, GL_DYNAMIC_COPY);
    use(program);
    go(1, 1, 1);
    read(GL_SHADER_STORAGE_BUFFER, 0, sizeof(data), data);
    return data[7];
}

int main(void)
{
    const kiln_opengl_shader drawing[] = {{GL_VERTEX_SHADER, vertex, 0},
                                          {GL_FRAGMENT_SHADER, fragment, 0}};
    const kiln_opengl_shader scaling[] = {{GL_COMPUTE_SHADER, compute, 0}};
    const kiln_opengl_options options = {
        .struct_size = sizeof(options), .before_link = before_link, .link_state = "place at 5"};
    uint32_t programs[2] = {0, 0};
    kiln_diag diag = KILN_DIAG_INIT;
    if (!make_context()) {
        (void)fprintf(stderr, "no OpenGL 4.3 without a display\n");
        return 77;
    }
    if (kiln_opengl_build_program(NULL, drawing, 2, &options, &programs[0], &diag) ||
        kiln_opengl_build_program(NULL, scaling, 1, NULL, &programs[1], &diag)) {
        (void)fprintf(stderr, "%s: %s\n%s", diag.what, diag.why, diag.log ? diag.log : "");
        return 1;
    }
    PFNGLGETATTRIBLOCATIONPROC where =
        (PFNGLGETATTRIBLOCATIONPROC)eglGetProcAddress("glGetAttribLocation");
    const int place = where(programs[0], "place");
    const int scaled = scale(programs[1]);
    (void)printf("place is at %d, data[7] = %d\n", place, scaled);
    return place == 5 && scaled == 21 ? 0 : 1;
}
