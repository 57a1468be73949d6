/* The real hipRTC, without a GPU: skipped where it is not installed (Debian: libamdhip64-5). */
#include <unistd.h>

#include <kiln/unstable/compile.h>

#include "apis/hip/backend/code_object.h"
#include "apis/hip/backend/instance.h"
#include "support/counters.h"
#include "support/skip.h"

#define WORLD_BACKEND "hip"
#include "unit/backends/cuda/world.h"

static const char scale_text[] =
    "extern \"C\" __global__ void scale(float *x) { x[threadIdx.x] *= FACTOR; }\n"
    "template <class T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }\n";

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

static int open_own(void **state)
{
    (void)kt_tmpdir_setup(state);
    char *root = kt_at((const char *)*state, "cache");
    open_on(root);
    return 0;
}

static int close_own(void **state)
{
    close_all();
    return kt_tmpdir_teardown(state);
}

static kiln_source source_of(const char *text)
{
    kiln_source source = world_source(text, NULL, 0);
    source.language = KILN_LANG_HIP;
    source.name = "some/where/test.hip";
    return source;
}

static const kiln_define factor = {"FACTOR", "3"};

static kiln_source scale_source(void)
{
    kiln_source source = source_of(scale_text);
    source.defines = &factor;
    source.define_count = 1;
    return source;
}

/* Compiles for gfx90a: what it gave, and where that came from. */
static kiln_blob *compile(const kiln_source *source, kiln_origin expected)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    ok(kiln_compile(own.runtime, "hip:gfx90a", source, &blob, &origin, &diag), &diag);
    assert_int_equal(origin, expected);
    return blob;
}

static kiln_status refuse(const kiln_source *source, const char *target, kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    const kiln_status status = kiln_compile(own.runtime, target, source, &blob, NULL, diag);
    kiln_blob_release(blob);
    return status;
}

static void count_pointer(void *user, kn_metadata_arg arg)
{
    static const char kind[] = "global_buffer";
    size_t *count = (size_t *)user;
    *count += arg.size == 8 && arg.kind.length == sizeof(kind) - 1 &&
              memcmp(arg.kind.data, kind, sizeof(kind) - 1) == 0;
}

static void a_code_object_is_made_once(void **state)
{
    static const kn_hip_target target = {"gfx90a", "gfx90a", '\0', '\0'};
    char why[KN_CODE_OBJECT_WHY];
    kiln_source source = scale_source();
    kiln_blob *made = compile(&source, KILN_ORIGIN_COMPILED);
    assert_true(kn_code_object_check(kiln_blob_data(made), kiln_blob_size(made), &target, why));
    assert_true(kn_code_object_has(kiln_blob_data(made), kiln_blob_size(made), "scale"));
    size_t pointers = 0;
    assert_true(kn_code_object_params(kiln_blob_data(made), kiln_blob_size(made), "scale",
                                      count_pointer, &pointers));
    assert_int_equal(pointers, 1);
    close_all();
    char *root = kt_at((const char *)*state, "cache");
    open_on(root);
    kiln_blob *found = compile(&source, KILN_ORIGIN_DISK);
    assert_int_equal(kiln_blob_size(found), kiln_blob_size(made));
    assert_memory_equal(kiln_blob_data(found), kiln_blob_data(made), kiln_blob_size(made));
    /* CUDA's texts are HIP's: another language, an entry of its own. */
    source.language = KILN_LANG_CUDA;
    source.name = "test.cu";
    kiln_blob_release(compile(&source, KILN_ORIGIN_COMPILED));
    kiln_blob_release(found);
    kiln_blob_release(made);
}

static void targets_are_apart_and_unknown_ones_are_refused(void **state)
{
    static const struct {
        const char *target;
        kiln_status status;
    } rows[] = {
        {"hip:gfxfff", KILN_E_UNSUPPORTED},    {"hip:gfx1030:xnack+", KILN_E_UNSUPPORTED},
        {"hip:gfx90", KILN_E_UNSUPPORTED},     {"hip:sm_90", KILN_E_INVALID},
        {"hip:gfx", KILN_E_INVALID},           {"hip:gfx90a:", KILN_E_INVALID},
        {"hip:gfx90a:xnack", KILN_E_INVALID},  {"hip:gfx90a:xnack+:xnack-", KILN_E_INVALID},
        {"hip:gfx90a:other+", KILN_E_INVALID}, {"hip:native", KILN_E_UNAVAILABLE},
        {"hip:gfx90a ", KILN_E_INVALID},
    };
    const kiln_source source = scale_source();
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blobs[3] = {NULL, NULL, NULL};
    kiln_origin origin = KILN_ORIGIN_NONE;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (refuse(&source, rows[i].target, &diag) != rows[i].status) {
            fail_msg("%s: %s", rows[i].target, diag.why);
        }
        kiln_diag_clear(&diag);
    }
    blobs[0] = compile(&source, KILN_ORIGIN_COMPILED);
    ok(kiln_compile(own.runtime, "hip:gfx90a:xnack-:sramecc+", &source, &blobs[1], &origin, &diag),
       &diag);
    assert_int_equal(origin, KILN_ORIGIN_COMPILED);
    /* The same in another order. */
    ok(kiln_compile(own.runtime, "hip:gfx90a:sramecc+:xnack-", &source, &blobs[2], &origin, &diag),
       &diag);
    assert_int_not_equal(origin, KILN_ORIGIN_COMPILED);
    for (size_t i = 0; i < 3; i++) {
        kiln_blob_release(blobs[i]);
    }
}

static void K2_an_edited_header_makes_a_new_entry(void **state)
{
    static const char text[] = "#include \"value.h\"\n#include \"given.h\"\n"
                               "extern \"C\" __global__ void k(int *x) { x[0] = VALUE + GIVEN; }\n";
    static const char given[] = "#define GIVEN 1\n";
    char *path = kt_at((const char *)*state, "value.h");
    const char *const dirs[] = {(const char *)*state};
    kiln_header header = {.name = "given.h", .text = given, .length = sizeof(given) - 1};
    kiln_source source = source_of(text);
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    source.headers = &header;
    source.header_count = 1;
    kt_file_write(path, "#define VALUE 1\n", 16);
    kiln_blob *first = compile(&source, KILN_ORIGIN_COMPILED);
    kiln_blob_release(compile(&source, KILN_ORIGIN_MEMORY));
    kt_file_write(path, "#define VALUE 22\n", 17);
    kiln_blob *second = compile(&source, KILN_ORIGIN_COMPILED);
    assert_true(kiln_blob_size(first) != kiln_blob_size(second) ||
                memcmp(kiln_blob_data(first), kiln_blob_data(second), kiln_blob_size(first)) != 0);
    kiln_blob_release(second);
    kiln_blob_release(first);
}

static void K1_what_no_key_describes_bypasses_the_cache(void **state)
{
    static const char text[] = "#include \"value.h\"\n"
                               "extern \"C\" __global__ void k(int *x) { x[0] = VALUE; }\n";
    char *path = kt_at((const char *)*state, "value.h");
    const char *const options[] = {"-I", (const char *)*state};
    kiln_source source = source_of(text);
    kt_counters stats;
    kt_file_write(path, "#define VALUE 1\n", 16);
    source.options = options;
    source.option_count = 2;
    kiln_blob_release(compile(&source, KILN_ORIGIN_COMPILED));
    kiln_blob_release(compile(&source, KILN_ORIGIN_COMPILED));
    kt_counters_own(own.cache, &stats);
    assert_int_equal(stats.bypassed, 2);
}

/* hipRTC's own header is looked for in the current directory first. */
static void K1_a_runtime_header_in_the_current_directory_is_seen(void **state)
{
    char before[4096];
    const kiln_source source = scale_source();
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir((const char *)*state), 0);
    assert_null(kn_hip_uncacheable_option(NULL, &source));
    kt_file_write("hiprtc_runtime.h.gch", "", 0);
    assert_non_null(kn_hip_uncacheable_option(NULL, &source));
    assert_int_equal(unlink("hiprtc_runtime.h.gch"), 0);
    kt_file_write("hiprtc_runtime.h", "", 0);
    assert_non_null(kn_hip_uncacheable_option(NULL, &source));
    assert_int_equal(chdir(before), 0);
}

static void entries_are_name_expressions(void **state)
{
    static const char *const good[] = {"scale", "twice<int>"};
    static const char *const bad[] = {"scale", "thrice<int>"};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_source source = scale_source();
    (void)state;
    source.entries = good;
    source.entry_count = 2;
    kiln_blob *blob = compile(&source, KILN_ORIGIN_COMPILED);
    assert_true(kn_code_object_has(kiln_blob_data(blob), kiln_blob_size(blob), "_Z5twiceIiEvPT_"));
    kiln_blob_release(blob);
    source.entries = bad;
    assert_int_equal(refuse(&source, "hip:gfx90a", &diag), KILN_E_COMPILE);
    kiln_diag_clear(&diag);
}

static void logs_and_code_name_the_source_and_no_temporary_file(void **state)
{
    static const char wrong[] = "#include \"own.h\"\n"
                                "extern \"C\" __global__ void k(int *x) { x[0] = nothing; }\n";
    static const char header_text[] = "#warning \"in a header\"\n";
    static const char named[] =
        "extern \"C\" __global__ void k(const char **x) { x[0] = __FILE__; }\n";
    const kiln_header header = {
        .name = "own.h", .text = header_text, .length = sizeof(header_text) - 1};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_source source = source_of(wrong);
    (void)state;
    source.headers = &header;
    source.header_count = 1;
    assert_int_equal(refuse(&source, "hip:gfx90a", &diag), KILN_E_COMPILE);
    assert_non_null(diag.log);
    assert_non_null(strstr(diag.log, "test.hip:2:"));
    assert_non_null(strstr(diag.log, "own.h:1:"));
    assert_null(strstr(diag.log, "comgr-"));
    kiln_diag_clear(&diag);
    source = source_of(named);
    kiln_blob *blob = compile(&source, KILN_ORIGIN_COMPILED);
    assert_true(world_blob_holds(blob, "test.hip"));
    assert_false(world_blob_holds(blob, "comgr-"));
    kiln_blob_release(blob);
    source.name = "other.hip"; /* a name in the code is a name in the key */
    blob = compile(&source, KILN_ORIGIN_COMPILED);
    assert_true(world_blob_holds(blob, "other.hip"));
    kiln_blob_release(blob);
}

static void defines_are_given_whole(void **state)
{
    static const char text[] = "static_assert(SUM == 3 && ONE == 1, \"\");\n"
                               "extern \"C\" __global__ void k(const char **x) { x[0] = TEXT; }\n";
    static const kiln_define defines[] = {
        {"SUM", "1 + 2"}, {"ONE", NULL}, {"TEXT", "\"two words\""}};
    kiln_source source = source_of(text);
    (void)state;
    source.defines = defines;
    source.define_count = 3;
    kiln_blob *blob = compile(&source, KILN_ORIGIN_COMPILED);
    assert_true(world_blob_holds(blob, "two words"));
    kiln_blob_release(blob);
}

/* hipRTC would end the process, or take half of it. */
static void what_hiprtc_cannot_take_is_refused(void **state)
{
    static const char *const target[] = {"--offload-arch=nonsense"};
    static const char *const blank[] = {"/a directory"};
    static const kiln_define lines[] = {{"A", "1\n#define B"}};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_source source = scale_source();
    (void)state;
    source.options = target;
    source.option_count = 1;
    assert_int_equal(refuse(&source, "hip:gfx90a", &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
    source = scale_source();
    source.include_dirs = blank;
    source.include_dir_count = 1;
    assert_int_equal(refuse(&source, "hip:gfx90a", &diag), KILN_E_UNSUPPORTED);
    kiln_diag_clear(&diag);
    source = scale_source();
    source.defines = lines;
    assert_int_equal(refuse(&source, "hip:gfx90a", &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
}

/* The second process does not open LLVM for a hit; a library that changed is asked again. */
static void what_is_remembered_is_what_was_found(void **state)
{
    char *root = kt_at((const char *)*state, "cache");
    const kiln_source source = scale_source();
    kiln_blob_release(compile(&source, KILN_ORIGIN_COMPILED));
    close_all();
    for (int round = 0; round < 2; round++) {
        open_on(root);
        kiln_blob_release(compile(&source, KILN_ORIGIN_DISK));
        if (round == 0) {
            close_all();
            /* Another name of the memo: the libraries are opened, and are the same. */
            assert_int_equal(setenv("LD_PRELOAD", "", 1), 0);
            assert_int_equal(setenv("LD_LIBRARY_PATH", (const char *)*state, 1), 0);
        }
    }
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
    assert_int_equal(unsetenv("LD_LIBRARY_PATH"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_own, close_own)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_code_object_is_made_once),
        TEST(targets_are_apart_and_unknown_ones_are_refused),
        TEST(K2_an_edited_header_makes_a_new_entry),
        TEST(K1_what_no_key_describes_bypasses_the_cache),
        TEST(K1_a_runtime_header_in_the_current_directory_is_seen),
        TEST(entries_are_name_expressions),
        TEST(logs_and_code_name_the_source_and_no_temporary_file),
        TEST(defines_are_given_whole),
        TEST(what_hiprtc_cannot_take_is_refused),
        TEST(what_is_remembered_is_what_was_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
