/* kiln/opencl.h: programs of another program's context through the cache. Each step is a process of
 * its own with the same cache directory; counters of the cache are what is asserted. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>

#include "apis/opencl/backend/symbols.h"
#include "kiln/opencl.h"
#include "support/counters.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/process.h"
#include "sys/thread.h"

#define NO_DEVICE 77
#define THREADS 4

static char program_path[4096];

/* --- in the child: WORD OPTIONS --------------------------------------------------------------- */

typedef struct client {
    kn_dylib *lib;
    kn_opencl_api api;
    cl_device_id device;
    cl_context context;
    kiln_cache *cache;
} client;

static bool client_open(client *c)
{
    kiln_probe_outcome outcome;
    char path[512];
    cl_platform_id platform = NULL;
    cl_int code = CL_SUCCESS;
    memset(c, 0, sizeof(*c));
    if (kn_opencl_library_open(&c->lib, &c->api, path, sizeof(path), &outcome, NULL) != KILN_OK ||
        c->api.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        c->api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &c->device, NULL) != CL_SUCCESS) {
        return false;
    }
    c->context = c->api.clCreateContext(NULL, 1, &c->device, NULL, NULL, &code);
    return c->context != NULL && kiln_cache_create(NULL, &c->cache, NULL) == KILN_OK;
}

static char *text_of(const char *word)
{
    const char *path = getenv("TEST_SOURCE");
    char *text = path != NULL ? kt_file_read(path, NULL) : NULL;
    return text != NULL ? text : strdup(word);
}

static kiln_status build(client *c, const char *options, cl_program *out_program, kiln_diag *diag)
{
    char *text = text_of("");
    kiln_status status = kiln_opencl_build_program(c->cache, c->context, c->device, text, options,
                                                   out_program, diag);
    free(text);
    return status;
}

/* scale(buffer) over 64 items, in groups of 16; what came of the first item. */
static int run(client *c, cl_program program)
{
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = NULL;
    cl_int value = 10;
    const size_t global = 64, local = 16;
    cl_command_queue queue = c->api.clCreateCommandQueue(c->context, c->device, 0, &code);
    cl_mem buffer = c->api.clCreateBuffer(c->context, CL_MEM_READ_WRITE, 4 * global, NULL, &code);
    code = c->api.clCreateKernelsInProgram(program, 1, &kernel, NULL);
    code |= c->api.clEnqueueFillBuffer(queue, buffer, &value, sizeof(value), 0, 4 * global, 0, NULL,
                                       NULL);
    code |= c->api.clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer);
    code |= c->api.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    code |=
        c->api.clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL);
    (void)c->api.clReleaseKernel(kernel);
    (void)c->api.clReleaseMemObject(buffer);
    (void)c->api.clReleaseCommandQueue(queue);
    return code == CL_SUCCESS ? value : -1;
}

typedef struct builder {
    client *c;
    const char *options;
    cl_program program;
    kiln_status status;
} builder;

static void build_in_thread(void *user)
{
    builder *b = (builder *)user;
    b->status = build(b->c, b->options, &b->program, NULL);
}

static kiln_status build_many(client *c, const char *options)
{
    builder builders[THREADS];
    kn_thread *threads[THREADS] = {NULL};
    kiln_status status = KILN_OK;
    for (int i = 0; i < THREADS; i++) {
        builders[i] = (builder){c, options, NULL, KILN_OK};
        if (kn_thread_start(build_in_thread, &builders[i], &threads[i], NULL) != KILN_OK) {
            return KILN_E_INTERNAL;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
        status = builders[i].status != KILN_OK ? builders[i].status : status;
        for (int k = 0; k < i; k++) {
            status = builders[i].program == builders[k].program ? KILN_E_INTERNAL : status;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)c->api.clReleaseProgram(builders[i].program);
    }
    return status;
}

static void say(client *c, kiln_status status, int value, size_t new_files, const kiln_diag *diag)
{
    kt_counters stats;
    kt_counters_own(c->cache, &stats);
    (void)printf("%s value=%d files=%zu hits=%llu compiles=%llu bypassed=%llu rejected=%llu "
                 "puts=%llu unended=%llu|%s|%s\n",
                 kiln_status_name(status), value, new_files,
                 (unsigned long long)stats.hits_disk + (unsigned long long)stats.hits_memory,
                 (unsigned long long)stats.compiles, (unsigned long long)stats.bypassed,
                 (unsigned long long)stats.rejected, (unsigned long long)stats.puts,
                 (unsigned long long)stats.unended, diag->why, diag->log != NULL ? diag->log : "");
}

static int child(const char *word, const char *options)
{
    client c;
    cl_program program = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    int value = 0;
    size_t new_files = 0;
    if (!client_open(&c)) {
        return NO_DEVICE;
    }
    kiln_status status = strcmp(word, "threads") == 0 ? build_many(&c, options)
                                                      : build(&c, options, &program, &diag);
    if (status == KILN_OK && (strcmp(word, "run") == 0 || strcmp(word, "capture") == 0)) {
        new_files = kt_file_count(getenv("POCL_CACHE_DIR"));
        value = run(&c, program);
        new_files = kt_file_count(getenv("POCL_CACHE_DIR")) - new_files;
    }
    if (status == KILN_OK && strcmp(word, "capture") == 0) {
        char *text = text_of("");
        status = kiln_opencl_capture(c.cache, c.context, c.device, text, options, &diag);
        free(text);
    }
    if (status == KILN_OK && strcmp(word, "ask") == 0) { /* and launches nothing */
        status = kiln_opencl_capture_program(c.cache, program, &diag);
    }
    if (status == KILN_OK && strcmp(word, "keep") == 0) {
        new_files = kt_file_count(getenv("POCL_CACHE_DIR"));
        value = run(&c, program);
        new_files = kt_file_count(getenv("POCL_CACHE_DIR")) - new_files;
        status = kiln_opencl_capture_program(c.cache, program, &diag);
    }
    say(&c, status, value, new_files, &diag);
    if (program != NULL) {
        (void)c.api.clReleaseProgram(program);
    }
    kiln_diag_clear(&diag);
    (void)c.api.clReleaseContext(c.context);
    kiln_cache_destroy(c.cache);
    kn_dylib_retire(c.lib);
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static char output[16384];
static const char *library_dir; /* of a fake libOpenCL; NULL: the system's */

static int start_program(const char *const *argv, const char *dir)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_process_result result = {0};
    char *pocl = kt_tmpdir_create();
    char *cache = kt_path(dir, "cache");
    char *source = kt_path(dir, "source.cl");
    char variables[4][4200];
    (void)snprintf(variables[0], sizeof(variables[0]), "POCL_CACHE_DIR=%s", pocl);
    (void)snprintf(variables[1], sizeof(variables[1]), "KILN_CACHE_DIR=%s", cache);
    (void)snprintf(variables[2], sizeof(variables[2]), "TEST_SOURCE=%s", source);
    (void)snprintf(variables[3], sizeof(variables[3]), "LD_LIBRARY_PATH=%s",
                   library_dir != NULL ? library_dir : "");
    const char *const environment[] = {variables[0], variables[1], variables[2],
                                       library_dir != NULL ? variables[3] : NULL, NULL};
    kn_process_request request = {.argv = argv, .environment = environment};
    request.limit_ns = 100000000000U;
    assert_int_equal(kn_process_run(&request, &result, &diag), KILN_OK);
    const int code = result.exit_code;
    (void)snprintf(output, sizeof(output), "%s", result.out != NULL ? result.out : "");
    if (code != 0 && code != NO_DEVICE) {
        print_error("%s\n", result.err != NULL ? result.err : "");
    }
    kn_process_result_deinit(&result);
    free(source);
    free(cache);
    kt_tmpdir_remove(pocl);
    return code;
}

static void expect(const char *dir, const char *word, const char *options, const char *beginning)
{
    const char *const argv[] = {program_path, word, options, NULL};
    assert_int_equal(start_program(argv, dir), 0);
    if (strncmp(output, beginning, strlen(beginning)) != 0) {
        print_error("%s '%s' gave %s\n", word, options, output);
    }
    assert_int_equal(strncmp(output, beginning, strlen(beginning)), 0);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char *path = kt_path(dir, name);
    kt_file_write(path, text, strlen(text));
    free(path);
}

static const char scale[] = "#ifndef FACTOR\n#define FACTOR 2\n#endif\n"
                            "__kernel void scale(__global int *d) "
                            "{ d[get_global_id(0)] *= FACTOR; }\n";
static const char including[] =
    "#include \"deep.h\"\n"
    "__kernel void scale(__global int *d) { d[get_global_id(0)] *= FACTOR; }\n";

#define BUILT " hits=0 compiles=1 bypassed=0"
#define FOUND " hits=1 compiles=0 bypassed=0"

static void the_second_process_finds_it(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    expect(dir, "run", "", "KILN_OK value=20 files=1" BUILT);
    expect(dir, "build", "", "KILN_OK value=0 files=0" FOUND);
    expect(dir, "run", "", "KILN_OK value=20");
}

static void K3_options_are_framed(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    expect(dir, "run", "-DA=1 -DB", "KILN_OK value=20 files=1" BUILT);
    expect(dir, "run", "-DA=1-DB", "KILN_OK value=20 files=1" BUILT);
    expect(dir, "build", " -DA=1   -DB ", "KILN_OK value=0 files=0" FOUND);
    expect(dir, "run", "-DFACTOR=7", "KILN_OK value=70");
}

/* PoCL flushes subnormal numbers at the launch, by the options of the program that is launched. */
static void K3_a_hit_runs_with_the_options_of_its_build(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl",
               "__kernel void scale(__global int *d) {\n"
               "    d[get_global_id(0)] = as_float(d[get_global_id(0)]) * 1e30f > 0.0f ? 1 : 2;\n"
               "}\n");
    expect(dir, "run", "-cl-denorms-are-zero", "KILN_OK value=2");
    assert_non_null(strstr(output, BUILT));
    expect(dir, "run", "-cl-denorms-are-zero", "KILN_OK value=2");
    assert_non_null(strstr(output, FOUND));
    expect(dir, "run", "", "KILN_OK value=1");
}

/* Drivers differ in where they take quotes off: PoCL does in the value of -D, and refuses them
 * around an option. */
static void K3_quotes_in_options_are_kept(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    expect(dir, "run", "-DFACTOR=1", "KILN_OK value=10 files=1" BUILT);
    expect(dir, "run", "-DFACTOR=\"1\"", "KILN_OK value=10 files=1" BUILT);
    expect(dir, "build", "-DFACTOR=\"1\"", "KILN_OK value=0 files=0" FOUND);
    expect(dir, "build", "\"-DFACTOR=1\"", "KILN_E_COMPILE");
}

/* In the directory of -I PoCL 3.1 makes blanks of them (" meant "), and PoCL 6 takes them off. */
static void K3_a_directory_in_quotes_is_PoCLs_own_affair(void **state)
{
    static const char *const written[] = {"-I\"meant\" -Iother", "-I \"meant\" -I other"};
    const char *dir = (const char *)*state;
    const int before = open(".", O_RDONLY | O_CLOEXEC);
    assert_true(before != -1 && chdir(dir) == 0);
    assert_true(mkdir("meant", 0700) == 0 && mkdir("other", 0700) == 0);
    write_file(dir, "source.cl", including);
    write_file("meant", "deep.h", "#define FACTOR 3\n");
    write_file("other", "deep.h", "#define FACTOR 4\n");
    expect(dir, "run", written[0], "KILN_OK value=");
    const bool off = strstr(output, "value=30") != NULL;
    expect(dir, "run", written[0], off ? "KILN_OK value=30" : "KILN_OK value=40");
    assert_non_null(strstr(output, FOUND));
    write_file(off ? "meant" : "other", "deep.h", "#define FACTOR 7\n");
    expect(dir, "run", written[0], "KILN_OK value=70");
    assert_int_equal(mkdir(" meant ", 0700), 0);
    write_file(" meant ", "deep.h", "#define FACTOR 5\n");
    for (size_t i = 0; i < 2; i++) {
        expect(dir, "run", written[i], off ? "KILN_OK value=70" : "KILN_OK value=50");
        assert_non_null(strstr(output, BUILT));
        expect(dir, "run", written[i], off ? "KILN_OK value=70" : "KILN_OK value=50");
        assert_non_null(strstr(output, FOUND));
    }
    write_file(" meant ", "deep.h", "#define FACTOR 6\n");
    expect(dir, "run", written[0], off ? "KILN_OK value=70" : "KILN_OK value=60");
    expect(dir, "build", "\"-Imeant\" -Iother", "KILN_E_COMPILE");
    assert_non_null(strstr(output, "bypassed=1"));
    assert_int_equal(fchdir(before), 0);
    (void)close(before);
}

static void K1_headers_behind_I_are_in_the_key(void **state)
{
    const char *dir = (const char *)*state;
    char options[4300];
    char *include = kt_path(dir, "inc");
    char *moved = kt_path(dir, "moved");
    char *deeper = kt_path(include, "deeper.h");
    assert_int_equal(mkdir(include, 0700), 0);
    write_file(dir, "source.cl", including);
    write_file(include, "deep.h", "#include \"deeper.h\"\n");
    write_file(include, "deeper.h", "#define FACTOR 3\n");
    (void)snprintf(options, sizeof(options), "-I %s", include);
    expect(dir, "run", options, "KILN_OK value=30");
    assert_int_equal(utime(deeper, NULL), 0);
    expect(dir, "build", options, "KILN_OK");
    assert_non_null(strstr(output, "compiles=0"));
    write_file(include, "deeper.h", "#define FACTOR 4\n");
    expect(dir, "build", options, "KILN_OK");
    assert_non_null(strstr(output, "compiles=1"));
    expect(dir, "run", options, "KILN_OK value=40");
    /* K5: another place and another spelling of -I are the same program. */
    assert_int_equal(rename(include, moved), 0);
    (void)snprintf(options, sizeof(options), "-I%s", moved);
    expect(dir, "build", options, "KILN_OK");
    assert_non_null(strstr(output, "compiles=0"));
    free(deeper);
    free(moved);
    free(include);
}

static void what_cannot_be_followed_goes_past_the_cache(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", "__constant char f[] = __DATE__;\n__kernel void scale(void) {}\n");
    expect(dir, "build", "", "KILN_OK value=0 files=0 hits=0 compiles=0 bypassed=1");
    write_file(dir, "source.cl", scale);
    expect(dir, "build", "-DX=\"a", "KILN_"); /* PoCL's to judge */
    assert_non_null(strstr(output, "hits=0 compiles=0 bypassed=1"));
    assert_non_null(strstr(output, "puts=0"));
    /* What makes a text change with time, given by an option. */
    static const char *const timely[] = {"-DWHEN=__TIME__", "-D WHEN=__DATE__",
                                         "-DHAS(x)=__has_include(x)"};
    for (size_t i = 0; i < 3; i++) {
        expect(dir, "build", timely[i], "KILN_OK value=0 files=0 hits=0 compiles=0 bypassed=1");
    }
}

static void an_error_gives_the_log_and_nothing_is_kept(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", "__kernel void k(void) { undeclared; }\n");
    for (int i = 0; i < 2; i++) {
        expect(dir, "build", "", "KILN_E_COMPILE");
        assert_non_null(strstr(output, "undeclared"));
        assert_non_null(strstr(output, "CL_BUILD_PROGRAM_FAILURE (-11)"));
        assert_non_null(strstr(output, i == 0 ? "puts=1" : "puts=0")); /* of PoCL's files */
    }
}

static void threads_share_one_compile_and_get_programs_of_their_own(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    expect(dir, "threads", "", "KILN_OK");
    assert_non_null(strstr(output, "compiles=1 "));
}

static void captured_launches_are_not_compiled_again(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    expect(dir, "ask", "", "KILN_OK value=0 files=0" BUILT);
    expect(dir, "run", "", "KILN_OK value=20 files=1" FOUND);
    expect(dir, "capture", "", "KILN_OK value=20 files=1 hits=2 compiles=0");
    expect(dir, "run", "", "KILN_OK value=20 files=0" FOUND);
    expect(dir, "capture", "", "KILN_OK"); /* nothing new: nothing stored */
    assert_non_null(strstr(output, "puts=0"));
}

/* The program is all that is given. */
static void a_program_is_captured_by_its_handle(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    expect(dir, "ask", "", "KILN_OK value=0 files=0" BUILT);
    expect(dir, "keep", "", "KILN_OK value=20 files=1 hits=2 compiles=0");
    expect(dir, "run", "", "KILN_OK value=20 files=0" FOUND);
    write_file(dir, "source.cl", "/* another */\n__kernel void scale(__global int *d) { *d = 7; }");
    expect(dir, "keep", "", "KILN_OK value=7 files=1" BUILT);
    expect(dir, "run", "", "KILN_OK value=7 files=0" FOUND);
}

static void what_was_launched_is_read_at_the_end(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    assert_int_equal(unsetenv("KILN_CAPTURE"), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(i < 3 ? 0 : setenv("KILN_CAPTURE", "1", 1), 0);
        expect(dir, "run", "", "KILN_OK value=20 files=1" BUILT);
    }
    expect(dir, "run", "", "KILN_OK value=20 files=0" FOUND);
}

/* A pack that was made with them needs no compiler and no linker at the first launch. The variables
 * are in no key. */
static void finished_code_is_launched_without_a_linker(void **state)
{
    const char *dir = (const char *)*state;
    const char *path = getenv("PATH");
    char *before = strdup(path != NULL ? path : "");
    write_file(dir, "source.cl", scale);
    assert_int_equal(setenv("POCL_BINARY_SPECIALIZE_WG", "16-1-1-goffs0-smallgrid", 1), 0);
    expect(dir, "ask", "", "KILN_OK value=0 files=0" BUILT);
    assert_int_equal(unsetenv("POCL_BINARY_SPECIALIZE_WG"), 0);
    expect(dir, "ask", "-DFACTOR=3", "KILN_OK value=0 files=0" BUILT);
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    expect(dir, "run", "", "KILN_OK value=20 files=0" FOUND);
    assert_int_equal(setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 1), 0);
    expect(dir, "run", "-DFACTOR=3", "KILN_OK value=30 files=0" FOUND);
    assert_int_equal(unsetenv("POCL_WORK_GROUP_SPECIALIZATION"), 0);
    assert_int_equal(setenv("PATH", before, 1), 0);
    free(before);
}

static void fake(void **state, const char *variant)
{
    static char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", KILN_FAKECL_DIR, variant);
    library_dir = path;
    write_file((const char *)*state, "source.cl", "__kernel void k(void) {}\n");
}

static void K2_another_build_of_the_driver_is_another_key(void **state)
{
    const char *dir = (const char *)*state;
    fake(state, "good");
    expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT);
    expect(dir, "build", "", "KILN_OK value=0 files=0" FOUND);
    fake(state, "other_build");
    expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT);
}

static void D3_an_empty_binary_is_never_kept(void **state)
{
    const char *dir = (const char *)*state;
    fake(state, "empty");
    for (int i = 0; i < 2; i++) {
        expect(dir, "build", "", "KILN_OK");
        assert_non_null(strstr(output, "bypassed=1"));
        assert_non_null(strstr(output, "puts=0"));
    }
}

static void D4_a_refused_binary_is_built_again_and_replaced(void **state)
{
    const char *dir = (const char *)*state;
    fake(state, "refusing");
    expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT " rejected=0 puts=1");
    expect(dir, "build", "", "KILN_OK");
    assert_non_null(strstr(output, "rejected=1 puts=1"));
    fake(state, "refusing_build");
    expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT " rejected=0 puts=1");
    expect(dir, "build", "", "KILN_OK");
    assert_non_null(strstr(output, "rejected=1 puts=1"));
}

/* It crashes the second and the third start, and none after them. */
static void a_driver_that_crashes_on_a_binary_does_so_twice(void **state)
{
    const char *dir = (const char *)*state;
    const char *const argv[] = {program_path, "build", "", NULL};
    fake(state, "good");
    expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT " rejected=0 puts=1 unended=0");
    assert_int_equal(setenv("FAKECL_DIES_ON_BINARY", "1", 1), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_not_equal(start_program(argv, dir), 0);
    }
    for (int i = 0; i < 2; i++) {
        expect(dir, "build", "", "KILN_OK value=0 files=0 hits=1 compiles=1");
        assert_non_null(strstr(output, " rejected=0 puts=1 unended=1"));
    }
    assert_int_equal(unsetenv("FAKECL_DIES_ON_BINARY"), 0);
}

static void a_driver_may_refuse_options_of_the_front_end_with_a_binary(void **state)
{
    const char *dir = (const char *)*state;
    fake(state, "choosy");
    expect(dir, "build", "-DN=3 -cl-mad-enable",
           "KILN_OK value=0 files=0" BUILT " rejected=0 puts=1");
    expect(dir, "build", "-DN=3 -cl-mad-enable",
           "KILN_OK value=0 files=0" FOUND " rejected=0 puts=0");
}

static void the_example_starts_warm(void **state)
{
#ifdef KILN_EXAMPLE
    const char *dir = (const char *)*state;
    const char *const argv[] = {KILN_EXAMPLE, NULL};
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    kt_counters stats;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(start_program(argv, dir), 0);
        assert_string_equal(output, "data[7] = 21\n");
    }
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    char *root = kt_path(dir, "cache");
    options.root = root;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    assert_int_equal(kt_counters_total(cache, &stats, NULL), KILN_OK);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(stats.hits_disk, 1);
    kiln_cache_destroy(cache);
    free(root);
#else
    (void)state;
    skip();
#endif
}

static int end(void **state)
{
    library_dir = NULL;
    return kt_tmpdir_teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kt_tmpdir_setup, end)

int main(int argc, char **argv)
{
    const struct CMUnitTest on_fakes[] = {
        TEST(K2_another_build_of_the_driver_is_another_key),
        TEST(D3_an_empty_binary_is_never_kept),
        TEST(D4_a_refused_binary_is_built_again_and_replaced),
        TEST(a_driver_that_crashes_on_a_binary_does_so_twice),
        TEST(a_driver_may_refuse_options_of_the_front_end_with_a_binary),
    };
    const struct CMUnitTest on_pocl[] = {
        TEST(the_second_process_finds_it),
        TEST(K3_options_are_framed),
        TEST(K3_quotes_in_options_are_kept),
        TEST(K3_a_directory_in_quotes_is_PoCLs_own_affair),
        TEST(K3_a_hit_runs_with_the_options_of_its_build),
        TEST(K1_headers_behind_I_are_in_the_key),
        TEST(what_cannot_be_followed_goes_past_the_cache),
        TEST(an_error_gives_the_log_and_nothing_is_kept),
        TEST(threads_share_one_compile_and_get_programs_of_their_own),
        TEST(captured_launches_are_not_compiled_again),
        TEST(a_program_is_captured_by_its_handle),
        TEST(what_was_launched_is_read_at_the_end),
        TEST(finished_code_is_launched_without_a_linker),
        TEST(the_example_starts_warm),
    };
    if (argc == 3) {
        return child(argv[1], argv[2]);
    }
    if (realpath("/proc/self/exe", program_path) == NULL) {
        return 1;
    }
    int failures = cmocka_run_group_tests(on_fakes, NULL, NULL);
    char *dir = kt_tmpdir_create();
    const char *const probe[] = {program_path, "build", "", NULL};
    int code = start_program(probe, dir);
    kt_tmpdir_remove(dir);
    if (failures == 0 && code == NO_DEVICE) {
        kn_test_skip("opencl", "no OpenCL device");
    }
    (void)setenv("KILN_CAPTURE", "1", 1);
    return failures + cmocka_run_group_tests(on_pocl, NULL, NULL);
}
