/* The situations of tests/unit/engine/situations.c, for OpenGL programs, on whatever driver is
 * here. */
#include <stdatomic.h>
#include <string.h>

#include <kiln/unstable/opengl.h>

#include "unit/dropin/opengl_rig.h"
#include "unit/engine/situations.h"

/* --- the driver ------------------------------------------------------------------------------- */

/* What it does next; taken back after the compile. */
static struct {
    _Atomic bool fails, refuses, has_no_binary, has_no_formats;
    _Atomic unsigned compiles;
    void (*_Atomic during)(void);
} real;

static void APIENTRY spy_link(GLuint program)
{
    real.compiles++;
    RIG_CALL(PFNGLLINKPROGRAMPROC, glLinkProgram)(program);
}

static void APIENTRY spy_binary(GLuint program, GLenum format, const void *data, GLsizei size)
{
    RIG_CALL(PFNGLPROGRAMBINARYPROC, glProgramBinary)
    (program, format, data, real.refuses ? size / 2 : size);
}

static void APIENTRY spy_program(GLuint program, GLenum name, GLint *value)
{
    RIG_CALL(PFNGLGETPROGRAMIVPROC, glGetProgramiv)(program, name, value);
    if ((name == GL_LINK_STATUS && real.fails) ||
        (name == GL_PROGRAM_BINARY_LENGTH && real.has_no_binary)) {
        *value = 0;
    }
}

static void APIENTRY spy_integer(GLenum name, GLint *value)
{
    RIG_CALL(PFNGLGETINTEGERVPROC, glGetIntegerv)(name, value);
    if (name == GL_NUM_PROGRAM_BINARY_FORMATS && real.has_no_formats) {
        *value = 0;
    }
}

static kiln_opengl_function find_call(const char *name)
{
    static const struct {
        const char *name;
        kiln_opengl_function call;
    } spies[] = {{"glLinkProgram", (kiln_opengl_function)spy_link},
                 {"glProgramBinary", (kiln_opengl_function)spy_binary},
                 {"glGetProgramiv", (kiln_opengl_function)spy_program},
                 {"glGetIntegerv", (kiln_opengl_function)spy_integer}};
    for (size_t i = 0; i < sizeof(spies) / sizeof(spies[0]); i++) {
        if (strcmp(name, spies[i].name) == 0) {
            return spies[i].call;
        }
    }
    return (kiln_opengl_function)rig_get(name);
}

/* --- a program -------------------------------------------------------------------------------- */

static kiln_cache *cache_now;

static void begin(const char *dir)
{
    (void)dir;
    memset(&real, 0, sizeof(real));
}

static void end(void)
{
}

static void use_cache(kiln_cache *cache)
{
    cache_now = cache;
}

/* The program's own part of a compile. */
static void before_link(void *user, uint32_t program)
{
    void (*during)(void) = atomic_exchange(&real.during, NULL);
    (void)user, (void)program;
    if (during != NULL) {
        during();
    }
}

static void check_program(GLuint program, const char *uniform)
{
    assert_int_not_equal(program, 0);
    assert_true(RIG_CALL(PFNGLGETUNIFORMLOCATIONPROC, glGetUniformLocation)(program, uniform) >= 0);
    RIG_CALL(PFNGLDELETEPROGRAMPROC, glDeleteProgram)(program);
}

static void compile_program(bool other)
{
    static const char one[] = "#version 430 core\nuniform vec4 one;\n"
                              "void main() { gl_Position = one; }\n";
    static const char another[] = "#version 430 core\nuniform vec4 another;\n"
                                  "void main() { gl_Position = another; }\n";
    const kiln_opengl_shader shader = {GL_VERTEX_SHADER, other ? another : one, 0};
    const kiln_opengl_options options = {.struct_size = sizeof(options),
                                         .get_proc_address = find_call,
                                         .before_link = before_link,
                                         .link_state = ""};
    const kiln_status expected = real.fails ? KILN_E_COMPILE : KILN_OK;
    const bool own = !rig_has_context();
    uint32_t program = 0;
    assert_true(!own || rig_open_context());
    assert_int_equal(kiln_opengl_build_program(cache_now, &shader, 1, &options, &program, NULL),
                     expected);
    if (expected == KILN_OK) {
        check_program(program, other ? "another" : "one");
    }
    assert_int_equal(RIG_CALL(PFNGLGETERRORPROC, glGetError)(), GL_NO_ERROR);
    if (own) {
        rig_close_context();
    }
    real.fails = false;
    real.refuses = false;
    real.has_no_binary = false;
    real.has_no_formats = false;
}

static unsigned count_compiles(void)
{
    return real.compiles;
}

static void call_during(void (*call)(void))
{
    real.during = call;
}

/* --- events ----------------------------------------------------------------------------------- */

static const kt_frontend opengl = {
    .name = "opengl",
    .target = "opengl",
    .begin = begin,
    .end = end,
    .use = use_cache,
    .compile = compile_program,
    .compiles = count_compiles,
    .during = call_during,
    .flags = {[KT_REFUSES] = &real.refuses,
              [KT_PRIVATE] = &real.has_no_binary,
              [KT_FAILS] = &real.fails,
              [KT_BYPASSES] = &real.has_no_formats},
    .impossible = {[KT_LOAD_FAILS] = "OpenGL gives no reason: what does not load is refused",
                   [KT_HEADER] = "a shader that includes bypasses the cache",
                   [KT_COMPILER] = "the key has the build ids of what the process has mapped",
                   [KT_DEFERS] = "the driver has the binary when it has linked",
                   [KT_RECORDS] = "programs depend on objects of the program that makes them",
                   [KT_FORKS] = "a context cannot be used in a child"}};

static int open_opengl(void **state)
{
    (void)state;
    rig_need_context();
    return 0;
}

static void opengl_passes_every_situation(void **state)
{
    (void)state;
    kt_check_situations(&opengl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opengl_passes_every_situation)};
    return cmocka_run_group_tests(tests, open_opengl, NULL);
}
