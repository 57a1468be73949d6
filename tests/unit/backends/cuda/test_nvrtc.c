/* The real NVRTC, without a GPU: skipped where there is no toolkit. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/unstable/compile.h>

#include "apis/cuda/backend/cubin.h"
#include "apis/cuda/backend/instance.h"
#include "support/counters.h"
#include "support/skip.h"
#include "unit/backends/cuda/world.h"

static const char mma_text[] = "#include <cuda_fp16.h>\n"
                               "#include <mma.h>\n"
                               "#include <cooperative_groups.h>\n"
                               "extern \"C\" __global__ void NAME(__half *x) { x[0] = x[1]; }\n";
static const char sort_text[] = "#include <cub/block/block_radix_sort.cuh>\n"
                                "extern \"C\" __global__ void NAME(int *x) { x[0] = 1; }\n";

static world own;

static void open_on(const char *root)
{
    kiln_diag diag = KILN_DIAG_INIT;
    if (world_try(&own, root, true, &diag) != KILN_OK) {
        kn_test_skip(WORLD_BACKEND, diag.why);
    }
}

static void close_all(void)
{
    world_close(&own);
}

static kiln_origin compile(const char *text, const char *name, const char *target)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_source source = world_source(text, NULL, 0);
    kiln_define define = {"NAME", name};
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    source.defines = &define;
    source.define_count = 1;
    ok(kiln_compile(own.runtime, target, &source, &blob, &origin, &diag), &diag);
    assert_true(kiln_blob_size(blob) > 0);
    kiln_blob_release(blob);
    return origin;
}

static void heavy_headers_are_followed_and_hit(void **state)
{
    kt_counters stats;
    char *root = kt_at((const char *)*state, "heavy");
    for (int round = 0; round < 2; round++) {
        const kiln_origin expected = round == 0 ? KILN_ORIGIN_COMPILED : KILN_ORIGIN_DISK;
        open_on(root);
        assert_int_equal(compile(mma_text, "a", "cuda:sm_90"), expected);
        assert_int_equal(compile(sort_text, "a", "cuda:sm_90"), expected);
        kt_counters_own(own.cache, &stats);
        assert_int_equal(stats.bypassed, 0);
        close_all();
    }
}

static void every_target_compiles(void **state)
{
    static const char plain[] = "extern \"C\" __global__ void NAME(int *x) { x[0] = 1; }\n";
    static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90", "cuda:sm_90a", "cuda:sm_100",
                                          "cuda:compute_90"};
    char *root = kt_at((const char *)*state, "targets");
    open_on(root);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        assert_int_equal(compile(plain, "a", targets[i]), KILN_ORIGIN_COMPILED);
    }
    close_all();
}

/* What a suffix stands for is there in PTX as in machine code. */
static void a_suffix_is_not_lost(void **state)
{
    static const char text[] = "#ifndef __CUDA_ARCH_FEAT_SM90_ALL\n"
                               "#error features of sm_90a are missing\n"
                               "#endif\n"
                               "extern \"C\" __global__ void NAME(int *x) { x[0] = 1; }\n";
    char *root = kt_at((const char *)*state, "suffix");
    open_on(root);
    assert_int_equal(compile(text, "a", "cuda:sm_90a"), KILN_ORIGIN_COMPILED);
    assert_int_equal(compile(text, "a", "cuda:compute_90a"), KILN_ORIGIN_COMPILED);
    close_all();
}

static kiln_blob *compile_with(const char *const *options, size_t count)
{
    static const char text[] = "extern \"C\" __global__ void k(float *x, float a, float b)\n"
                               "{ x[0] = x[1] * a + b; x[2] = x[3] / a; x[4] = sqrtf(x[5]); }\n";
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    kiln_source source = world_source(text, NULL, 0);
    source.options = options;
    source.option_count = count;
    ok(kiln_compile(own.runtime, "cuda:sm_90", &source, &blob, NULL, &diag), &diag);
    return blob;
}

/* What kiln reads out of a CUBIN is what this toolkit writes. */
static void parameters_are_counted(void **state)
{
    static const char text[] =
        "struct S { int a[10]; };\n"
        "extern \"C\" __global__ void none() {}\n"
        "extern \"C\" __global__ void five(const float *in, float *out, int n, double d, char c)\n"
        "{ out[0] = in[n] + d + c; }\n"
        "extern \"C\" __global__ void two(float *x, S s) { x[0] = s.a[3]; }\n";
    static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90", "cuda:sm_100"};
    char *root = kt_at((const char *)*state, "parameters");
    open_on(root);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_blob *blob = NULL;
        const kiln_source source = world_source(text, NULL, 0);
        ok(kiln_compile(own.runtime, targets[i], &source, &blob, NULL, &diag), &diag);
        const void *data = kiln_blob_data(blob);
        const size_t size = kiln_blob_size(blob);
        assert_int_equal(kn_cubin_param_count(data, size, "none"), 0);
        assert_int_equal(kn_cubin_param_count(data, size, "two"), 2);
        assert_int_equal(kn_cubin_param_count(data, size, "five"), 5);
        assert_int_equal(kn_cubin_param_count(data, size, "six"), SIZE_MAX);
        kiln_blob_release(blob);
    }
    close_all();
}

/* NVRTC only parses then: what steers code has to be said to nvJitLink, too. */
static void options_hold_in_link_time_optimisation(void **state)
{
    static const char *const plain[] = {"-dlto"};
    static const char *const rows[][3] = {
        {"-dlto", "-fmad=false", NULL},      {"-dlto", "--fmad", "false"},
        {"-dlto", "-use_fast_math", NULL},   {"-dlto", "-prec-div=false", NULL},
        {"-dlto", "-maxrregcount=16", NULL}, {"-dlto", "-lineinfo", NULL},
        {"-dlto", "-Xptxas=-O0", NULL},
    };
    char *root = kt_at((const char *)*state, "lto");
    open_on(root);
    kiln_blob *without = compile_with(plain, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kiln_blob *with = compile_with(rows[i], rows[i][2] != NULL ? 3 : 2);
        if (kiln_blob_size(with) == kiln_blob_size(without) &&
            memcmp(kiln_blob_data(with), kiln_blob_data(without), kiln_blob_size(with)) == 0) {
            fail_msg("%s changes nothing", rows[i][1]);
        }
        kiln_blob_release(with);
    }
    kiln_blob_release(without);
    close_all();
}

/* The driver would read past the end of it. */
static void a_binary_that_was_cut_off_is_seen(void **state)
{
    char *root = kt_at((const char *)*state, "cut");
    open_on(root);
    kiln_blob *blob = compile_with(NULL, 0);
    const size_t size = kiln_blob_size(blob);
    assert_true(kn_cuda_image_is_whole(kiln_blob_data(blob), size));
    for (size_t cut = 4; cut < size; cut++) {
        char *part = malloc(cut); /* ends where it ends: a sanitizer sees who reads on */
        assert_non_null(part);
        memcpy(part, kiln_blob_data(blob), cut);
        assert_false(kn_cuda_image_is_whole(part, cut));
        free(part);
    }
    kiln_blob_release(blob);
    close_all();
}

/* NVRTC by itself would find it there, and no key would know. */
static void K1_the_current_dir_is_not_searched(void **state)
{
    static const char text[] = "#include \"beside.h\"\n"
                               "extern \"C\" __global__ void k(int *x) { x[0] = BESIDE; }\n";
    char *root = kt_at((const char *)*state, "cwd");
    char before[4096];
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    kiln_source source = world_source(text, NULL, 0);
    assert_non_null(getcwd(before, sizeof(before)));
    char *beside = kt_at((const char *)*state, "beside.h");
    kt_file_write(beside, "#define BESIDE 1\n", 17);
    assert_int_equal(chdir((const char *)*state), 0);
    open_on(root);
    assert_int_equal(kiln_compile(own.runtime, "cuda:sm_90", &source, &blob, NULL, &diag),
                     KILN_E_COMPILE);
    const char *const dirs[] = {"."};
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    ok(kiln_compile(own.runtime, "cuda:sm_90", &source, &blob, NULL, &diag), &diag);
    kiln_blob_release(blob);
    kiln_diag_clear(&diag);
    close_all();
    assert_int_equal(chdir(before), 0);
}

static void write_header(const char *dir, const char *name, const char *text)
{
    char *path = kt_at(dir, name);
    char *parent = strdup(path);
    assert_non_null(parent);
    *strrchr(parent, '/') = '\0';
    (void)mkdir(parent, 0700);
    kt_file_write(path, text, strlen(text));
    free(parent);
}

/* Compiles with the directories A and B of `dir`, and says where it came from and what it
 * holds. */
static kiln_origin compile_in(const char *dir, const char *text, const char *name,
                              const char *const *options, size_t count, kiln_blob **out_blob)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_origin origin = KILN_ORIGIN_NONE;
    kiln_source source = world_source(text, NULL, 0);
    char *a = kt_at(dir, "A");
    char *b = kt_at(dir, "B");
    const char *const dirs[] = {a, b};
    source.name = name;
    source.options = options;
    source.option_count = count;
    source.include_dirs = dirs;
    source.include_dir_count = 2;
    ok(kiln_compile(own.runtime, "cuda:sm_90", &source, out_blob, &origin, &diag), &diag);
    return origin;
}

/* The same; whether it is found or compiled, and holds a text. */
static void expect_in(const char *dir, const char *text, const char *name,
                      const char *const *options, size_t count, bool compiled, const char *held)
{
    kiln_blob *blob = NULL;
    const kiln_origin origin = compile_in(dir, text, name, options, count, &blob);
    assert_int_equal(origin == KILN_ORIGIN_COMPILED, compiled);
    assert_true(held == NULL || world_blob_holds(blob, held));
    kiln_blob_release(blob);
}

/* The header next to the includer is not the one that is read then. */
static void K1_no_source_include_finds_no_header_beside(void **state)
{
    static const char text[] = "#include <a.h>\n"
                               "extern \"C\" __global__ void k(int *x) { x[0] = VALUE; }\n";
    static const char *const options[] = {"--no-source-include", "-no-source-include"};
    char *root = kt_at((const char *)*state, "beside");
    for (size_t i = 0; i < 2; i++) {
        char *dir = kt_at((const char *)*state, i == 0 ? "long" : "short");
        assert_int_equal(mkdir(dir, 0700), 0);
        write_header(dir, "A/a.h", "#include \"sub/b.h\"\n");
        write_header(dir, "A/sub/b.h", "#include \"c.h\"\n");
        write_header(dir, "A/sub/c.h", "#define VALUE 111\n");
        write_header(dir, "B/c.h", "#define VALUE 222\n");
        open_on(root);
        expect_in(dir, text, "k.cu", options + i, 1, true, NULL);
        expect_in(dir, text, "k.cu", options + i, 1, false, NULL);
        write_header(dir, "A/sub/c.h", "#define VALUE 112\n"); /* nobody reads it */
        expect_in(dir, text, "k.cu", options + i, 1, false, NULL);
        write_header(dir, "B/c.h", "#define VALUE 333\n");
        expect_in(dir, text, "k.cu", options + i, 1, true, NULL);
        close_all();
    }
}

static void K5_what_code_says_of_its_file_is_in_the_key(void **state)
{
    static const char plain[] = "#include \"a.h\"\n"
                                "extern \"C\" __global__ void k(int *x) { x[0] = VALUE; }\n";
    static const char asserting[] = "#include \"a.h\"\n"
                                    "extern \"C\" __global__ void k(int *x)\n"
                                    "{ assert(x[0] > VALUE); x[1] = 2; }\n";
    static const char *const lines[] = {"-lineinfo"};
    char *root = kt_at((const char *)*state, "named");
    kiln_blob *blob = NULL;
    write_header((const char *)*state, "A/a.h", "#define VALUE 1\n");
    open_on(root);
    /* No text can see a name: any name will do, and any directory. */
    assert_int_equal(compile_in((const char *)*state, plain, "f.cu", NULL, 0, &blob),
                     KILN_ORIGIN_COMPILED);
    assert_false(world_blob_holds(blob, (const char *)*state));
    kiln_blob_release(blob);
    expect_in((const char *)*state, plain, "g.cu", NULL, 0, false, NULL);
    char *moved = kt_at((const char *)*state, "moved");
    assert_int_equal(mkdir(moved, 0700), 0);
    write_header(moved, "A/a.h", "#define VALUE 1\n");
    expect_in(moved, plain, "g.cu", NULL, 0, false, NULL);
    /* One that can sees its own. */
    for (int i = 0; i < 2; i++) {
        const char *const *options = i == 0 ? NULL : lines;
        const char *text = i == 0 ? asserting : plain;
        const size_t count = i == 0 ? 0 : 1;
        expect_in((const char *)*state, text, "f.cu", options, count, true, "f.cu");
        expect_in((const char *)*state, text, "g.cu", options, count, true, "g.cu");
        expect_in(moved, text, "g.cu", options, count, true, NULL);
        expect_in(moved, text, "g.cu", options, count, false, NULL);
    }
    close_all();
}

/* NVRTC gets the toolkit's own directory as an include dir: given as one besides, it is searched
 * twice, and hides what stands after it. */
static void K1_the_toolkits_directory_is_searched_where_it_stands(void **state)
{
    static const char text[] =
        "#include <math_constants.h>\n"
        "extern \"C\" __global__ void k(float *x) { x[0] = CUDART_INF_F; }\n";
    static kn_cuda_toolkit toolkit;
    char *root = kt_at((const char *)*state, "order");
    char *dir = kt_at((const char *)*state, "ordered");
    char *a = kt_at(dir, "A");
    kiln_blob *first = NULL;
    kiln_blob *second = NULL;
    kn_cuda_toolkit_find(&toolkit);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(symlink(toolkit.include[0], a), 0);
    write_header(dir, "B/math_constants.h", "#define CUDART_INF_F 111\n");
    open_on(root);
    assert_int_equal(compile_in(dir, text, "k.cu", NULL, 0, &first), KILN_ORIGIN_COMPILED);
    write_header(dir, "B/math_constants.h", "#define CUDART_INF_F 222\n"); /* nobody reads it */
    assert_int_not_equal(compile_in(dir, text, "k.cu", NULL, 0, &second), KILN_ORIGIN_COMPILED);
    kiln_blob_release(second);
    /* Without A the other one is read. */
    assert_int_equal(unlink(a), 0);
    assert_int_equal(compile_in(dir, text, "k.cu", NULL, 0, &second), KILN_ORIGIN_COMPILED);
    assert_int_not_equal(
        memcmp(kiln_blob_data(first), kiln_blob_data(second), kiln_blob_size(first)), 0);
    kiln_blob_release(first);
    kiln_blob_release(second);
    close_all();
}

/* NVRTC drops blanks and a "=" that are part of a directory's name. */
static void K1_odd_names_of_dirs_are_kept(void **state)
{
    static const char text[] = "#include <a.h>\n"
                               "extern \"C\" __global__ void k(int *x) { x[0] = VALUE; }\n";
    static const char *const odd[] = {" blank", "blank ", "=sign", "-"};
    char *root = kt_at((const char *)*state, "odd");
    char before[4096];
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir((const char *)*state), 0);
    open_on(root);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_blob *blob = NULL;
        kiln_origin origin = KILN_ORIGIN_NONE;
        kiln_source source = world_source(text, NULL, 0);
        char name[64];
        source.include_dirs = &odd[i];
        source.include_dir_count = 1;
        (void)snprintf(name, sizeof(name), "%s/a.h", odd[i]);
        char value[64];
        (void)snprintf(value, sizeof(value), "#define VALUE %zu\n", 100 + i);
        write_header((const char *)*state, name, value);
        ok(kiln_compile(own.runtime, "cuda:compute_90", &source, &blob, &origin, &diag), &diag);
        (void)snprintf(value, sizeof(value), "%zu;", 100 + i);
        assert_true(world_blob_holds(blob, value));
        assert_int_equal(origin, KILN_ORIGIN_COMPILED);
        kiln_blob_release(blob);
    }
    close_all();
    assert_int_equal(chdir(before), 0);
}

/* The precompiled header of a directory, waited for; false where addresses cannot be fixed. */
static bool header_made(const char *dir)
{
    for (int i = 0; i < 600; i++) {
        DIR *list = opendir(dir);
        const struct dirent *entry = NULL;
        bool made = false;
        bool making = false;
        while (list != NULL && (entry = readdir(list)) != NULL) {
            const char *ending = strrchr(entry->d_name, '.');
            made = made || (ending != NULL && strcmp(ending, ".pch") == 0);
            making = making || (ending != NULL && strcmp(ending, ".making") == 0);
        }
        if (list != NULL) {
            (void)closedir(list);
        }
        if (made || !making) {
            return made;
        }
        (void)usleep(100000);
    }
    return false;
}

static void a_precompiled_header_changes_no_byte(void **state)
{
    char *root = kt_at((const char *)*state, "pch");
    char *dir = kt_at(root, "pch");
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_source source = world_source(mma_text, NULL, 0);
    static const char second[] = "#include <cuda_fp16.h>\n"
                                 "#include <mma.h>\n"
                                 "#include <cooperative_groups.h>\n"
                                 "extern \"C\" __global__ void other(__half *x) { x[0] = x[2]; }\n";
    kiln_blob *with = NULL;
    kiln_blob *without = NULL;
    kiln_define define = {"NAME", "a"};
    source.defines = &define;
    source.define_count = 1;
    open_on(root);
    ok(kiln_compile(own.runtime, "cuda:sm_90", &source, &with, NULL, &diag), &diag);
    kiln_blob_release(with);
    if (!header_made(dir)) {
        print_message("no precompiled header could be made here\n");
    }
    source.text = second;
    source.length = strlen(second);
    ok(kiln_compile(own.runtime, "cuda:sm_90", &source, &with, NULL, &diag), &diag);
    close_all();
    char *plain = kt_at((const char *)*state, "plain");
    assert_int_equal(setenv("KILN_CUDA_PCH", "0", 1), 0);
    open_on(plain);
    ok(kiln_compile(own.runtime, "cuda:sm_90", &source, &without, NULL, &diag), &diag);
    close_all();
    (void)unsetenv("KILN_CUDA_PCH");
    assert_int_equal(kiln_blob_size(with), kiln_blob_size(without));
    assert_memory_equal(kiln_blob_data(with), kiln_blob_data(without), kiln_blob_size(with));
    kiln_blob_release(with);
    kiln_blob_release(without);
}

/* The last test of this process: NVRTC 13.0 does not forget the option. */
static void nothing_is_stored_after_restrict(void **state)
{
    static const char text[] = "__global__ void k(float *a, const float *b) { a[0] = b[1]; }";
    static const char *const options[] = {"-restrict"};
    char *root = kt_at((const char *)*state, "restrict");
    kt_counters stats;
    open_on(root);
    kiln_source first = world_source(text, NULL, 0);
    first.options = options;
    first.option_count = 1;
    const kiln_source next = world_source(text, NULL, 0);
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    for (int i = 0; i < 2; i++) {
        ok(kiln_compile(own.runtime, "cuda:sm_90", i == 0 ? &first : &next, &blob, NULL, &diag),
           &diag);
        kiln_blob_release(blob);
    }
    kt_counters_own(own.cache, &stats);
    assert_int_equal(stats.puts, 1);
    assert_int_equal(stats.bypassed, 1);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heavy_headers_are_followed_and_hit),
        cmocka_unit_test(every_target_compiles),
        cmocka_unit_test(a_suffix_is_not_lost),
        cmocka_unit_test(parameters_are_counted),
        cmocka_unit_test(options_hold_in_link_time_optimisation),
        cmocka_unit_test(a_binary_that_was_cut_off_is_seen),
        cmocka_unit_test(K1_the_current_dir_is_not_searched),
        cmocka_unit_test(K1_no_source_include_finds_no_header_beside),
        cmocka_unit_test(K1_the_toolkits_directory_is_searched_where_it_stands),
        cmocka_unit_test(K1_odd_names_of_dirs_are_kept),
        cmocka_unit_test(K5_what_code_says_of_its_file_is_in_the_key),
        cmocka_unit_test(a_precompiled_header_changes_no_byte),
        cmocka_unit_test(nothing_is_stored_after_restrict),
    };
    return cmocka_run_group_tests(tests, kt_tmpdir_setup, kt_tmpdir_teardown);
}
