/* kiln/opengl.h on whatever driver is here, for a program with a context of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/opengl.h>

#include "support/cmocka.h"
#include "support/counters.h"
#include "support/tmpdir.h"
#include "support/unended.h"
#include "unit/dropin/opengl_rig.h"

static PFNGLLINKPROGRAMPROC real_link;
static PFNGLPROGRAMBINARYPROC real_binary;
static PFNGLGETINTEGERVPROC real_integer;
static size_t links, binaries;
static PFNGLPROGRAMPARAMETERIPROC real_parameter;
static bool spoil, no_formats, no_separable;
static const char *marked; /* each load is to be noted in this root */

static void APIENTRY spy_link(GLuint program)
{
    links++;
    real_link(program);
}

static void APIENTRY spy_binary(GLuint program, GLenum format, const void *data, GLsizei size)
{
    binaries++;
    if (marked != NULL) {
        assert_true(kt_is_in_load(marked));
    }
    real_binary(program, format, data, spoil ? size / 2 : size);
}

static void APIENTRY spy_integer(GLenum name, GLint *value)
{
    real_integer(name, value);
    if (no_formats && name == GL_NUM_PROGRAM_BINARY_FORMATS) {
        *value = 0;
    }
}

/* OpenGL ES 3.0 knows one parameter. */
static void APIENTRY spy_parameter(GLuint program, GLenum name, GLint value)
{
    real_parameter(program, no_separable && name == GL_PROGRAM_SEPARABLE ? GL_NONE : name, value);
}

static kiln_opengl_function get(const char *name)
{
    if (strcmp(name, "glProgramParameteri") == 0) {
        return (kiln_opengl_function)spy_parameter;
    }
    if (strcmp(name, "glLinkProgram") == 0) {
        return (kiln_opengl_function)spy_link;
    }
    if (strcmp(name, "glProgramBinary") == 0) {
        return (kiln_opengl_function)spy_binary;
    }
    if (strcmp(name, "glGetIntegerv") == 0) {
        return (kiln_opengl_function)spy_integer;
    }
    return (kiln_opengl_function)rig_get(name);
}

static int open_opengl(void **state)
{
    const kiln_opengl_shader shader = {GL_COMPUTE_SHADER, "void main() {}", 0};
    uint32_t program = 0;
    kiln_diag diag = KILN_DIAG_INIT;
    /* Before there is any context. */
    assert_int_equal(kiln_opengl_build_program(NULL, &shader, 1, NULL, &program, &diag),
                     KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, "context"));
    kiln_diag_clear(&diag);
    rig_need_context();
    real_link = (PFNGLLINKPROGRAMPROC)rig_get("glLinkProgram");
    real_binary = (PFNGLPROGRAMBINARYPROC)rig_get("glProgramBinary");
    real_integer = (PFNGLGETINTEGERVPROC)rig_get("glGetIntegerv");
    real_parameter = (PFNGLPROGRAMPARAMETERIPROC)rig_get("glProgramParameteri");
    return 0;
}

static const char vertex[] = "#version 430 core\nin vec4 place;\n"
                             "out gl_PerVertex { vec4 gl_Position; };\n"
                             "void main() { gl_Position = place; }\n";
static const char fragment[] = "#version 430 core\nout vec4 colour;\n"
                               "void main() { colour = vec4(1.0); }\n";
static const char grey[] = "#version 430 core\nout vec4 colour;\n"
                           "void main() { colour = vec4(0.5); }\n";

static kiln_cache *open_cache(const char *dir)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = dir;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    return cache;
}

static void bind_place(void *user, uint32_t program)
{
    ((PFNGLBINDATTRIBLOCATIONPROC)rig_get("glBindAttribLocation"))(program, *(GLuint *)user,
                                                                   "place");
}

/* Builds with a cache opened for it; where `place` is in the program, and the cache's counters. */
static GLint build(const char *dir, const char *fragment_text, GLuint place, bool separable,
                   kt_counters *out_stats)
{
    const kiln_opengl_shader shaders[] = {{GL_VERTEX_SHADER, vertex, 0},
                                          {GL_FRAGMENT_SHADER, fragment_text, 0}};
    char state[16];
    (void)snprintf(state, sizeof(state), "place %u", place);
    const kiln_opengl_options options = {.struct_size = sizeof(options),
                                         .get_proc_address = get,
                                         .separable = separable,
                                         .before_link = bind_place,
                                         .link_state = state,
                                         .user = &place};
    kiln_cache *cache = open_cache(dir);
    kiln_diag diag = KILN_DIAG_INIT;
    uint32_t program = 0;
    links = 0;
    binaries = 0;
    kiln_status status = kiln_opengl_build_program(cache, shaders, 2, &options, &program, &diag);
    if (status != KILN_OK) {
        print_error("%s: %s\n%s\n", diag.what, diag.why, diag.log != NULL ? diag.log : "");
    }
    assert_int_equal(status, KILN_OK);
    assert_true(program != 0);
    kt_counters_own(cache, out_stats);
    kiln_cache_destroy(cache);
    const GLint got =
        ((PFNGLGETATTRIBLOCATIONPROC)rig_get("glGetAttribLocation"))(program, "place");
    ((PFNGLDELETEPROGRAMPROC)rig_get("glDeleteProgram"))(program);
    assert_int_equal(((PFNGLGETERRORPROC)rig_get("glGetError"))(), GL_NO_ERROR);
    return got;
}

static void programs_are_linked_once(void **state)
{
    const char *dir = (const char *)*state;
    kt_counters stats;
    assert_int_equal(build(dir, fragment, 3, false, &stats), 3);
    assert_int_equal(links, 1);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(build(dir, fragment, 3, false, &stats), 3);
    assert_int_equal(links, 0);
    assert_int_equal(binaries, 1);
    assert_int_equal(stats.compiles, 0);
    /* whatever goes into the link makes another program of it */
    assert_int_equal(build(dir, fragment, 4, false, &stats), 4);
    assert_int_equal(links, 1);
    assert_int_equal(build(dir, grey, 3, false, &stats), 3);
    assert_int_equal(links, 1);
    assert_int_equal(build(dir, fragment, 3, true, &stats), 3);
    assert_int_equal(links, 1);
}

static void row_74_refused_binaries_are_made_again(void **state)
{
    const char *dir = (const char *)*state;
    kt_counters stats;
    (void)build(dir, fragment, 3, false, &stats);
    spoil = true;
    assert_int_equal(build(dir, fragment, 3, false, &stats), 3);
    spoil = false;
    assert_int_equal(binaries, 1);
    assert_int_equal(links, 1);
    assert_int_equal(stats.rejected, 1);
    assert_int_equal(build(dir, fragment, 3, false, &stats), 3);
    assert_int_equal(links, 0);
}

/* Another process did not live to see the end of loading it, and then another one. */
static void what_two_processes_died_of_is_not_loaded(void **state)
{
    const char *dir = (const char *)*state;
    kt_counters stats;
    (void)build(dir, fragment, 3, false, &stats);
    kt_end_in_load(dir, NULL);
    marked = dir;
    (void)build(dir, fragment, 3, false, &stats);
    assert_int_equal(binaries, 1); /* which ended well, and began a new count */
    assert_false(kt_is_in_load(dir));
    kt_end_in_load(dir, NULL);
    kt_end_in_load(dir, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(build(dir, fragment, 3, false, &stats), 3);
        assert_int_equal(binaries, 0);
        assert_int_equal(links, 1);
        assert_int_equal(stats.unended, 1);
        assert_int_equal(stats.rejected, 0);
    }
    marked = NULL;
}

static void without_binaries_programs_are_linked_each_time(void **state)
{
    const char *dir = (const char *)*state;
    kt_counters stats;
    no_formats = true;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(build(dir, fragment, 3, false, &stats), 3);
        assert_int_equal(links, 1);
        assert_int_equal(stats.bypassed, 1);
        assert_int_equal(stats.puts, 0);
    }
    no_formats = false;
}

static void contexts_without_separable_programs_do(void **state)
{
    const char *dir = (const char *)*state;
    kt_counters stats;
    no_separable = true;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(build(dir, fragment, 3, false, &stats), 3);
        assert_int_equal(stats.compiles, round == 0);
    }
    no_separable = false;
}

static bool has_extension(const char *name)
{
    PFNGLGETSTRINGIPROC get_string = (PFNGLGETSTRINGIPROC)rig_get("glGetStringi");
    GLint count = 0;
    real_integer(GL_NUM_EXTENSIONS, &count);
    for (GLint i = 0; i < count; i++) {
        if (strcmp((const char *)get_string(GL_EXTENSIONS, (GLuint)i), name) == 0) {
            return true;
        }
    }
    return false;
}

/* What #include names is in the context, not in the text: a string that the program can replace. */
static void K1_shaders_that_include_go_past_the_cache(void **state)
{
    static const char including[] = "#version 430 core\n"
                                    "#extension GL_ARB_shading_language_include : require\n"
                                    "#include \"/shade.glsl\"\nout vec4 colour;\n"
                                    "void main() { colour = vec4(SHADE); }\n";
    const char *dir = (const char *)*state;
    kt_counters stats;
    if (!has_extension("GL_ARB_shading_language_include")) {
        skip();
    }
    PFNGLNAMEDSTRINGARBPROC name = (PFNGLNAMEDSTRINGARBPROC)rig_get("glNamedStringARB");
    name(GL_SHADER_INCLUDE_ARB, -1, "/shade.glsl", -1, "#define SHADE 0.25\n");
    assert_int_equal(build(dir, including, 3, false, &stats), 3);
    assert_int_equal(stats.bypassed, 1);
    name(GL_SHADER_INCLUDE_ARB, -1, "/shade.glsl", -1, "#define SHADE 0.75\n");
    assert_int_equal(build(dir, including, 3, false, &stats), 3);
    assert_int_equal(links, 1);
    assert_int_equal(stats.puts, 0);
}

static void errors_have_their_log(void **state)
{
    const char *dir = (const char *)*state;
    const kiln_opengl_shader broken[] = {
        {GL_VERTEX_SHADER, vertex, 0},
        {GL_FRAGMENT_SHADER, "#version 430\nvoid main() { nope(); }", 0}};
    kiln_cache *cache = open_cache(dir);
    kiln_diag diag = KILN_DIAG_INIT;
    uint32_t program = 1;
    assert_int_equal(kiln_opengl_build_program(cache, broken, 2, NULL, &program, &diag),
                     KILN_E_COMPILE);
    assert_int_equal(program, 0);
    assert_non_null(strstr(diag.log, "nope"));
    assert_non_null(strstr(diag.what, "shader 1"));
    const kiln_opengl_options silent = {.struct_size = sizeof(silent), .before_link = bind_place};
    assert_int_equal(kiln_opengl_build_program(cache, broken, 2, &silent, &program, &diag),
                     KILN_E_INVALID);
    assert_int_equal(kiln_opengl_build_program(cache, broken, 0, NULL, &program, &diag),
                     KILN_E_INVALID);
    kiln_diag_clear(&diag);
    kiln_cache_destroy(cache);
}

int main(void)
{
#define TEST(name) kt_dir_test(name)
    const struct CMUnitTest tests[] = {
        TEST(programs_are_linked_once),
        TEST(row_74_refused_binaries_are_made_again),
        TEST(what_two_processes_died_of_is_not_loaded),
        TEST(without_binaries_programs_are_linked_each_time),
        TEST(contexts_without_separable_programs_do),
        TEST(K1_shaders_that_include_go_past_the_cache),
        TEST(errors_have_their_log),
    };
    return cmocka_run_group_tests(tests, open_opengl, NULL);
}
