/* NVIDIA's binaries are PTX: machine code is made of it once, off the way to the first result, and
 * loaded in its place. On a fake driver that counts (S a build from source, B a load of PTX, M of
 * machine code) and a ptxas that is a script and leaves a line for each run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/unstable/compile.h>

#include "apis/opencl/backend/opencl.h"
#include "kiln/kiln.h"
#include "kiln/opencl.h"
#include "support/opencl_child.h"
#include "support/tmpdir.h"
#include "unit/backends/opencl/rig.h"

enum { MANY = 75 }; /* so many that the driver does not survive a list of their names */

/* --- in the child: HOW OPTION MARK ------------------------------------------------------------ */

static int run_runtime(const char *how, const char *text, const char *option)
{
    kiln_runtime *runtime = NULL;
    kiln_device *device = NULL;
    kiln_program *program = NULL;
    kiln_blob *blob = NULL;
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_OPENCL_C;
    source.text = text;
    source.length = strlen(text);
    source.options = &option;
    source.option_count = option[0] != '\0';
    kiln_status status = rig_open_runtime(&source, &runtime, &device);
    if (status == KILN_OK && strcmp(how, "compile") == 0) {
        status = kiln_compile(runtime, "opencl:0", &source, &blob, NULL, NULL);
        if (status == KILN_OK && strncmp(kiln_blob_data(blob), "//", 2) != 0) {
            status = KILN_E_INTERNAL; /* what a driver of today or of before takes */
        }
        kiln_blob_release(blob);
    } else if (status == KILN_OK) {
        status = kiln_program_build(device, &source, 1, NULL, &program, NULL);
        status = status == KILN_OK ? rig_launch_once(device, program) : status;
        const size_t wanted = strcmp(how, "many") == 0 ? MANY : 3;
        if (status == KILN_OK && kiln_program_entry_count(program) != wanted) {
            status = KILN_E_INTERNAL;
        }
        kiln_program_release(program);
    }
    kiln_runtime_destroy(runtime);
    return (int)status;
}

static int run_drop_in(const char *text, const char *options)
{
    kiln_cache *cache = NULL;
    cl_platform_id platform = NULL;
    cl_device_id device = NULL;
    cl_int code = CL_SUCCESS;
    struct _cl_program *program = NULL;
    kn_dylib *lib = NULL;
    kn_opencl_api api;
    char path[512];
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kiln_status status = kn_opencl_library_open(&lib, &api, path, sizeof(path), &outcome, NULL);
    if (status != KILN_OK || api.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
        return 1;
    }
    cl_context context = api.clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    status = kiln_cache_create(NULL, &cache, NULL);
    if (status == KILN_OK) {
        status = kiln_opencl_build_program(cache, context, device, text, options, &program, NULL);
    }
    if (status == KILN_OK) {
        (void)api.clReleaseProgram(program);
    }
    kiln_cache_destroy(cache);
    kn_dylib_close(lib);
    return (int)status;
}

static int child(const char *how, const char *option, const char *mark)
{
    char text[4096];
    int length = snprintf(text, sizeof(text), "// %s\n__kernel void k(void) {}\n", mark);
    const int kernels = strncmp(how, "many", 4) == 0 ? MANY : 3;
    for (int i = 1; i < kernels; i++) {
        length += snprintf(text + length, sizeof(text) - (size_t)length,
                           "__kernel void k%d(void) {}\n", i);
    }
    if (strcmp(how, "many drop-in") == 0) {
        how = "drop-in";
    }
    return strcmp(how, "drop-in") == 0 ? run_drop_in(text, option) : run_runtime(how, text, option);
}

/* --- in the parent ---------------------------------------------------------------------------- */

static void write_ptxas(const char *dir, const char *answer)
{
    char script[1024];
    char *toolkit = kt_at(dir, "toolkit/bin/ptxas");
    char *log = kt_at(dir, "runs");
    char command[1200];
    (void)snprintf(command, sizeof(command), "mkdir -p %s/toolkit/bin", dir);
    assert_int_equal(system(command), 0);
    (void)snprintf(script, sizeof(script), "#!/bin/sh\necho \"$*\" >>%s\n%s\n", log, answer);
    kt_file_write(toolkit, script, strlen(script));
    assert_int_equal(chmod(toolkit, 0700), 0);
    kt_file_write(log, "", 0);
}

#define ASSEMBLES "printf '\\177ELF'; exec cat"

static unsigned count_in(const char *text, char letter)
{
    unsigned found = 0;
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        found += *at == letter;
    }
    return found;
}

static unsigned count_runs(const char *dir)
{
    char *path = kt_at(dir, "runs");
    char *text = kt_file_read(path, NULL);
    const unsigned runs = count_in(text, '\n');
    free(text);
    return runs;
}

/* How often: built from source, loaded as PTX, as machine code, assembled. */
static void expect(void **state, const char *how, const char *option, const char *mark,
                   const char *variable, const char *wanted)
{
    const char *dir = (const char *)*state;
    char toolkit[4200], got[64];
    const unsigned runs = count_runs(dir);
    (void)snprintf(toolkit, sizeof(toolkit), "CUDA_PATH=%s/toolkit", dir);
    const char *argv[] = {NULL, how, option, mark, NULL};
    const char *const settings[] = {toolkit, variable, NULL};
    child_variant = "nvidia";
    assert_int_equal(child_run(dir, argv, settings), 0);
    (void)snprintf(got, sizeof(got), "S%u B%u M%u ptxas %u", count_in(child_last.calls, 'S'),
                   count_in(child_last.calls, 'B'), count_in(child_last.calls, 'M'),
                   count_runs(dir) - runs);
    assert_string_equal(got, wanted);
}

#define COMPILED "S1 B0 M0 ptxas 1"
#define LOADED_CODE "S0 B0 M1 ptxas 0"

static void code_is_made_once_and_loaded(void **state)
{
    write_ptxas((const char *)*state, ASSEMBLES);
    expect(state, "launch", "", "a", NULL, COMPILED);
    expect(state, "launch", "", "a", NULL, LOADED_CODE);
    expect(state, "launch", "", "a", NULL, LOADED_CODE);
    char *path = kt_at((const char *)*state, "runs");
    char *runs = kt_file_read(path, NULL);
    assert_string_equal(runs, "-arch=sm_90 /dev/stdin -o /dev/stdout\n");
    free(runs);
}

static void a_compile_for_later_has_it_at_once(void **state)
{
    write_ptxas((const char *)*state, ASSEMBLES);
    expect(state, "compile", "", "b", NULL, COMPILED);
    expect(state, "compile", "", "b", NULL, "S0 B0 M0 ptxas 0");
    expect(state, "launch", "", "b", NULL, LOADED_CODE);
}

static void the_drop_in_has_it_too(void **state)
{
    write_ptxas((const char *)*state, ASSEMBLES);
    expect(state, "drop-in", "", "c", NULL, COMPILED);
    expect(state, "drop-in", "", "c", NULL, LOADED_CODE);
    expect(state, "drop-in", "", "c", "FAKECL_REFUSES_CODE=1", "S0 B1 M1 ptxas 0");
}

/* From source, as code and as PTX: NVIDIA's driver would write past the list's end. */
static void no_list_of_long_names_is_asked_for(void **state)
{
    write_ptxas((const char *)*state, ASSEMBLES);
    expect(state, "many", "", "h", NULL, COMPILED);
    expect(state, "many", "", "h", NULL, LOADED_CODE);
    expect(state, "many", "", "h", "FAKECL_REFUSES_CODE=1", "S0 B1 M1 ptxas 0");
    expect(state, "many drop-in", "", "h", NULL, COMPILED);
    expect(state, "many drop-in", "", "h", NULL, LOADED_CODE);
}

static void a_driver_that_refuses_code_gets_the_PTX(void **state)
{
    write_ptxas((const char *)*state, ASSEMBLES);
    expect(state, "launch", "", "d", NULL, COMPILED);
    expect(state, "launch", "", "d", "FAKECL_REFUSES_CODE=1", "S0 B1 M1 ptxas 0");
    expect(state, "launch", "", "d", NULL, LOADED_CODE);
}

static void code_without_all_kernels_is_not_used(void **state)
{
    write_ptxas((const char *)*state, ASSEMBLES);
    expect(state, "launch", "", "lost", NULL, COMPILED);
    expect(state, "launch", "", "lost", NULL, "S0 B1 M1 ptxas 0");
    expect(state, "drop-in", "", "lost", NULL, COMPILED);
    expect(state, "drop-in", "", "lost", NULL, "S0 B1 M1 ptxas 0");
}

static void what_ptxas_refuses_is_not_tried_again(void **state)
{
    write_ptxas((const char *)*state, "cat >/dev/null; echo 'Unsupported .version' >&2; exit 1");
    expect(state, "launch", "", "e", NULL, COMPILED);
    expect(state, "launch", "", "e", NULL, "S0 B1 M0 ptxas 0");
    expect(state, "drop-in", "", "e", NULL, COMPILED);
    expect(state, "drop-in", "", "e", NULL, "S0 B1 M0 ptxas 0");
}

static void a_ptxas_that_is_killed_is_tried_again(void **state)
{
    write_ptxas((const char *)*state, "kill -9 $$");
    expect(state, "launch", "", "f", NULL, COMPILED);
    write_ptxas((const char *)*state, ASSEMBLES);
    expect(state, "launch", "", "f", NULL, "S0 B1 M0 ptxas 1");
    expect(state, "launch", "", "f", NULL, LOADED_CODE);
}

static void options_for_the_drivers_assembler_are_left_to_it(void **state)
{
    write_ptxas((const char *)*state, ASSEMBLES);
    expect(state, "launch", "-cl-nv-maxrregcount=32", "g", NULL, "S1 B0 M0 ptxas 0");
    expect(state, "launch", "-cl-nv-maxrregcount=32", "g", NULL, "S0 B1 M0 ptxas 0");
    expect(state, "drop-in", "-cl-opt-disable", "g", NULL, "S1 B0 M0 ptxas 0");
    expect(state, "drop-in", "-cl-opt-disable", "g", NULL, "S0 B1 M0 ptxas 0");
    expect(state, "drop-in", "-cl-std=CL1.2 -g", "g", NULL, "S1 B0 M0 ptxas 0");
}

/* --- without a driver ------------------------------------------------------------------------- */

static const char ptx[] = ".version 7.0\n.target sm_80, texmode_independent\n.address_size 64\n"
                          ".visible .entry one(.param .u64 p)\n{\n    ret;\n}\n"
                          ".entry two()\n{\n    ret;\n}\n";

static void only_whole_PTX_for_the_device_is_assembled(void **state)
{
    (void)state;
    assert_true(kn_nvidia_can_assemble(80, ptx, sizeof(ptx), "-cl-fast-relaxed-math"));
    assert_false(kn_nvidia_can_assemble(90, ptx, sizeof(ptx), ""));
    assert_false(kn_nvidia_can_assemble(8, ptx, sizeof(ptx), ""));
    assert_false(kn_nvidia_can_assemble(0, ptx, sizeof(ptx), ""));
    assert_false(kn_nvidia_can_assemble(80, ptx, sizeof(ptx) - 1, "")); /* no NUL */
    assert_false(kn_nvidia_can_assemble(80, ptx, 0, ""));
    assert_false(kn_nvidia_can_assemble(80, "", 1, ""));
    static const char ended[] = ".version 7.0\n.target sm_80\n.entry k() { ret; }\n\0\0";
    assert_true(kn_nvidia_can_assemble(80, ended, sizeof(ended), "")); /* three NULs */
    static const char two[] = ".version 7.0\n.target sm_80\n.entry k() { ret; }\n\0more";
    assert_false(kn_nvidia_can_assemble(80, two, sizeof(two), ""));
    static const char code[] = "\177ELF\0.version .target sm_80 .entry k(";
    assert_false(kn_nvidia_can_assemble(80, code, sizeof(code), ""));
    static const char special[] = ".version 7.0\n.target sm_90a\n.entry k() { ret; }\n";
    assert_false(kn_nvidia_can_assemble(90, special, sizeof(special), ""));
}

static void one_piece_comes_apart_again(void **state)
{
    kn_strbuf code, both;
    size_t size = 0, code_size = 0;
    (void)state;
    kn_strbuf_init(&code, 0);
    kn_strbuf_init(&both, 0);
    kn_strbuf_append_text(&code, "some code");
    kn_nvidia_join(ptx, sizeof(ptx), &code, &both);
    size = both.length;
    const void *found = kn_nvidia_split(both.data, &size, &code_size);
    assert_ptr_equal(found, both.data + sizeof(ptx));
    assert_int_equal(size, sizeof(ptx));
    assert_int_equal(code_size, code.length);
    for (size_t cut = 0; cut < both.length; cut++) { /* its end is what says so */
        size = cut;
        assert_null(kn_nvidia_split(both.data, &size, &code_size));
    }
    memset(both.data + both.length - 16, 0xff, 8);
    size = both.length;
    assert_null(kn_nvidia_split(both.data, &size, &code_size));
    kn_strbuf_deinit(&both);
    kn_strbuf_deinit(&code);
}

static void the_real_ptxas_reads_a_pipe(void **state)
{
    kn_strbuf code;
    (void)state;
    if (access("/usr/local/cuda/bin/ptxas", X_OK) != 0) {
        skip();
    }
    kn_strbuf_init(&code, 0);
    assert_int_equal(kn_nvidia_assemble(80, ptx, &code, NULL), KILN_OK);
    assert_true(code.length > 23 + 64);
    assert_memory_equal(code.data + 16, "one;two\177ELF", 11);
    kn_strbuf_deinit(&code);
}

#define TEST(name) kt_dir_test(name)

int main(int argc, char **argv)
{
    if (argc == 4) {
        return child(argv[1], argv[2], argv[3]);
    }
    const struct CMUnitTest tests[] = {
        TEST(code_is_made_once_and_loaded),
        TEST(a_compile_for_later_has_it_at_once),
        TEST(the_drop_in_has_it_too),
        TEST(no_list_of_long_names_is_asked_for),
        TEST(a_driver_that_refuses_code_gets_the_PTX),
        TEST(code_without_all_kernels_is_not_used),
        TEST(what_ptxas_refuses_is_not_tried_again),
        TEST(a_ptxas_that_is_killed_is_tried_again),
        TEST(options_for_the_drivers_assembler_are_left_to_it),
        cmocka_unit_test(only_whole_PTX_for_the_device_is_assembled),
        cmocka_unit_test(one_piece_comes_apart_again),
        cmocka_unit_test(the_real_ptxas_reads_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
