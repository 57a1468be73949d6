/* kiln/hip.h on the fake hipRTC. */
#include <stdlib.h>
#include <string.h>

#include <kiln/hip.h>

#include "support/cmocka.h"
#include "support/counters.h"
#include "support/tmpdir.h"

static const char text[] = "#include \"factor.h\"\n"
                           "template <class T> __global__ void scale(T *x)\n"
                           "{ x[threadIdx.x] *= FACTOR; }\n";
static const char *const expressions[] = {"scale<float>", "scale<int>"};
static const kiln_header factor = {"factor.h", "#define FACTOR 3\n", 17};

static kiln_cache *open_cache(const char *dir, const char *name)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    char *root = kt_path(dir, name);
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    free(root);
    return cache;
}

static kiln_hiprtc_request request_for(const char *const *options, size_t count)
{
    return (kiln_hiprtc_request){.struct_size = sizeof(kiln_hiprtc_request),
                                 .text = text,
                                 .options = options,
                                 .option_count = count,
                                 .headers = &factor,
                                 .header_count = 1,
                                 .expressions = expressions,
                                 .expression_count = 2};
}

static void compile(kiln_cache *cache, const kiln_hiprtc_request *request, kiln_origin origin)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_hiprtc_result *result = NULL;
    kiln_status status = kiln_hiprtc_compile(cache, request, &result, &diag);
    if (status != KILN_OK) {
        print_error("%s\n%s\n", diag.why, diag.log != NULL ? diag.log : "");
    }
    assert_int_equal(status, KILN_OK);
    assert_int_equal(result->origin, origin);
    assert_true(result->size > 64);
    assert_memory_equal(result->code, "\177ELF", 4);
    assert_int_equal(result->lowered_count, 2);
    assert_string_equal(result->lowered[1], "_Zfake_scale_int_");
    assert_string_equal(result->log, "");
    kiln_hiprtc_result_destroy(result);
}

static void K9_a_hit_gives_what_a_compile_gave(void **state)
{
    const char *const options[] = {"--offload-arch=gfx90a", "-I", (const char *)*state};
    char *header = kt_at((const char *)*state, "factor.h");
    kiln_hiprtc_request request = request_for(options, 3);
    kiln_cache *cache = open_cache((const char *)*state, "hit");
    request.header_count = 0;
    kt_file_write(header, "#define FACTOR 1\n", 17);
    compile(cache, &request, KILN_ORIGIN_COMPILED);
    compile(cache, &request, KILN_ORIGIN_MEMORY);
    kt_file_write(header, "#define FACTOR 22\n", 18); /* reached through -I: part of the key */
    compile(cache, &request, KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
    cache = open_cache((const char *)*state, "hit");
    compile(cache, &request, KILN_ORIGIN_DISK);
    kiln_cache_destroy(cache);
}

static void refuse(kiln_cache *cache, const kiln_hiprtc_request *request, kiln_status expected,
                   const char *words)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_hiprtc_result *result = NULL;
    assert_int_equal(kiln_hiprtc_compile(cache, request, &result, &diag), expected);
    if (strstr(diag.why, words) == NULL && strstr(diag.fix, words) == NULL &&
        (diag.log == NULL || strstr(diag.log, words) == NULL)) {
        fail_msg("'%s' is not in: %s (%s)", words, diag.why, diag.fix);
    }
    assert_null(result);
    kiln_diag_clear(&diag);
}

/* A target is one, however its option is spelled; hipRTC takes the spelling of CUDA's, too. */
static void the_target_is_taken_out_of_the_options(void **state)
{
    static const char *const spellings[][1] = {
        {"--offload-arch=gfx90a:sramecc+:xnack-"},
        {"--offload-arch=gfx90a:xnack-:sramecc+"},
        {"--gpu-architecture=gfx90a:sramecc+:xnack-"},
    };
    static const char *const other[] = {"--offload-arch=gfx1030"};
    kiln_cache *cache = open_cache((const char *)*state, "target");
    for (size_t i = 0; i < 3; i++) {
        const kiln_hiprtc_request request = request_for(spellings[i], 1);
        compile(cache, &request, i == 0 ? KILN_ORIGIN_COMPILED : KILN_ORIGIN_MEMORY);
    }
    const kiln_hiprtc_request request = request_for(other, 1);
    compile(cache, &request, KILN_ORIGIN_COMPILED);
    /* As hipRTC does it: a value of its own and a second target are refused. */
    static const char *const apart[] = {"--offload-arch", "gfx90a"};
    static const char *const both[] = {"--offload-arch=gfx90a", "--offload-arch=gfx1030"};
    const kiln_hiprtc_request refused[] = {request_for(apart, 2), request_for(both, 2)};
    refuse(cache, &refused[0], KILN_E_INVALID, "no --offload-arch");
    refuse(cache, &refused[1], KILN_E_INVALID, "target");
    kiln_cache_destroy(cache);
}

/* "-I=" is a directory below clang's root, and a blank stands for two options in hipRTC 5.2: no key
 * describes what they reach. */
static void K1_other_forms_of_include_directories_bypass_the_cache(void **state)
{
    static const char *const forms[][2] = {{"--offload-arch=gfx90a", "-I=."},
                                           {"--offload-arch=gfx90a", "-I ."}};
    kt_counters stats;
    kiln_cache *cache = open_cache((const char *)*state, "forms");
    for (size_t i = 0; i < 2; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_hiprtc_result *result = NULL;
        kiln_hiprtc_request request = request_for(forms[i], 2);
        request.text = "#include \"elsewhere.h\"\n";
        request.expression_count = 0;
        assert_int_equal(kiln_hiprtc_compile(cache, &request, &result, &diag), KILN_E_COMPILE);
        kiln_diag_clear(&diag);
    }
    kt_counters_own(cache, &stats);
    assert_int_equal(stats.bypassed, 2);
    kiln_cache_destroy(cache);
}

static void wrong_requests_are_refused(void **state)
{
    static const char *const no_target[] = {"-DA=1"};
    static const char *const unknown[] = {"--offload-arch=gfx942"};
    static const char *const good[] = {"--offload-arch=gfx90a"};
    static const char *const hole[] = {NULL};
    kiln_cache *cache = open_cache((const char *)*state, "wrong");
    kiln_hiprtc_request request = request_for(no_target, 1);
    refuse(cache, &request, KILN_E_INVALID, "--offload-arch");
    refuse(cache, NULL, KILN_E_INVALID, "no request");
    request = request_for(unknown, 1);
    refuse(cache, &request, KILN_E_UNSUPPORTED, "gfx942");
    request = request_for(hole, 1);
    refuse(cache, &request, KILN_E_INVALID, "an option is NULL");
    request = request_for(good, 1);
    request.header_count = 0; /* factor.h is nowhere */
    refuse(cache, &request, KILN_E_COMPILE, "factor.h");
    request.text = NULL;
    refuse(cache, &request, KILN_E_INVALID, "no text");
    request = request_for(good, 1);
    request.struct_size = sizeof(size_t);
    refuse(cache, &request, KILN_E_INVALID, "struct_size");
    kiln_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(K9_a_hit_gives_what_a_compile_gave),
        cmocka_unit_test(the_target_is_taken_out_of_the_options),
        cmocka_unit_test(K1_other_forms_of_include_directories_bypass_the_cache),
        cmocka_unit_test(wrong_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, kt_tmpdir_setup, kt_tmpdir_teardown);
}
