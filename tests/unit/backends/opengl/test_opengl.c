/* The opengl backend on whatever driver is here (llvmpipe in CI). */
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/container.h"
#include "apis/opengl/backend/opengl.h"
#include "hal/artifact.h"
#include "support/cmocka.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "unit/backends/glsl_rig.h"

extern const kiln_backend kn_backend_opengl;

static kn_gl *gl;
static kn_gl_device *device;

static int open_device(void **state)
{
    kiln_probe_report report = {.struct_size = sizeof(report)};
    void *opened = NULL;
    /* A display that is not there must not matter (row 92). */
    (void)setenv("DISPLAY", "nowhere:77", 1);
    if (kn_backend_opengl.open(&kn_host, &opened, &report, NULL) != KILN_OK) {
        kn_test_skip("opengl", report.why);
    }
    gl = (kn_gl *)opened;
    assert_int_equal(kn_backend_opengl.device->device_open(gl, 0, &opened, NULL), KILN_OK);
    device = (kn_gl_device *)opened;
    return 0;
}

static int close_device(void **state)
{
    kn_backend_opengl.device->device_close(device);
    kn_backend_opengl.close(gl);
    return 0;
}

static void need_binaries(void)
{
    if (gl->units[0].facts.format_count == 0) {
        print_message("this driver gives no program binaries\n");
        skip();
    }
}

static void row_92_software_is_said_to_be_software(void **state)
{
    const kiln_device_info *info = &gl->units[0].info;
    const bool software =
        strstr(info->name, "llvmpipe") != NULL || strstr(info->name, "softpipe") != NULL;
    assert_int_equal(info->device_class == KILN_DEVICE_SOFTWARE, software);
    assert_true(info->max_group_size >= 128); /* OpenGL 4.3's minima are larger */
    assert_true(gl->units[0].facts.major >= 4);
}

static void take_text(void *sink, const char *name, const char *value)
{
    kn_strbuf_printf((kn_strbuf *)sink, "%s=%s\n", name, value);
}

static void take_env(void *sink, const char *variable)
{
    const char *value = getenv(variable);
    kn_strbuf_printf((kn_strbuf *)sink, "%s:%s\n", variable, value != NULL ? value : "-");
}

static char *identity_of(const kn_gl_facts *facts, const char *modules)
{
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    const kiln_identity identity = {&text, take_text, take_env};
    kn_gl_identify_context(facts, modules, &identity);
    return kn_strbuf_detach(&text, NULL);
}

/* Changing one fact of the context changes the key. */
static void row_89_every_fact_of_the_context_is_in_the_key(void **state)
{
    const kn_gl_facts facts = gl->units[0].facts;
    char *modules = NULL;
    assert_int_equal(kn_gl_modules_find(&facts, &modules, NULL), KILN_OK);
    char *before = identity_of(&facts, modules);
    assert_non_null(strstr(before, "gl.module="));
    if (strstr(facts.renderer, "llvmpipe") != NULL) {
        assert_non_null(strstr(before, "gl.module=libLLVM")); /* that is what makes the code */
    }
    for (int i = 0; i < 9; i++) {
        kn_gl_facts other = facts;
        other.vendor[0] = i == 0 ? '?' : other.vendor[0];
        other.renderer[0] = i == 1 ? '?' : other.renderer[0];
        other.version[0] = i == 2 ? '?' : other.version[0];
        other.glsl[0] = i == 3 ? '?' : other.glsl[0];
        other.es = i == 4 ? !other.es : other.es;
        other.profile ^= i == 5;
        other.flags ^= i == 6;
        other.formats[0] ^= i == 7 && other.format_count > 0;
        other.format_count += i == 8;
        char *after = identity_of(&other, modules);
        if (i != 7 || facts.format_count > 0) {
            assert_string_not_equal(before, after);
        }
        free(after);
    }
    char *after = identity_of(&facts, "libother.so 00\n");
    assert_string_not_equal(before, after);
    free(after);
    assert_int_equal(setenv("LP_NATIVE_VECTOR_WIDTH", "128", 1), 0);
    after = identity_of(&facts, modules);
    assert_string_not_equal(before, after);
    (void)unsetenv("LP_NATIVE_VECTOR_WIDTH");
    free(after);
    free(before);
    free(modules);
}

/* --- binaries --------------------------------------------------------------------------------- */

static size_t binaries_given;
static PFNGLPROGRAMBINARYPROC real_binary;

static void APIENTRY spy(GLuint program, GLenum format, const void *data, GLsizei size)
{
    binaries_given++;
    real_binary(program, format, data, size);
}

static const char fixed[] = "#version 430\nlayout(local_size_x = 8) in;\n"
                            "layout(std430, binding = 0) buffer b { uint data[]; };\n"
                            "void main() { data[gl_GlobalInvocationID.x] = 1u; }\n";

/* What the driver refuses is refused here; what it could not take does not get to it. */
static void row_74_refused_binaries_are_said_to_be_refused(void **state)
{
    need_binaries();
    kn_artifact artifact;
    kn_gl_container parts;
    kiln_source source = glsl_source(fixed);
    glsl_compile(&kn_backend_opengl, gl, device, &source, &artifact);
    const size_t size = artifact.base.size;
    char *bytes = (char *)malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, artifact.base.data, size);
    assert_true(kn_gl_container_read(bytes, size, &parts));
    assert_int_equal(parts.part_count, 1);
    real_binary = gl->units[0].gl.glProgramBinary;
    gl->units[0].gl.glProgramBinary = spy;
    binaries_given = 0;
    assert_int_equal(glsl_load(&kn_backend_opengl, device, &source, bytes, size, NULL), KILN_OK);
    assert_int_equal(binaries_given, 1);

    for (size_t cut = 0; cut < size; cut += 1 + size / 50) {
        assert_int_equal(glsl_load(&kn_backend_opengl, device, &source, bytes, cut, NULL),
                         KILN_E_REJECTED);
    }
    for (size_t bit = 0; bit < 8; bit++) { /* a format that is not the driver's */
        bytes[40] = (char)(bytes[40] ^ (1 << bit));
        assert_int_equal(glsl_load(&kn_backend_opengl, device, &source, bytes, size, NULL),
                         KILN_E_REJECTED);
        bytes[40] = (char)(bytes[40] ^ (1 << bit));
    }
    assert_int_equal(binaries_given, 1);
    if (parts.parts[0].format == 0x875f) { /* Mesa's own checks: digest of the driver, checksum */
        char *binary = bytes + ((const char *)parts.parts[0].data - bytes);
        for (size_t at = 4; at < 24; at += 5) {
            binary[at] = (char)(binary[at] ^ 0x10);
            assert_int_equal(glsl_load(&kn_backend_opengl, device, &source, bytes, size, NULL),
                             KILN_E_REJECTED);
            binary[at] = (char)(binary[at] ^ 0x10);
        }
        binary[parts.parts[0].size - 5] ^= 1;
        assert_int_equal(glsl_load(&kn_backend_opengl, device, &source, bytes, size, NULL),
                         KILN_E_REJECTED);
        binary[parts.parts[0].size - 5] ^= 1;
    }
    assert_int_equal(glsl_load(&kn_backend_opengl, device, &source, bytes, size, NULL), KILN_OK);
    gl->units[0].gl.glProgramBinary = real_binary;
    free(bytes);
    kn_artifact_deinit(&artifact);
}

static void errors_name_file_and_line(void **state)
{
    char *dir = kt_tmpdir_create();
    glsl_rig rig;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    const kiln_header header = {"part.glsl", "\n\nfloat f() { return wrong_name; }\n", 35};
    kiln_source source = glsl_source("#version 430\n#include \"part.glsl\"\n"
                                     "layout(local_size_x = 1) in;\nvoid main() { f(); }\n");
    source.headers = &header;
    source.header_count = 1;
    glsl_open(&rig, "opengl", dir);
    assert_int_equal(kiln_program_build(rig.device, &source, 1, NULL, &program, &diag),
                     KILN_E_COMPILE);
    assert_non_null(strstr(diag.log, "wrong_name"));
    /* Mesa and NVIDIA write it each in its own way. */
    assert_true(strstr(diag.log, ":3(") != NULL || strstr(diag.log, "part.glsl(3)") != NULL);
    kiln_diag_clear(&diag);
    source = glsl_source("#version 430\nlayout(local_size_x = 1) in;\nvoid g();\n"
                         "void main() { g(); }\n"); /* only the linker misses it */
    assert_int_equal(kiln_program_build(rig.device, &source, 1, NULL, &program, &diag),
                     KILN_E_COMPILE);
    assert_non_null(diag.log);
    assert_true(diag.log[0] != '\0');
    kiln_diag_clear(&diag);
    glsl_close(&rig);
    kt_tmpdir_remove(dir);
}

static void damaged_entries_are_made_again(void **state)
{
    need_binaries();
    glsl_damaged_entries_are_made_again("opengl", "opengl-");
}

/* --- sizes ------------------------------------------------------------------------------------ */

static size_t links;
static PFNGLLINKPROGRAMPROC real_link;

static void APIENTRY count_link(GLuint program)
{
    links++;
    real_link(program);
}

static kiln_status launch(void *program, void *buffer, uint64_t local)
{
    const uint32_t amount = 1;
    const kiln_sys_arg args[] = {
        {.kind = KILN_ARG_VALUE, .value = &amount, .size = sizeof(amount)},
        {.kind = KILN_ARG_BUFFER, .buffer = buffer},
    };
    const kiln_sys_launch shape = {.program = program,
                                   .entry = "main",
                                   .dims = 1,
                                   .global = {64, 1, 1},
                                   .local = {local, 1, 1},
                                   .args = args,
                                   .arg_count = 2};
    return kn_backend_opengl.device->queue_launch(device, &shape, NULL, NULL);
}

/* One link a size, and none in the next process that loads the capture. */
static void all_sizes_launched_are_kept(void **state)
{
    need_binaries();
    const kiln_device_ops *ops = kn_backend_opengl.device;
    kn_artifact artifact;
    kn_artifact captured;
    kiln_source source = glsl_source(glsl_increment);
    void *program = NULL;
    void *buffer = NULL;
    glsl_compile(&kn_backend_opengl, gl, device, &source, &artifact);
    const kiln_artifact *list[] = {&artifact.base};
    kiln_load_request request = {.source = &source, .artifacts = list, .artifact_count = 1};
    real_link = gl->units[0].gl.glLinkProgram;
    gl->units[0].gl.glLinkProgram = count_link;
    links = 0;
    assert_int_equal(ops->buffer_create(device, 256, &buffer, NULL), KILN_OK);
    assert_int_equal(ops->program_load(device, &request, &program, NULL), KILN_OK);
    assert_false(ops->program_grew(device, program));
    for (int round = 0; round < 2; round++) {
        assert_int_equal(launch(program, buffer, 8), KILN_OK);
        assert_int_equal(launch(program, buffer, 32), KILN_OK);
        assert_int_equal(launch(program, buffer, 64), KILN_OK);
    }
    assert_int_equal(links, 3);
    assert_true(ops->program_grew(device, program));
    kn_artifact_init(&captured);
    assert_int_equal(ops->program_capture(device, program, &captured.base, NULL), KILN_OK);
    assert_false(ops->program_grew(device, program));
    ops->program_unload(device, program);

    list[0] = &captured.base;
    links = 0;
    assert_int_equal(ops->program_load(device, &request, &program, NULL), KILN_OK);
    assert_int_equal(launch(program, buffer, 8), KILN_OK);
    assert_int_equal(launch(program, buffer, 32), KILN_OK);
    assert_int_equal(launch(program, buffer, 64), KILN_OK);
    assert_int_equal(links, 0);
    assert_false(ops->program_grew(device, program));
    assert_int_equal(launch(program, buffer, 16), KILN_OK);
    assert_int_equal(links, 1);
    gl->units[0].gl.glLinkProgram = real_link;
    ops->program_unload(device, program);
    ops->buffer_destroy(device, buffer);
    kn_artifact_deinit(&captured);
    kn_artifact_deinit(&artifact);
}

static void two_views_are_one_buffer(void **state)
{
    glsl_two_views_are_one_buffer("opengl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_92_software_is_said_to_be_software),
        cmocka_unit_test(row_89_every_fact_of_the_context_is_in_the_key),
        cmocka_unit_test(row_74_refused_binaries_are_said_to_be_refused),
        cmocka_unit_test(errors_name_file_and_line),
        cmocka_unit_test(damaged_entries_are_made_again),
        cmocka_unit_test(all_sizes_launched_are_kept),
        cmocka_unit_test(two_views_are_one_buffer),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
