/* kiln/opencl.h: programs of another program's context through the cache. Each step is a process of
 * its own with the same cache directory; counters of the cache are what is asserted. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <kiln/unstable/pocl.h>

#include "support/counters.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "unit/dropin/opencl_rig.h"

/* --- in the child: WORD OPTIONS --------------------------------------------------------------- */

static char *text_of(const char *word)
{
    const char *path = getenv("TEST_SOURCE");
    char *text = path != NULL ? kt_file_read(path, NULL) : NULL;
    return text != NULL ? text : strdup(word);
}

static kiln_status build(rig_client *c, const char *options, cl_program *out_program,
                         kiln_diag *diag)
{
    char *text = text_of("");
    kiln_status status = kiln_opencl_build_program(c->cache, c->context, c->devices[0], text,
                                                   options, out_program, diag);
    free(text);
    return status;
}

static kiln_status build_quietly(rig_client *c, const char *options, cl_program *out_program)
{
    return build(c, options, out_program, NULL);
}

static void say(rig_client *c, kiln_status status, int value, size_t new_files,
                const kiln_diag *diag)
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
    rig_client c;
    cl_program program = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    int value = 0;
    size_t new_files = 0;
    if (!rig_open(&c)) {
        return CHILD_NO_DEVICE;
    }
    kiln_status status = strcmp(word, "threads") == 0
                             ? rig_build_in_threads(&c, build_quietly, options)
                             : build(&c, options, &program, &diag);
    if (status == KILN_OK && (strcmp(word, "run") == 0 || strcmp(word, "capture") == 0)) {
        new_files = kt_file_count(getenv("POCL_CACHE_DIR"));
        value = rig_scale(&c, c.devices[0], program);
        new_files = kt_file_count(getenv("POCL_CACHE_DIR")) - new_files;
    }
    if (status == KILN_OK && strcmp(word, "capture") == 0) {
        char *text = text_of("");
        status = kiln_opencl_capture(c.cache, c.context, c.devices[0], text, options, &diag);
        free(text);
    }
    if (status == KILN_OK && strcmp(word, "ask") == 0) { /* and launches nothing */
        status = kiln_opencl_capture_program(c.cache, program, &diag);
    }
    if (status == KILN_OK && strcmp(word, "keep") == 0) {
        new_files = kt_file_count(getenv("POCL_CACHE_DIR"));
        value = rig_scale(&c, c.devices[0], program);
        new_files = kt_file_count(getenv("POCL_CACHE_DIR")) - new_files;
        status = kiln_opencl_capture_program(c.cache, program, &diag);
    }
    say(&c, status, value, new_files, &diag);
    if (program != NULL) {
        (void)c.api.clReleaseProgram(program);
    }
    kiln_diag_clear(&diag);
    rig_close(&c);
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static void write_file(const char *dir, const char *name, const char *text)
{
    char *path = kt_at(dir, name);
    kt_file_write(path, text, strlen(text));
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
    child_expect(dir, "run", "", "KILN_OK value=20 files=1" BUILT);
    child_expect(dir, "build", "", "KILN_OK value=0 files=0" FOUND);
    child_expect(dir, "run", "", "KILN_OK value=20");
}

static void K3_options_are_framed(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    child_expect(dir, "run", "-DA=1 -DB", "KILN_OK value=20 files=1" BUILT);
    child_expect(dir, "run", "-DA=1-DB", "KILN_OK value=20 files=1" BUILT);
    child_expect(dir, "build", " -DA=1   -DB ", "KILN_OK value=0 files=0" FOUND);
    child_expect(dir, "run", "-DFACTOR=7", "KILN_OK value=70");
}

/* PoCL flushes subnormal numbers at the launch, by the options of the program that is launched. */
static void K3_a_hit_runs_with_the_options_of_its_build(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl",
               "__kernel void scale(__global int *d) {\n"
               "    d[get_global_id(0)] = as_float(d[get_global_id(0)]) * 1e30f > 0.0f ? 1 : 2;\n"
               "}\n");
    child_expect(dir, "run", "-cl-denorms-are-zero", "KILN_OK value=2");
    assert_non_null(strstr(child_last.output, BUILT));
    child_expect(dir, "run", "-cl-denorms-are-zero", "KILN_OK value=2");
    assert_non_null(strstr(child_last.output, FOUND));
    child_expect(dir, "run", "", "KILN_OK value=1");
}

/* Drivers differ in where they take quotes off: PoCL does in the value of -D, and refuses them
 * around an option. */
static void K3_quotes_in_options_are_kept(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    child_expect(dir, "run", "-DFACTOR=1", "KILN_OK value=10 files=1" BUILT);
    child_expect(dir, "run", "-DFACTOR=\"1\"", "KILN_OK value=10 files=1" BUILT);
    child_expect(dir, "build", "-DFACTOR=\"1\"", "KILN_OK value=0 files=0" FOUND);
    child_expect(dir, "build", "\"-DFACTOR=1\"", "KILN_E_COMPILE");
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
    child_expect(dir, "run", written[0], "KILN_OK value=");
    const bool off = strstr(child_last.output, "value=30") != NULL;
    child_expect(dir, "run", written[0], off ? "KILN_OK value=30" : "KILN_OK value=40");
    assert_non_null(strstr(child_last.output, FOUND));
    write_file(off ? "meant" : "other", "deep.h", "#define FACTOR 7\n");
    child_expect(dir, "run", written[0], "KILN_OK value=70");
    assert_int_equal(mkdir(" meant ", 0700), 0);
    write_file(" meant ", "deep.h", "#define FACTOR 5\n");
    for (size_t i = 0; i < 2; i++) {
        child_expect(dir, "run", written[i], off ? "KILN_OK value=70" : "KILN_OK value=50");
        assert_non_null(strstr(child_last.output, BUILT));
        child_expect(dir, "run", written[i], off ? "KILN_OK value=70" : "KILN_OK value=50");
        assert_non_null(strstr(child_last.output, FOUND));
    }
    write_file(" meant ", "deep.h", "#define FACTOR 6\n");
    child_expect(dir, "run", written[0], off ? "KILN_OK value=70" : "KILN_OK value=60");
    child_expect(dir, "build", "\"-Imeant\" -Iother", "KILN_E_COMPILE");
    assert_non_null(strstr(child_last.output, "bypassed=1"));
    assert_int_equal(fchdir(before), 0);
    (void)close(before);
}

static void K1_headers_behind_I_are_in_the_key(void **state)
{
    const char *dir = (const char *)*state;
    char options[4300];
    char *include = kt_at(dir, "inc");
    char *moved = kt_at(dir, "moved");
    char *deeper = kt_at(include, "deeper.h");
    assert_int_equal(mkdir(include, 0700), 0);
    write_file(dir, "source.cl", including);
    write_file(include, "deep.h", "#include \"deeper.h\"\n");
    write_file(include, "deeper.h", "#define FACTOR 3\n");
    (void)snprintf(options, sizeof(options), "-I %s", include);
    child_expect(dir, "run", options, "KILN_OK value=30");
    assert_int_equal(utime(deeper, NULL), 0);
    child_expect(dir, "build", options, "KILN_OK");
    assert_non_null(strstr(child_last.output, "compiles=0"));
    write_file(include, "deeper.h", "#define FACTOR 4\n");
    child_expect(dir, "build", options, "KILN_OK");
    assert_non_null(strstr(child_last.output, "compiles=1"));
    child_expect(dir, "run", options, "KILN_OK value=40");
    /* K5: another place and another spelling of -I are the same program. */
    assert_int_equal(rename(include, moved), 0);
    (void)snprintf(options, sizeof(options), "-I%s", moved);
    child_expect(dir, "build", options, "KILN_OK");
    assert_non_null(strstr(child_last.output, "compiles=0"));
}

static void what_cannot_be_followed_goes_past_the_cache(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", "__constant char f[] = __DATE__;\n__kernel void scale(void) {}\n");
    child_expect(dir, "build", "", "KILN_OK value=0 files=0 hits=0 compiles=0 bypassed=1");
    write_file(dir, "source.cl", scale);
    child_expect(dir, "build", "-DX=\"a", "KILN_"); /* PoCL's to judge */
    assert_non_null(strstr(child_last.output, "hits=0 compiles=0 bypassed=1"));
    assert_non_null(strstr(child_last.output, "puts=0"));
    /* What makes a text change with time, given by an option. */
    static const char *const timely[] = {"-DWHEN=__TIME__", "-D WHEN=__DATE__",
                                         "-DHAS(x)=__has_include(x)"};
    for (size_t i = 0; i < 3; i++) {
        child_expect(dir, "build", timely[i],
                     "KILN_OK value=0 files=0 hits=0 compiles=0 bypassed=1");
    }
}

static void an_error_gives_the_log_and_nothing_is_kept(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", "__kernel void k(void) { undeclared; }\n");
    for (int i = 0; i < 2; i++) {
        child_expect(dir, "build", "", "KILN_E_COMPILE");
        assert_non_null(strstr(child_last.output, "undeclared"));
        assert_non_null(strstr(child_last.output, "CL_BUILD_PROGRAM_FAILURE (-11)"));
        assert_non_null(
            strstr(child_last.output, i == 0 ? "puts=1" : "puts=0")); /* of PoCL's files */
    }
}

static void threads_share_one_compile_and_get_programs_of_their_own(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    child_expect(dir, "threads", "", "KILN_OK");
    assert_non_null(strstr(child_last.output, "compiles=1 "));
}

static void captured_launches_are_not_compiled_again(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    child_expect(dir, "ask", "", "KILN_OK value=0 files=0" BUILT);
    child_expect(dir, "run", "", "KILN_OK value=20 files=1" FOUND);
    child_expect(dir, "capture", "", "KILN_OK value=20 files=1 hits=2 compiles=0");
    child_expect(dir, "run", "", "KILN_OK value=20 files=0" FOUND);
    child_expect(dir, "capture", "", "KILN_OK"); /* nothing new: nothing stored */
    assert_non_null(strstr(child_last.output, "puts=0"));
}

/* The program is all that is given. */
static void a_program_is_captured_by_its_handle(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    child_expect(dir, "ask", "", "KILN_OK value=0 files=0" BUILT);
    child_expect(dir, "keep", "", "KILN_OK value=20 files=1 hits=2 compiles=0");
    child_expect(dir, "run", "", "KILN_OK value=20 files=0" FOUND);
    write_file(dir, "source.cl", "/* another */\n__kernel void scale(__global int *d) { *d = 7; }");
    child_expect(dir, "keep", "", "KILN_OK value=7 files=1" BUILT);
    child_expect(dir, "run", "", "KILN_OK value=7 files=0" FOUND);
}

static void what_was_launched_is_read_at_the_end(void **state)
{
    const char *dir = (const char *)*state;
    write_file(dir, "source.cl", scale);
    assert_int_equal(unsetenv("KILN_CAPTURE"), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(i < 3 ? 0 : setenv("KILN_CAPTURE", "1", 1), 0);
        child_expect(dir, "run", "", "KILN_OK value=20 files=1" BUILT);
    }
    child_expect(dir, "run", "", "KILN_OK value=20 files=0" FOUND);
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
    child_expect(dir, "ask", "", "KILN_OK value=0 files=0" BUILT);
    assert_int_equal(unsetenv("POCL_BINARY_SPECIALIZE_WG"), 0);
    child_expect(dir, "ask", "-DFACTOR=3", "KILN_OK value=0 files=0" BUILT);
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    child_expect(dir, "run", "", "KILN_OK value=20 files=0" FOUND);
    assert_int_equal(setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 1), 0);
    child_expect(dir, "run", "-DFACTOR=3", "KILN_OK value=30 files=0" FOUND);
    assert_int_equal(unsetenv("POCL_WORK_GROUP_SPECIALIZATION"), 0);
    assert_int_equal(setenv("PATH", before, 1), 0);
    free(before);
}

static void fake(void **state, const char *variant)
{
    child_variant = variant;
    write_file((const char *)*state, "source.cl", "__kernel void k(void) {}\n");
}

static void K2_another_build_of_the_driver_is_another_key(void **state)
{
    const char *dir = (const char *)*state;
    fake(state, "good");
    child_expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT);
    child_expect(dir, "build", "", "KILN_OK value=0 files=0" FOUND);
    fake(state, "other_build");
    child_expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT);
}

static void D3_an_empty_binary_is_never_kept(void **state)
{
    const char *dir = (const char *)*state;
    fake(state, "empty");
    for (int i = 0; i < 2; i++) {
        child_expect(dir, "build", "", "KILN_OK");
        assert_non_null(strstr(child_last.output, "bypassed=1"));
        assert_non_null(strstr(child_last.output, "puts=0"));
    }
}

static void D4_a_refused_binary_is_built_again_and_replaced(void **state)
{
    const char *dir = (const char *)*state;
    fake(state, "refusing");
    child_expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT " rejected=0 puts=1");
    child_expect(dir, "build", "", "KILN_OK");
    assert_non_null(strstr(child_last.output, "rejected=1 puts=1"));
    fake(state, "refusing_build");
    child_expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT " rejected=0 puts=1");
    child_expect(dir, "build", "", "KILN_OK");
    assert_non_null(strstr(child_last.output, "rejected=1 puts=1"));
}

/* It crashes the second and the third start, and none after them. */
static void a_driver_that_crashes_on_a_binary_does_so_twice(void **state)
{
    const char *dir = (const char *)*state;
    const char *argv[] = {NULL, "build", "", NULL};
    fake(state, "good");
    child_expect(dir, "build", "", "KILN_OK value=0 files=0" BUILT " rejected=0 puts=1 unended=0");
    assert_int_equal(setenv("FAKECL_DIES_ON_BINARY", "1", 1), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_not_equal(child_run(dir, argv, NULL), 0);
    }
    for (int i = 0; i < 2; i++) {
        child_expect(dir, "build", "", "KILN_OK value=0 files=0 hits=1 compiles=1");
        assert_non_null(strstr(child_last.output, " rejected=0 puts=1 unended=1"));
    }
    assert_int_equal(unsetenv("FAKECL_DIES_ON_BINARY"), 0);
}

static void a_driver_may_refuse_options_of_the_front_end_with_a_binary(void **state)
{
    const char *dir = (const char *)*state;
    fake(state, "choosy");
    child_expect(dir, "build", "-DN=3 -cl-mad-enable",
                 "KILN_OK value=0 files=0" BUILT " rejected=0 puts=1");
    child_expect(dir, "build", "-DN=3 -cl-mad-enable",
                 "KILN_OK value=0 files=0" FOUND " rejected=0 puts=0");
}

static void the_example_starts_warm(void **state)
{
#ifdef KILN_EXAMPLE
    const char *dir = (const char *)*state;
    const char *argv[] = {KILN_EXAMPLE, NULL};
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    kt_counters stats;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(child_run(dir, argv, NULL), 0);
        assert_string_equal(child_last.output, "data[7] = 21\n");
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, kt_tmpdir_setup, child_teardown)

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
    const int failures =
        child_before_pocl(cmocka_run_group_tests(on_fakes, NULL, NULL), "build", "");
    (void)setenv("KILN_CAPTURE", "1", 1);
    return failures + cmocka_run_group_tests(on_pocl, NULL, NULL);
}
