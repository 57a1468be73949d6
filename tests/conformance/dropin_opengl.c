/* dropin_opengl: level 2 in whatever OpenGL context can be had without a display. A program from
 * the cache answers every query of OpenGL as the program that was linked did, and draws and
 * computes the same: from memory, from disk, from a pack. What a driver cannot give back from a
 * binary is listed here, and in docs/use/drop-ins.md; anything else that is lost fails. Exit 77
 * without a context that gives program binaries. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EGL_EGL_PROTOTYPES 0
#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glcorearb.h>

#include <kiln/unstable/opengl.h>

#include "conformance/dropin_opengl_shaders.h"
#include "conformance/dropin_rig.h"
#include "support/skip.h"
#include "support/tmpdir.h"

#define FUNCTIONS(X)                                                                               \
    X(PFNGLGETERRORPROC, glGetError)                                                               \
    X(PFNGLGETSTRINGPROC, glGetString)                                                             \
    X(PFNGLGETINTEGERVPROC, glGetIntegerv)                                                         \
    X(PFNGLGETPROGRAMIVPROC, glGetProgramiv)                                                       \
    X(PFNGLGETPROGRAMINFOLOGPROC, glGetProgramInfoLog)                                             \
    X(PFNGLGETATTACHEDSHADERSPROC, glGetAttachedShaders)                                           \
    X(PFNGLGETPROGRAMINTERFACEIVPROC, glGetProgramInterfaceiv)                                     \
    X(PFNGLGETPROGRAMRESOURCEIVPROC, glGetProgramResourceiv)                                       \
    X(PFNGLGETPROGRAMRESOURCENAMEPROC, glGetProgramResourceName)                                   \
    X(PFNGLGETACTIVEUNIFORMPROC, glGetActiveUniform)                                               \
    X(PFNGLGETACTIVEUNIFORMBLOCKIVPROC, glGetActiveUniformBlockiv)                                 \
    X(PFNGLGETACTIVEATTRIBPROC, glGetActiveAttrib)                                                 \
    X(PFNGLGETATTRIBLOCATIONPROC, glGetAttribLocation)                                             \
    X(PFNGLGETFRAGDATALOCATIONPROC, glGetFragDataLocation)                                         \
    X(PFNGLGETUNIFORMLOCATIONPROC, glGetUniformLocation)                                           \
    X(PFNGLGETUNIFORMFVPROC, glGetUniformfv)                                                       \
    X(PFNGLGETTRANSFORMFEEDBACKVARYINGPROC, glGetTransformFeedbackVarying)                         \
    X(PFNGLGETPROGRAMSTAGEIVPROC, glGetProgramStageiv)                                             \
    X(PFNGLBINDATTRIBLOCATIONPROC, glBindAttribLocation)                                           \
    X(PFNGLBINDFRAGDATALOCATIONPROC, glBindFragDataLocation)                                       \
    X(PFNGLTRANSFORMFEEDBACKVARYINGSPROC, glTransformFeedbackVaryings)                             \
    X(PFNGLDELETEPROGRAMPROC, glDeleteProgram)                                                     \
    X(PFNGLUSEPROGRAMPROC, glUseProgram)                                                           \
    X(PFNGLVALIDATEPROGRAMPROC, glValidateProgram)                                                 \
    X(PFNGLGENBUFFERSPROC, glGenBuffers)                                                           \
    X(PFNGLBINDBUFFERPROC, glBindBuffer)                                                           \
    X(PFNGLBINDBUFFERBASEPROC, glBindBufferBase)                                                   \
    X(PFNGLBUFFERDATAPROC, glBufferData)                                                           \
    X(PFNGLGETBUFFERSUBDATAPROC, glGetBufferSubData)                                               \
    X(PFNGLDISPATCHCOMPUTEPROC, glDispatchCompute)                                                 \
    X(PFNGLMEMORYBARRIERPROC, glMemoryBarrier)                                                     \
    X(PFNGLGENFRAMEBUFFERSPROC, glGenFramebuffers)                                                 \
    X(PFNGLBINDFRAMEBUFFERPROC, glBindFramebuffer)                                                 \
    X(PFNGLFRAMEBUFFERTEXTURE2DPROC, glFramebufferTexture2D)                                       \
    X(PFNGLGENTEXTURESPROC, glGenTextures)                                                         \
    X(PFNGLBINDTEXTUREPROC, glBindTexture)                                                         \
    X(PFNGLTEXSTORAGE2DPROC, glTexStorage2D)                                                       \
    X(PFNGLGENVERTEXARRAYSPROC, glGenVertexArrays)                                                 \
    X(PFNGLBINDVERTEXARRAYPROC, glBindVertexArray)                                                 \
    X(PFNGLVIEWPORTPROC, glViewport)                                                               \
    X(PFNGLCLEARPROC, glClear)                                                                     \
    X(PFNGLDRAWARRAYSPROC, glDrawArrays)                                                           \
    X(PFNGLPATCHPARAMETERIPROC, glPatchParameteri)                                                 \
    X(PFNGLREADPIXELSPROC, glReadPixels)

static struct {
#define MEMBER(type, name) type name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} gl;

#define SIDE 4 /* pixels of the picture that is drawn */

/* --- the context ------------------------------------------------------------------------------ */

static const char *open_context(void)
{
    static const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 3,
                                    EGL_NONE};
    void *lib = dlopen("libEGL.so.1", RTLD_NOW | RTLD_GLOBAL); /* never closed */
    if (lib == NULL) {
        return "no libEGL.so.1";
    }
#define EGL(type, name)                                                                            \
    type name = NULL;                                                                              \
    void *name##_symbol = dlsym(lib, #name);                                                       \
    memcpy(&name, &name##_symbol, sizeof(name));                                                   \
    if (name == NULL) {                                                                            \
        return "libEGL lacks " #name;                                                              \
    }
    EGL(PFNEGLGETPROCADDRESSPROC, eglGetProcAddress)
    EGL(PFNEGLGETPLATFORMDISPLAYPROC, eglGetPlatformDisplay)
    EGL(PFNEGLINITIALIZEPROC, eglInitialize)
    EGL(PFNEGLBINDAPIPROC, eglBindAPI)
    EGL(PFNEGLCREATECONTEXTPROC, eglCreateContext)
    EGL(PFNEGLMAKECURRENTPROC, eglMakeCurrent)
#undef EGL
    PFNEGLQUERYDEVICESEXTPROC query =
        (PFNEGLQUERYDEVICESEXTPROC)eglGetProcAddress("eglQueryDevicesEXT");
    EGLDeviceEXT devices[8];
    EGLint count = 0;
    EGLDisplay display =
        eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    if ((display == EGL_NO_DISPLAY || eglInitialize(display, NULL, NULL) != EGL_TRUE) &&
        query != NULL && query(8, devices, &count) == EGL_TRUE && count > 0) { /* NVIDIA */
        display = eglGetPlatformDisplay(EGL_PLATFORM_DEVICE_EXT, devices[0], NULL);
        if (display == EGL_NO_DISPLAY || eglInitialize(display, NULL, NULL) != EGL_TRUE) {
            return "no display without a screen";
        }
    }
    if (display == EGL_NO_DISPLAY || eglBindAPI(EGL_OPENGL_API) != EGL_TRUE) {
        return "no display without a screen, or none with OpenGL";
    }
    EGLContext context = eglCreateContext(display, NULL, EGL_NO_CONTEXT, wanted);
    if (context == EGL_NO_CONTEXT ||
        eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) != EGL_TRUE) {
        return "no OpenGL 4.3 context without a surface";
    }
#define FIND(type, name)                                                                           \
    gl.name = (type)eglGetProcAddress(#name);                                                      \
    if (gl.name == NULL) {                                                                         \
        return "the context lacks " #name;                                                         \
    }
    FUNCTIONS(FIND)
#undef FIND
    GLint formats = 0;
    gl.glGetIntegerv(GL_NUM_PROGRAM_BINARY_FORMATS, &formats);
    return formats > 0 ? NULL : "this driver gives no program binaries";
}

/* --- everything that can be asked ------------------------------------------------------------- */

typedef struct query {
    GLenum name;
    const char *text;
} query;
#define Q(name)                                                                                    \
    {                                                                                              \
        name, #name                                                                                \
    }

/* Ends a line with what came, or with the error. */
static void note(FILE *out, const char *of, const char *text, const GLint *values, GLsizei count)
{
    const GLenum error = gl.glGetError();
    (void)fprintf(out, "%s%s:", of, text);
    if (error != GL_NO_ERROR) {
        (void)fprintf(out, " error 0x%04x", error);
    }
    for (GLsizei i = 0; i < count && error == GL_NO_ERROR; i++) {
        (void)fprintf(out, " %d", values[i]);
    }
    (void)fputc('\n', out);
}

static void ask_program(FILE *out, GLuint program)
{
    static const query rows[] = {Q(GL_DELETE_STATUS),
                                 Q(GL_LINK_STATUS),
                                 Q(GL_VALIDATE_STATUS),
                                 Q(GL_INFO_LOG_LENGTH),
                                 Q(GL_ATTACHED_SHADERS),
                                 Q(GL_ACTIVE_ATTRIBUTES),
                                 Q(GL_ACTIVE_ATTRIBUTE_MAX_LENGTH),
                                 Q(GL_ACTIVE_UNIFORMS),
                                 Q(GL_ACTIVE_UNIFORM_MAX_LENGTH),
                                 Q(GL_ACTIVE_UNIFORM_BLOCKS),
                                 Q(GL_ACTIVE_UNIFORM_BLOCK_MAX_NAME_LENGTH),
                                 Q(GL_ACTIVE_ATOMIC_COUNTER_BUFFERS),
                                 Q(GL_TRANSFORM_FEEDBACK_BUFFER_MODE),
                                 Q(GL_TRANSFORM_FEEDBACK_VARYINGS),
                                 Q(GL_TRANSFORM_FEEDBACK_VARYING_MAX_LENGTH),
                                 Q(GL_GEOMETRY_VERTICES_OUT),
                                 Q(GL_GEOMETRY_INPUT_TYPE),
                                 Q(GL_GEOMETRY_OUTPUT_TYPE),
                                 Q(GL_GEOMETRY_SHADER_INVOCATIONS),
                                 Q(GL_TESS_CONTROL_OUTPUT_VERTICES),
                                 Q(GL_TESS_GEN_MODE),
                                 Q(GL_TESS_GEN_SPACING),
                                 Q(GL_TESS_GEN_VERTEX_ORDER),
                                 Q(GL_TESS_GEN_POINT_MODE),
                                 Q(GL_COMPUTE_WORK_GROUP_SIZE),
                                 Q(GL_PROGRAM_SEPARABLE),
                                 Q(GL_PROGRAM_BINARY_RETRIEVABLE_HINT),
                                 Q(GL_PROGRAM_BINARY_LENGTH)};
    GLint values[4];
    GLuint shaders[8];
    GLsizei count = 0;
    char log[1024] = "";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(values, 0, sizeof(values));
        gl.glGetProgramiv(program, rows[i].name, values);
        note(out, "", rows[i].text, values, rows[i].name == GL_COMPUTE_WORK_GROUP_SIZE ? 3 : 1);
    }
    gl.glGetAttachedShaders(program, 8, &count, shaders);
    (void)fprintf(out, "glGetAttachedShaders: %d\n", count);
    gl.glGetProgramInfoLog(program, sizeof(log), NULL, log);
    for (char *at = log; *at != '\0'; at++) {
        *at = *at == '\n' ? '|' : *at;
    }
    (void)fprintf(out, "glGetProgramInfoLog: %s\n", log);
}

static void ask_resources(FILE *out, GLuint program, const query *interface, GLint count)
{
    static const query rows[] = {Q(GL_NAME_LENGTH),
                                 Q(GL_TYPE),
                                 Q(GL_ARRAY_SIZE),
                                 Q(GL_OFFSET),
                                 Q(GL_BLOCK_INDEX),
                                 Q(GL_ARRAY_STRIDE),
                                 Q(GL_MATRIX_STRIDE),
                                 Q(GL_IS_ROW_MAJOR),
                                 Q(GL_ATOMIC_COUNTER_BUFFER_INDEX),
                                 Q(GL_BUFFER_BINDING),
                                 Q(GL_BUFFER_DATA_SIZE),
                                 Q(GL_NUM_ACTIVE_VARIABLES),
                                 Q(GL_ACTIVE_VARIABLES),
                                 Q(GL_REFERENCED_BY_VERTEX_SHADER),
                                 Q(GL_REFERENCED_BY_TESS_CONTROL_SHADER),
                                 Q(GL_REFERENCED_BY_TESS_EVALUATION_SHADER),
                                 Q(GL_REFERENCED_BY_GEOMETRY_SHADER),
                                 Q(GL_REFERENCED_BY_FRAGMENT_SHADER),
                                 Q(GL_REFERENCED_BY_COMPUTE_SHADER),
                                 Q(GL_TOP_LEVEL_ARRAY_SIZE),
                                 Q(GL_TOP_LEVEL_ARRAY_STRIDE),
                                 Q(GL_LOCATION),
                                 Q(GL_LOCATION_INDEX),
                                 Q(GL_LOCATION_COMPONENT),
                                 Q(GL_IS_PER_PATCH),
                                 Q(GL_NUM_COMPATIBLE_SUBROUTINES),
                                 Q(GL_COMPATIBLE_SUBROUTINES),
                                 Q(GL_TRANSFORM_FEEDBACK_BUFFER_INDEX),
                                 Q(GL_TRANSFORM_FEEDBACK_BUFFER_STRIDE)};
    for (GLint i = 0; i < count; i++) {
        char name[128] = "", of[224];
        if (interface->name != GL_ATOMIC_COUNTER_BUFFER &&
            interface->name != GL_TRANSFORM_FEEDBACK_BUFFER) { /* these have no names */
            gl.glGetProgramResourceName(program, interface->name, (GLuint)i, sizeof(name), NULL,
                                        name);
        }
        (void)snprintf(of, sizeof(of), "%s %d '%s' ", interface->text, i, name);
        for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            GLint values[16] = {0};
            GLsizei length = 0;
            gl.glGetProgramResourceiv(program, interface->name, (GLuint)i, 1, &rows[j].name, 16,
                                      &length, values);
            note(out, of, rows[j].text, values, length);
        }
    }
}

static void ask_interfaces(FILE *out, GLuint program)
{
    static const query rows[] = {Q(GL_UNIFORM),
                                 Q(GL_UNIFORM_BLOCK),
                                 Q(GL_ATOMIC_COUNTER_BUFFER),
                                 Q(GL_PROGRAM_INPUT),
                                 Q(GL_PROGRAM_OUTPUT),
                                 Q(GL_VERTEX_SUBROUTINE),
                                 Q(GL_TESS_CONTROL_SUBROUTINE),
                                 Q(GL_TESS_EVALUATION_SUBROUTINE),
                                 Q(GL_GEOMETRY_SUBROUTINE),
                                 Q(GL_FRAGMENT_SUBROUTINE),
                                 Q(GL_COMPUTE_SUBROUTINE),
                                 Q(GL_VERTEX_SUBROUTINE_UNIFORM),
                                 Q(GL_TESS_CONTROL_SUBROUTINE_UNIFORM),
                                 Q(GL_TESS_EVALUATION_SUBROUTINE_UNIFORM),
                                 Q(GL_GEOMETRY_SUBROUTINE_UNIFORM),
                                 Q(GL_FRAGMENT_SUBROUTINE_UNIFORM),
                                 Q(GL_COMPUTE_SUBROUTINE_UNIFORM),
                                 Q(GL_TRANSFORM_FEEDBACK_VARYING),
                                 Q(GL_TRANSFORM_FEEDBACK_BUFFER),
                                 Q(GL_BUFFER_VARIABLE),
                                 Q(GL_SHADER_STORAGE_BLOCK)};
    static const query counts[] = {Q(GL_ACTIVE_RESOURCES), Q(GL_MAX_NAME_LENGTH),
                                   Q(GL_MAX_NUM_ACTIVE_VARIABLES),
                                   Q(GL_MAX_NUM_COMPATIBLE_SUBROUTINES)};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char of[64];
        GLint active = 0;
        (void)snprintf(of, sizeof(of), "%s ", rows[i].text);
        for (size_t j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
            GLint value = 0;
            gl.glGetProgramInterfaceiv(program, rows[i].name, counts[j].name, &value);
            active = j == 0 ? value : active;
            note(out, of, counts[j].text, &value, 1);
        }
        ask_resources(out, program, &rows[i], active);
    }
}

/* The questions of OpenGL before 4.3, which drivers answer from other tables. */
static void ask_as_of_old(FILE *out, GLuint program)
{
    char name[128];
    GLint count = 0;
    gl.glGetProgramiv(program, GL_ACTIVE_UNIFORMS, &count);
    for (GLint i = 0; i < count; i++) {
        GLint values[3] = {0}; /* size, type, location */
        GLfloat first[16] = {0.0F};
        gl.glGetActiveUniform(program, (GLuint)i, sizeof(name), NULL, &values[0],
                              (GLenum *)&values[1], name);
        values[2] = gl.glGetUniformLocation(program, name);
        note(out, "uniform ", name, values, 3);
        if (values[2] >= 0) {
            gl.glGetUniformfv(program, values[2], first);
            (void)fprintf(out, "value of %s: %g, error 0x%04x\n", name, (double)first[0],
                          gl.glGetError());
        }
    }
    gl.glGetProgramiv(program, GL_ACTIVE_UNIFORM_BLOCKS, &count);
    for (GLint i = 0; i < count; i++) {
        GLint values[3] = {0};
        gl.glGetActiveUniformBlockiv(program, (GLuint)i, GL_UNIFORM_BLOCK_BINDING, &values[0]);
        gl.glGetActiveUniformBlockiv(program, (GLuint)i, GL_UNIFORM_BLOCK_DATA_SIZE, &values[1]);
        gl.glGetActiveUniformBlockiv(program, (GLuint)i, GL_UNIFORM_BLOCK_ACTIVE_UNIFORMS,
                                     &values[2]);
        note(out, "", "uniform block", values, 3);
    }
    gl.glGetProgramiv(program, GL_ACTIVE_ATTRIBUTES, &count);
    for (GLint i = 0; i < count; i++) {
        GLint values[3] = {0};
        gl.glGetActiveAttrib(program, (GLuint)i, sizeof(name), NULL, &values[0],
                             (GLenum *)&values[1], name);
        values[2] = gl.glGetAttribLocation(program, name);
        note(out, "attribute ", name, values, 3);
    }
    gl.glGetProgramiv(program, GL_TRANSFORM_FEEDBACK_VARYINGS, &count);
    for (GLint i = 0; i < count; i++) {
        GLint values[2] = {0};
        gl.glGetTransformFeedbackVarying(program, (GLuint)i, sizeof(name), NULL, &values[0],
                                         (GLenum *)&values[1], name);
        note(out, "varying ", name, values, 2);
    }
    const GLint colour = gl.glGetFragDataLocation(program, "colour");
    note(out, "", "glGetFragDataLocation colour", &colour, 1);
}

static void ask_stages(FILE *out, GLuint program)
{
    static const query stages[] = {Q(GL_VERTEX_SHADER),          Q(GL_TESS_CONTROL_SHADER),
                                   Q(GL_TESS_EVALUATION_SHADER), Q(GL_GEOMETRY_SHADER),
                                   Q(GL_FRAGMENT_SHADER),        Q(GL_COMPUTE_SHADER)};
    static const query rows[] = {Q(GL_ACTIVE_SUBROUTINES), Q(GL_ACTIVE_SUBROUTINE_MAX_LENGTH),
                                 Q(GL_ACTIVE_SUBROUTINE_UNIFORMS),
                                 Q(GL_ACTIVE_SUBROUTINE_UNIFORM_LOCATIONS),
                                 Q(GL_ACTIVE_SUBROUTINE_UNIFORM_MAX_LENGTH)};
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        char of[64];
        (void)snprintf(of, sizeof(of), "%s ", stages[i].text);
        for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            GLint value = 0;
            gl.glGetProgramStageiv(program, stages[i].name, rows[j].name, &value);
            note(out, of, rows[j].text, &value, 1);
        }
    }
}

/* --- what it computes and draws --------------------------------------------------------------- */

static void run_compute(FILE *out, GLuint program)
{
    GLuint buffer = 0;
    unsigned words[16] = {0x000002ca, 0x60ad78ec, 0x3f800800, 0x3f7ff000};
    gl.glGenBuffers(1, &buffer);
    gl.glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffer);
    gl.glBufferData(GL_SHADER_STORAGE_BUFFER, sizeof(words), words, GL_DYNAMIC_DRAW);
    gl.glUseProgram(program);
    gl.glDispatchCompute(1, 1, 1);
    gl.glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    gl.glGetBufferSubData(GL_SHADER_STORAGE_BUFFER, 0, sizeof(words), words);
    gl.glUseProgram(0);
    dropin_note_bytes(out, "computed", words, sizeof(words));
    note(out, "", "compute", NULL, 0);
}

static void run_draw(FILE *out, GLuint program, bool patches)
{
    static GLuint array, target, texture;
    float pixels[SIDE * SIDE * 4] = {0.0F};
    if (array == 0) {
        gl.glGenVertexArrays(1, &array);
        gl.glGenTextures(1, &texture);
        gl.glBindTexture(GL_TEXTURE_2D, texture);
        gl.glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA32F, SIDE, SIDE);
        gl.glGenFramebuffers(1, &target);
    }
    gl.glBindVertexArray(array);
    gl.glBindFramebuffer(GL_FRAMEBUFFER, target);
    gl.glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    gl.glViewport(0, 0, SIDE, SIDE);
    gl.glClear(GL_COLOR_BUFFER_BIT);
    gl.glUseProgram(program);
    gl.glPatchParameteri(GL_PATCH_VERTICES, 3);
    gl.glDrawArrays(patches ? GL_PATCHES : GL_TRIANGLES, 0, 3);
    gl.glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_FLOAT, pixels);
    gl.glUseProgram(0);
    dropin_note_bytes(out, "drawn", pixels, sizeof(pixels));
    note(out, "", "draw", NULL, 0);
}

/* --- programs --------------------------------------------------------------------------------- */

static void bind_places(void *user, uint32_t program)
{
    static const char *const caught[] = {"spot", "gl_SkipComponents2", "tint"};
    (void)user;
    gl.glBindAttribLocation(program, 5, "place");
    gl.glBindAttribLocation(program, 9, "turn");
    gl.glBindFragDataLocation(program, 2, "colour");
    gl.glTransformFeedbackVaryings(program, 3, caught, GL_INTERLEAVED_ATTRIBS);
}

typedef struct linked {
    const char *name;
    kiln_opengl_shader shaders[4];
    size_t count;
    kiln_opengl_options options;
    enum { DRAWS, DRAWS_PATCHES, COMPUTES, NEITHER } kind;
} linked;

static const linked programs[] = {
    {"plain",
     {{GL_VERTEX_SHADER, plain_vertex, 0}, {GL_FRAGMENT_SHADER, plain_fragment, 0}},
     2,
     {0},
     DRAWS},
    {"two colours",
     {{GL_VERTEX_SHADER, simple_vertex, 0}, {GL_FRAGMENT_SHADER, simple_fragment, 0}},
     2,
     {0},
     DRAWS},
    {"uniforms",
     {{GL_VERTEX_SHADER, vertex, 0}, {GL_FRAGMENT_SHADER, fragment, 0}},
     2,
     {0},
     NEITHER},
    {"bound before the link",
     {{GL_VERTEX_SHADER, vertex, 0}, {GL_FRAGMENT_SHADER, fragment, 0}},
     2,
     {.struct_size = sizeof(kiln_opengl_options),
      .link_state = "bound",
      .before_link = bind_places},
     NEITHER},
    {"geometry",
     {{GL_VERTEX_SHADER, plain_vertex, 0},
      {GL_GEOMETRY_SHADER, geometry, 0},
      {GL_FRAGMENT_SHADER, plain_fragment, 0}},
     3,
     {0},
     DRAWS},
    {"tessellation",
     {{GL_VERTEX_SHADER, plain_vertex, 0},
      {GL_TESS_CONTROL_SHADER, control, 0},
      {GL_TESS_EVALUATION_SHADER, evaluation, 0},
      {GL_FRAGMENT_SHADER, plain_fragment, 0}},
     4,
     {0},
     DRAWS_PATCHES},
    {"separable",
     {{GL_FRAGMENT_SHADER, plain_fragment, 0}},
     1,
     {.struct_size = sizeof(kiln_opengl_options), .separable = true},
     NEITHER},
    {"separable vertex",
     {{GL_VERTEX_SHADER, plain_vertex, 0}},
     1,
     {.struct_size = sizeof(kiln_opengl_options), .separable = true},
     NEITHER},
    {"compute", {{GL_COMPUTE_SHADER, compute, 0}}, 1, {0}, COMPUTES},
    {"precise", {{GL_COMPUTE_SHADER, precise_compute, 0}}, 1, {0}, COMPUTES},
};
#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

static char *describe(void *user, kiln_cache *cache, bool first)
{
    const linked *one = (const linked *)user;
    kiln_diag diag = KILN_DIAG_INIT;
    uint32_t program = 0;
    char *text = NULL;
    size_t size = 0;
    const kiln_status status = kiln_opengl_build_program(
        cache, one->shaders, one->count, one->options.struct_size > 0 ? &one->options : NULL,
        &program, &diag);
    if (status != KILN_OK) {
        print_error("%s: %s\n%s\n", one->name, diag.why, diag.log != NULL ? diag.log : "");
    }
    assert_true(status == KILN_OK || first);
    assert_int_equal(status, KILN_OK);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    note(out, "", "built", NULL, 0); /* no error is left behind */
    ask_program(out, program);
    ask_interfaces(out, program);
    ask_as_of_old(out, program);
    ask_stages(out, program);
    if (one->kind == COMPUTES) {
        run_compute(out, program);
    } else if (one->kind != NEITHER) {
        run_draw(out, program, one->kind == DRAWS_PATCHES);
    }
    gl.glDeleteProgram(program);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* --- comparing -------------------------------------------------------------------------------- */

/* What is lost, by the beginning of the line; driver "": by every one. */
static const struct {
    const char *driver, *query;
} losses[] = {
    {"Mesa", "GL_PROGRAM_BINARY_RETRIEVABLE_HINT"},
};
static bool lost[sizeof(losses) / sizeof(losses[0])];

static bool may_be_lost(void *user, const char *line)
{
    const char *version = (const char *)gl.glGetString(GL_VERSION);
    (void)user;
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        if (strstr(version, losses[i].driver) != NULL &&
            strncmp(line, losses[i].query, strlen(losses[i].query)) == 0) {
            lost[i] = true;
            return true;
        }
    }
    return false;
}

static char *dir;

static void a_hit_answers_as_the_link_did(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROGRAMS; i++) {
        char name[32];
        linked program = programs[i];
        (void)snprintf(name, sizeof(name), "%zu", i);
        const dropin_case one = {dir, name, program.name, describe, may_be_lost, &program};
        assert_true(dropin_compare(&one, NULL));
    }
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        if (lost[i]) {
            print_message("lost with a binary: %s\n", losses[i].query);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_hit_answers_as_the_link_did)};
    const char *missing = open_context();
    if (missing != NULL) {
        kn_test_skip("opengl", missing);
    }
    (void)printf("%s\n", (const char *)gl.glGetString(GL_RENDERER));
    dir = kt_tmpdir_create();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kt_tmpdir_remove(dir);
    return failed;
}
