/* A warm start on OpenGL by hand: what a program would write itself with its program binary in a
 * file (the format, four bytes, then the binary). */
#define EGL_EGL_PROTOTYPES 0
#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glcorearb.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/warm.h"

static const char text[] =
    "#version 450\n"
    "layout(local_size_x = 8, local_size_y = 8) in;\n"
    "layout(location = 0) uniform int n;\n"
    "layout(std430, binding = 0) buffer a_block { float a[]; };\n"
    "layout(std430, binding = 1) buffer b_block { float b[]; };\n"
    "layout(std430, binding = 2) buffer c_block { float c[]; };\n"
    "void main()\n"
    "{\n"
    "    int x = int(gl_GlobalInvocationID.x), y = int(gl_GlobalInvocationID.y);\n"
    "    float sum = 0.0;\n"
    "    for (int i = 0; i < n; i++) { sum += a[y * n + i] * b[i * n + x]; }\n"
    "    c[y * n + x] = sum;\n"
    "}\n";

#define CALLS(X)                                                                                   \
    X(PFNGLCREATESHADERPROC, glCreateShader)                                                       \
    X(PFNGLSHADERSOURCEPROC, glShaderSource)                                                       \
    X(PFNGLCOMPILESHADERPROC, glCompileShader)                                                     \
    X(PFNGLCREATEPROGRAMPROC, glCreateProgram)                                                     \
    X(PFNGLATTACHSHADERPROC, glAttachShader)                                                       \
    X(PFNGLLINKPROGRAMPROC, glLinkProgram)                                                         \
    X(PFNGLGETPROGRAMIVPROC, glGetProgramiv)                                                       \
    X(PFNGLPROGRAMPARAMETERIPROC, glProgramParameteri)                                             \
    X(PFNGLGETPROGRAMBINARYPROC, glGetProgramBinary)                                               \
    X(PFNGLPROGRAMBINARYPROC, glProgramBinary)                                                     \
    X(PFNGLUSEPROGRAMPROC, glUseProgram)                                                           \
    X(PFNGLUNIFORM1IPROC, glUniform1i)                                                             \
    X(PFNGLGENBUFFERSPROC, glGenBuffers)                                                           \
    X(PFNGLBINDBUFFERBASEPROC, glBindBufferBase)                                                   \
    X(PFNGLBUFFERDATAPROC, glBufferData)                                                           \
    X(PFNGLGETBUFFERSUBDATAPROC, glGetBufferSubData)                                               \
    X(PFNGLDISPATCHCOMPUTEPROC, glDispatchCompute)                                                 \
    X(PFNGLDELETEBUFFERSPROC, glDeleteBuffers)                                                     \
    X(PFNGLDELETEPROGRAMPROC, glDeleteProgram)                                                     \
    X(PFNGLMEMORYBARRIERPROC, glMemoryBarrier)

static struct {
#define X(type, name) type name;
    CALLS(X)
#undef X
} gl;

/* What is destroyed at the end, and how. */
static struct {
    PFNEGLMAKECURRENTPROC make_current;
    PFNEGLDESTROYCONTEXTPROC destroy_context;
    PFNEGLRELEASETHREADPROC release_thread;
    EGLDisplay display;
    EGLContext context;
    GLuint program;
    GLuint buffers[3];
} at;

#define EGL(type, name)                                                                            \
    type name = NULL;                                                                              \
    symbol = dlsym(library, #name);                                                                \
    memcpy(&name, &symbol, sizeof(symbol));                                                        \
    if (name == NULL) {                                                                            \
        return false;                                                                              \
    }

/* The first device with OpenGL 4.3, which is the one that kiln lists first. */
static bool make_ready(void)
{
    static const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION,
                                    4,
                                    EGL_CONTEXT_MINOR_VERSION,
                                    3,
                                    EGL_CONTEXT_OPENGL_PROFILE_MASK,
                                    EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                                    EGL_NONE};
    void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = NULL;
    EGLDeviceEXT devices[32];
    EGLint count = 0;
    if (library == NULL) {
        return false;
    }
    EGL(PFNEGLGETPROCADDRESSPROC, eglGetProcAddress)
    EGL(PFNEGLINITIALIZEPROC, eglInitialize)
    EGL(PFNEGLBINDAPIPROC, eglBindAPI)
    EGL(PFNEGLCREATECONTEXTPROC, eglCreateContext)
    EGL(PFNEGLMAKECURRENTPROC, eglMakeCurrent)
    EGL(PFNEGLDESTROYCONTEXTPROC, eglDestroyContext)
    EGL(PFNEGLRELEASETHREADPROC, eglReleaseThread)
    PFNEGLQUERYDEVICESEXTPROC query =
        (PFNEGLQUERYDEVICESEXTPROC)eglGetProcAddress("eglQueryDevicesEXT");
    PFNEGLGETPLATFORMDISPLAYEXTPROC display_of =
        (PFNEGLGETPLATFORMDISPLAYEXTPROC)eglGetProcAddress("eglGetPlatformDisplayEXT");
    if (query == NULL || display_of == NULL || !query(32, devices, &count)) {
        return false;
    }
    bool current = false;
    for (EGLint i = 0; i < count && !current; i++) {
        EGLDisplay display = display_of(EGL_PLATFORM_DEVICE_EXT, devices[i], NULL);
        if (eglInitialize(display, NULL, NULL) && eglBindAPI(EGL_OPENGL_API)) {
            EGLContext context = eglCreateContext(display, NULL, EGL_NO_CONTEXT, wanted);
            current = context != EGL_NO_CONTEXT &&
                      eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context);
            at.display = display;
            at.context = context;
        }
    }
    at.make_current = eglMakeCurrent;
    at.destroy_context = eglDestroyContext;
    at.release_thread = eglReleaseThread;
#define X(type, name)                                                                              \
    gl.name = (type)eglGetProcAddress(#name);                                                      \
    current = current && gl.name != NULL;
    CALLS(X)
#undef X
    return current;
}

static GLuint link_from_source(void)
{
    const char *pieces[] = {text};
    const GLuint shader = gl.glCreateShader(GL_COMPUTE_SHADER);
    const GLuint program = gl.glCreateProgram();
    gl.glShaderSource(shader, 1, pieces, NULL);
    gl.glCompileShader(shader);
    gl.glProgramParameteri(program, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
    gl.glAttachShader(program, shader);
    gl.glLinkProgram(program);
    return program;
}

bool warm_opengl_export(const char *path)
{
    if (!make_ready()) {
        return false;
    }
    GLint size = 0;
    GLsizei length = 0;
    GLenum format = 0;
    const GLuint program = link_from_source();
    gl.glGetProgramiv(program, GL_PROGRAM_BINARY_LENGTH, &size);
    char *data = size > 0 ? calloc(1, (size_t)size) : NULL;
    FILE *file = fopen(path, "wb");
    bool written = false;
    if (data != NULL && file != NULL) {
        gl.glGetProgramBinary(program, size, &length, &format, data);
        written = length > 0 && fwrite(&format, 1, 4, file) == 4 &&
                  fwrite(data, 1, (size_t)length, file) == (size_t)length;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    free(data);
    return written;
}

/* The displays are the process's. */
void warm_opengl_destroy(void)
{
    if (at.context == EGL_NO_CONTEXT) {
        return;
    }
    gl.glDeleteBuffers(3, at.buffers);
    gl.glDeleteProgram(at.program);
    (void)at.make_current(at.display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    (void)at.destroy_context(at.display, at.context);
    (void)at.release_thread();
}

static bool first_result(GLuint program)
{
    static float a[WARM_SIZE * WARM_SIZE];
    static float c[WARM_SIZE * WARM_SIZE];
    at.program = program;
    gl.glGenBuffers(3, at.buffers);
    for (GLuint i = 0; i < 3; i++) {
        gl.glBindBufferBase(GL_SHADER_STORAGE_BUFFER, i, at.buffers[i]);
        gl.glBufferData(GL_SHADER_STORAGE_BUFFER, sizeof(a), i < 2 ? a : NULL, GL_DYNAMIC_DRAW);
    }
    c[0] = -1;
    gl.glUseProgram(program);
    gl.glUniform1i(0, WARM_SIZE);
    gl.glDispatchCompute(WARM_SIZE / WARM_GROUP, WARM_SIZE / WARM_GROUP, 1);
    gl.glMemoryBarrier(GL_ALL_BARRIER_BITS);
    gl.glGetBufferSubData(GL_SHADER_STORAGE_BUFFER, 0, sizeof(c), c);
    return c[0] == 0.0F;
}

bool warm_opengl_by_hand(const char *path)
{
    if (!make_ready()) {
        return false;
    }
    const double start = bench_now();
    size_t size = 0;
    GLint linked = GL_FALSE;
    GLenum format = 0;
    unsigned char *data = bench_read(path, &size);
    if (data == NULL || size < 5) {
        free(data);
        return false;
    }
    memcpy(&format, data, 4);
    const GLuint program = gl.glCreateProgram();
    gl.glProgramBinary(program, format, data + 4, (GLsizei)(size - 4));
    gl.glGetProgramiv(program, GL_LINK_STATUS, &linked);
    const double loaded = bench_now();
    free(data);
    if (linked == GL_FALSE || !first_result(program)) {
        return false;
    }
    printf("%.3f %.3f\n", (loaded - start) * 1e6, (bench_now() - start) * 1e6);
    return true;
}

bool warm_opengl_plain(void)
{
    if (!make_ready()) {
        return false;
    }
    const double start = bench_now();
    GLint linked = GL_FALSE;
    const GLuint program = link_from_source();
    gl.glGetProgramiv(program, GL_LINK_STATUS, &linked);
    const double loaded = bench_now();
    if (linked == GL_FALSE || !first_result(program)) {
        return false;
    }
    printf("%.3f %.3f\n", (loaded - start) * 1e6, (bench_now() - start) * 1e6);
    return true;
}
