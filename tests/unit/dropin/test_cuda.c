/* kiln/cuda.h on the fake NVRTC. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <kiln/cuda.h>

#include "support/cmocka.h"
#include "support/tmpdir.h"

static const char text[] = "#include \"factor.h\"\n"
                           "template <class T> __global__ void scale(T *x)\n"
                           "{ x[threadIdx.x] *= FACTOR; }\n";
static const char *const expressions[] = {"scale<float>", "scale<int>"};

static kiln_cache *open_cache(const char *dir, const char *name)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    char *root = kt_path(dir, name);
    assert_int_equal(kiln_cache_options_init(&options, &diag), KILN_OK);
    options.root = root;
    assert_int_equal(kiln_cache_create(&options, &cache, &diag), KILN_OK);
    free(root);
    return cache;
}

static kiln_nvrtc_request request_for(const char *const *options, size_t count)
{
    return (kiln_nvrtc_request){.struct_size = sizeof(kiln_nvrtc_request),
                                .text = text,
                                .options = options,
                                .option_count = count,
                                .expressions = expressions,
                                .expression_count = 2};
}

static void compile(kiln_cache *cache, const kiln_nvrtc_request *request, kiln_origin origin,
                    bool ptx)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_nvrtc_result *result = NULL;
    kiln_status status = kiln_nvrtc_compile(cache, request, &result, &diag);
    if (status != KILN_OK) {
        print_error("%s\n%s\n", diag.why, diag.log != NULL ? diag.log : "");
    }
    assert_int_equal(status, KILN_OK);
    assert_int_equal(result->origin, origin);
    assert_int_equal(result->is_ptx, ptx);
    assert_memory_equal(result->binary, ptx ? "//KP" : "KCUB", 4);
    assert_int_equal(result->lowered_count, 2);
    assert_string_equal(result->lowered[1], "_Zfake_scale_int_");
    assert_string_equal(result->log, "");
    kiln_nvrtc_result_destroy(result);
}

static void K9_a_hit_gives_what_a_compile_gave(void **state)
{
    static const char *const options[] = {"--gpu-architecture=sm_90", "-DFACTOR=3", "-I", NULL};
    char *header = kt_at((const char *)*state, "factor.h");
    const char *list[4];
    memcpy(list, options, sizeof(options));
    list[3] = (const char *)*state;
    kiln_nvrtc_request request = request_for(list, 4);
    kiln_cache *cache = open_cache((const char *)*state, "hit");
    kt_file_write(header, "/* 1 */\n", 8);
    compile(cache, &request, KILN_ORIGIN_COMPILED, false);
    compile(cache, &request, KILN_ORIGIN_MEMORY, false);
    kt_file_write(header, "/* 22 */\n", 9); /* reached through -I: part of the key */
    compile(cache, &request, KILN_ORIGIN_COMPILED, false);
    kiln_cache_destroy(cache);
    cache = open_cache((const char *)*state, "hit");
    compile(cache, &request, KILN_ORIGIN_DISK, false);
    kiln_cache_destroy(cache);
}

/* Expressions longer than any buffer, alike for a page: each has its own lowered name, made and
 * found. */
static void K9_long_name_expressions_keep_theirs(void **state)
{
    enum { LENGTH = 700 };
    static const char *const sm_90[] = {"-arch=sm_90"};
    static const char spaces[] = "scale<                    float>";
    char one[LENGTH + 8];
    char other[LENGTH + 8];
    (void)snprintf(one, sizeof(one), "scale<%*sfloat>", LENGTH - 14, "");
    (void)snprintf(other, sizeof(other), "scale<%*sint>", LENGTH - 14, "");
    const char *const list[] = {one, other, spaces};
    kiln_nvrtc_request request = request_for(sm_90, 1);
    request.text = "template <class T> __global__ void scale(T *x) { x[threadIdx.x] *= 2; }\n";
    request.expressions = list;
    request.expression_count = 3;
    for (int round = 0; round < 2; round++) {
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_nvrtc_result *result = NULL;
        kiln_cache *cache = open_cache((const char *)*state, "long");
        const kiln_status status = kiln_nvrtc_compile(cache, &request, &result, &diag);
        if (status != KILN_OK) {
            print_error("%s\n", diag.why);
        }
        assert_int_equal(status, KILN_OK);
        assert_int_equal(result->origin, round == 0 ? KILN_ORIGIN_COMPILED : KILN_ORIGIN_DISK);
        assert_non_null(strstr(result->lowered[0], "_float_"));
        assert_non_null(strstr(result->lowered[1], "_int_"));
        assert_non_null(strstr(result->lowered[2], "_float_"));
        assert_string_not_equal(result->lowered[0], result->lowered[2]);
        kiln_nvrtc_result_destroy(result);
        kiln_cache_destroy(cache);
    }
}

static void headers_in_memory_and_PTX(void **state)
{
    static const char *const options[] = {"-arch", "compute_80"};
    kiln_header headers[] = {{"factor.h", "#define FACTOR 2\n", 17}};
    kiln_nvrtc_request request = request_for(options, 2);
    kiln_cache *cache = open_cache((const char *)*state, "ptx");
    request.headers = headers;
    request.header_count = 1;
    compile(cache, &request, KILN_ORIGIN_COMPILED, true);
    headers[0].text = "#define FACTOR 3\n";
    compile(cache, &request, KILN_ORIGIN_COMPILED, true);
    headers[0].text = "#define FACTOR 2\n";
    compile(cache, &request, KILN_ORIGIN_MEMORY, true);
    /* It ends at its length, for the compiler as for the key. */
    headers[0].text = "#define FACTOR 4\n#error this is behind it\n";
    compile(cache, &request, KILN_ORIGIN_COMPILED, true);
    headers[0] = (kiln_header){"factor.h", NULL, 0};
    request.text = "#include \"factor.h\"\ntemplate <class T> __global__ void scale(T *x)\n"
                   "{ x[threadIdx.x] *= 2; }\n";
    compile(cache, &request, KILN_ORIGIN_COMPILED, true);
    kiln_cache_destroy(cache);
}

/* What a variable of a mapped library holds; -1 where none is mapped from that file. */
static int mapped_value(const char *path, const char *variable)
{
    int value = -1;
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) {
        const void *symbol = dlsym(library, variable);
        assert_non_null(symbol);
        memcpy(&value, symbol, sizeof(value));
        assert_int_equal(dlclose(library), 0);
    }
    return value;
}

static void put_library(const char *variant, const char *name, const char *dir)
{
    char from[1024];
    char fresh[1024];
    char to[1024];
    size_t size = 0;
    (void)snprintf(from, sizeof(from), KILN_FAKECUDA_DIR "/%s/lib64/%s", variant, name);
    (void)snprintf(fresh, sizeof(fresh), "%s/fresh", dir);
    (void)snprintf(to, sizeof(to), "%s/%s", dir, name);
    char *bytes = kt_file_read(from, &size);
    assert_non_null(bytes);
    kt_file_write(fresh, bytes, size);
    assert_int_equal(rename(fresh, to), 0); /* as an installer does: the old file stays mapped */
    free(bytes);
}

/* What was mapped for a compile serves the next ones of the cache; a toolkit that is installed in
 * its place is noticed, each library of it. */
static void K8_a_compiler_stays_open_until_it_is_exchanged(void **state)
{
    static const char *const options[] = {"-arch=sm_90"};
    static const char nvrtc[] = "libnvrtc.so.13";
    static const char builtins[] = "libnvrtc-builtins.so.13.0";
    char *before = strdup(getenv("CUDA_PATH"));
    char *toolkit = kt_at((const char *)*state, "exchanged");
    char *dir = kt_at((const char *)*state, "exchanged/lib64");
    char *nvrtc_path = kt_at(dir, nvrtc);
    char *builtins_path = kt_at(dir, builtins);
    kiln_header header = {"factor.h", "#define FACTOR 2\n", 17};
    kiln_nvrtc_request request = request_for(options, 1);
    request.headers = &header;
    request.header_count = 1;
    assert_int_equal(mkdir(toolkit, 0700), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
    put_library("toolkit", nvrtc, dir);
    put_library("toolkit", builtins, dir);
    assert_int_equal(setenv("CUDA_PATH", toolkit, 1), 0);
    kiln_cache *cache = open_cache((const char *)*state, "kept");
    compile(cache, &request, KILN_ORIGIN_COMPILED, false);
    assert_int_equal(mapped_value(nvrtc_path, "fakenvrtc_salt"), 0);
    compile(cache, &request, KILN_ORIGIN_MEMORY, false);
    assert_int_equal(mapped_value(nvrtc_path, "fakenvrtc_salt"), 0);

    put_library("toolkit_next", nvrtc, dir);
    compile(cache, &request, KILN_ORIGIN_COMPILED, false);
    assert_int_equal(mapped_value(nvrtc_path, "fakenvrtc_salt"), 1);
    assert_int_equal(mapped_value(builtins_path, "fakenvrtc_builtins"), 1);
    put_library("toolkit_next", builtins, dir);
    compile(cache, &request, KILN_ORIGIN_COMPILED, false);
    assert_int_equal(mapped_value(builtins_path, "fakenvrtc_builtins"), 2);
    compile(cache, &request, KILN_ORIGIN_MEMORY, false);

    kiln_cache_destroy(cache);
    assert_int_equal(mapped_value(nvrtc_path, "fakenvrtc_salt"), -1);
    assert_int_equal(mapped_value(builtins_path, "fakenvrtc_builtins"), -1);
    assert_int_equal(setenv("CUDA_PATH", before, 1), 0);
    free(before);
}

static void wrong_requests_are_refused(void **state)
{
    static const char *const options[] = {"-DFACTOR=1"};
    static const char *const sm_90[] = {"-arch=sm_90"};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_nvrtc_result *result = NULL;
    kiln_cache *cache = open_cache((const char *)*state, "wrong");
    kiln_nvrtc_request request = request_for(options, 1);
    assert_int_equal(kiln_nvrtc_compile(cache, &request, &result, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "architecture"));
    request = request_for(sm_90, 1); /* factor.h is nowhere */
    assert_int_equal(kiln_nvrtc_compile(cache, &request, &result, &diag), KILN_E_COMPILE);
    assert_int_equal(diag.vendor_code, 6);
    assert_non_null(strstr(diag.log, "factor.h"));
    assert_null(result);
    request.text = NULL;
    assert_int_equal(kiln_nvrtc_compile(cache, &request, &result, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
    kiln_nvrtc_result_destroy(NULL);
    kiln_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(K9_a_hit_gives_what_a_compile_gave),
        cmocka_unit_test(K9_long_name_expressions_keep_theirs),
        cmocka_unit_test(headers_in_memory_and_PTX),
        cmocka_unit_test(K8_a_compiler_stays_open_until_it_is_exchanged),
        cmocka_unit_test(wrong_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, kt_tmpdir_setup, kt_tmpdir_teardown);
}
