/* kiln_dropin_compile, by the command: `kiln compile --drop-in` and `kiln warm --drop-in` fill the
 * cache or a pack, and a drop-in call of another process compiles nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/symbols.h"
#include "kiln/cuda.h"
#include "kiln/hip.h"
#include "kiln/opencl.h"
#include "support/cmocka.h"
#include "support/counters.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/process.h"

#define NO_DEVICE 77

static char program_path[4096];

/* --- in the child: opencl|cuda|hip FILE OPTION... --------------------------------------------- */

static int say(kiln_cache *cache, kiln_status status, const kiln_diag *diag)
{
    kt_counters stats;
    kt_counters_own(cache, &stats);
    const uint64_t hits = stats.hits_disk + stats.hits_pack;
    (void)printf("%s compiles=%llu hits=%llu %s\n", kiln_status_name(status),
                 (unsigned long long)stats.compiles, (unsigned long long)hits, diag->why);
    return 0;
}

static int build_opencl(kiln_cache *cache, const char *text, const char *options)
{
    kn_opencl_api api;
    kn_dylib *lib = NULL;
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kiln_diag diag = KILN_DIAG_INIT;
    char path[512];
    cl_platform_id platform = NULL;
    cl_device_id device = NULL;
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    if (kn_opencl_library_open(&lib, &api, path, sizeof(path), &outcome, NULL) != KILN_OK ||
        api.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
        return NO_DEVICE;
    }
    cl_context context = api.clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    kiln_status status =
        kiln_opencl_build_program(cache, context, device, text, options, &program, &diag);
    (void)say(cache, status, &diag);
    if (program != NULL) {
        (void)api.clReleaseProgram(program);
    }
    kiln_diag_clear(&diag);
    (void)api.clReleaseContext(context);
    kn_dylib_retire(lib);
    return 0;
}

static int compile_cuda(kiln_cache *cache, const char *text, char **options, size_t count)
{
    const char *const expressions[] = {"scale<float>"};
    const kiln_nvrtc_request request = {.struct_size = sizeof(request),
                                        .text = text,
                                        .options = (const char *const *)options,
                                        .option_count = count,
                                        .expressions = expressions,
                                        .expression_count = 1};
    kiln_nvrtc_result *result = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = kiln_nvrtc_compile(cache, &request, &result, &diag);
    (void)say(cache, status, &diag);
    kiln_nvrtc_result_destroy(result);
    kiln_diag_clear(&diag);
    return 0;
}

static int compile_hip(kiln_cache *cache, const char *text, char **options, size_t count)
{
    const char *const expressions[] = {"scale<float>"};
    const kiln_hiprtc_request request = {.struct_size = sizeof(request),
                                         .text = text,
                                         .options = (const char *const *)options,
                                         .option_count = count,
                                         .expressions = expressions,
                                         .expression_count = 1};
    kiln_hiprtc_result *result = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)say(cache, kiln_hiprtc_compile(cache, &request, &result, &diag), &diag);
    kiln_hiprtc_result_destroy(result);
    kiln_diag_clear(&diag);
    return 0;
}

static int child(int argc, char **argv)
{
    kiln_cache *cache = NULL;
    char *text = kt_file_read(argv[2], NULL);
    if (text == NULL || kiln_cache_create(NULL, &cache, NULL) != KILN_OK) {
        return 1;
    }
    int code =
        strcmp(argv[1], "cuda") == 0  ? compile_cuda(cache, text, argv + 3, (size_t)(argc - 3))
        : strcmp(argv[1], "hip") == 0 ? compile_hip(cache, text, argv + 3, (size_t)(argc - 3))
                                      : build_opencl(cache, text, argc > 3 ? argv[3] : "");
    kiln_cache_destroy(cache);
    free(text);
    return code;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static char output[16384]; /* of the last process, errors behind */
static char dir[4000];

/* Files are named from the test's directory: "@name" among the arguments is one in it. */
static int start(const char *packs, const char *cache, const char *const *words)
{
    static char places[16][4200];
    const char *argv[24] = {NULL};
    char variables[3][4300];
    size_t used = 0;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_process_result result = {0};
    for (size_t i = 0; words[i] != NULL && i < 16; i++) {
        (void)snprintf(places[i], sizeof(places[i]), "%s/%s", dir, words[i] + 1);
        argv[used++] = words[i][0] == '@' ? places[i] : words[i];
    }
    (void)snprintf(variables[0], sizeof(variables[0]), "KILN_CACHE_DIR=%s/%s", dir, cache);
    (void)snprintf(variables[1], sizeof(variables[1]), "POCL_CACHE_DIR=%s", dir);
    (void)snprintf(variables[2], sizeof(variables[2]), "KILN_PACKS=%s/%s", dir,
                   packs != NULL ? packs : "");
    const char *const environment[] = {variables[0], variables[1],
                                       packs != NULL ? variables[2] : NULL, NULL};
    const kn_process_request request = {
        .argv = argv, .environment = environment, .limit_ns = 100000000000U};
    assert_int_equal(kn_process_run(&request, &result, &diag), KILN_OK);
    const int code = result.exit_code;
    (void)snprintf(output, sizeof(output), "%s%s", result.out != NULL ? result.out : "",
                   result.err != NULL ? result.err : "");
    kn_process_result_deinit(&result);
    kiln_diag_clear(&diag);
    return code;
}

#define START(packs, cache, ...) start((packs), (cache), (const char *const[]){__VA_ARGS__, NULL})

static void expect(int expected, int code, const char *words)
{
    if (code != expected || strstr(output, words) == NULL) {
        print_error("exit code %d, wanted %d and '%s':\n%s\n", code, expected, words, output);
        fail();
    }
}

static void write_file(const char *name, const char *text)
{
    char path[4200];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    kt_file_write(path, text, strlen(text));
}

static const char scale[] = "#include \"factor.h\"\n"
                            "__kernel void scale(__global int *d) { d[0] *= FACTOR * MORE; }\n";

static void an_opencl_program_is_compiled_ahead(void **state)
{
    char options[4300];
    write_file("scale.cl", scale);
    write_file("factor.h", "#define FACTOR 3\n");
    (void)snprintf(options, sizeof(options), "-DMORE=2 -I %s -cl-mad-enable", dir);
    for (int i = 0; i < 2; i++) {
        expect(0,
               START(NULL, "one", KILN_COMMAND, "compile", "--drop-in", "@scale.cl", "-b", "opencl",
                     "-DMORE=2", "-I", "@", "-X", "-cl-mad-enable", "-e", "scale"),
               i == 0 ? "0 hits, 1 compiled" : "1 hit, 0 compiled");
    }
    expect(0, START(NULL, "one", program_path, "opencl", "@scale.cl", options),
           "KILN_OK compiles=0 hits=1");
    /* What is asked for otherwise is another program; so is one whose header was edited. */
    expect(0, START(NULL, "one", program_path, "opencl", "@scale.cl", "-DMORE=2"), "compiles=");
    assert_null(strstr(output, "compiles=0 hits=1"));
    write_file("factor.h", "#define FACTOR 4\n");
    expect(0, START(NULL, "one", program_path, "opencl", "@scale.cl", options),
           "KILN_OK compiles=1 hits=0");
}

static void its_kernels_are_checked(void **state)
{
    write_file("scale.cl", scale);
    write_file("factor.h", "#define FACTOR 3\n");
    for (int i = 0; i < 2; i++) {
        expect(2,
               START(NULL, "two", KILN_COMMAND, "compile", "--drop-in", "@scale.cl", "-b", "opencl",
                     "-DMORE=1", "-I", "@", "-e", "nope"),
               "it has no kernel \"nope\"; it has scale");
    }
}

static void what_only_a_program_knows_is_refused(void **state)
{
    write_file("scale.cl", "__kernel void scale(__global int *d) { d[0] = 1; }\n");
    write_file("timed.cl", "__kernel void scale(__global char *d) { d[0] = __TIME__[0]; }\n");
    expect(3,
           START(NULL, "three", KILN_COMMAND, "compile", "--drop-in", "@scale.cl", "-t",
                 "vulkan:spirv"),
           "run the program once, then `kiln pack create`");
    expect(2,
           START(NULL, "three", KILN_COMMAND, "compile", "--drop-in", "@scale.cl", "-b", "opencl",
                 "-DX=a b"),
           "quoted as your program does");
    expect(3,
           START(NULL, "three", KILN_COMMAND, "compile", "--drop-in", "@timed.cl", "-b", "opencl"),
           "it bypasses the cache: ");
}

static void a_pack_is_warmed_for_a_drop_in(void **state)
{
    write_file("plain.cl", "__kernel void plain(__global int *d) { d[0] *= MORE; }\n");
    write_file("m.json", "{\"kiln_manifest\": 1, \"kernels\": [{\"name\": \"plain\", \"sources\": "
                         "{\"opencl-c\": \"plain.cl\"}, \"entry\": \"plain\", \"options\": "
                         "{\"opencl-c\": [\"-DMORE=5\"]}}]}\n");
    expect(0,
           START(NULL, "four", KILN_COMMAND, "warm", "@m.json", "--drop-in", "-t", "opencl:0", "-p",
                 "@app.kpack"),
           "1 compiled");
    expect(0, START("app.kpack", "elsewhere", program_path, "opencl", "@plain.cl", "-DMORE=5"),
           "KILN_OK compiles=0 hits=1");
}

static void a_cuda_program_is_compiled_ahead(void **state)
{
    write_file("scale.cu", "template <class T> __global__ void scale(T *d) { d[0] *= MORE; }\n");
    expect(0,
           START(NULL, "five", KILN_COMMAND, "compile", "--drop-in", "@scale.cu", "-t",
                 "cuda:sm_90", "-DMORE=2", "-X", "--fmad=false", "-e", "scale<float>"),
           "1 compiled");
    expect(0,
           START(NULL, "five", program_path, "cuda", "@scale.cu", "-DMORE=2",
                 "--gpu-architecture=sm_90", "--fmad=false"),
           "KILN_OK compiles=0 hits=1");
}

static void a_hip_program_is_compiled_ahead(void **state)
{
    write_file("scale.hip", "template <class T> __global__ void scale(T *d) { d[0] *= MORE; }\n");
    expect(0,
           START(NULL, "six", KILN_COMMAND, "compile", "--drop-in", "@scale.hip", "-t",
                 "hip:gfx90a", "-DMORE=2", "-X", "-O1", "-e", "scale<float>"),
           "1 compiled");
    expect(0,
           START(NULL, "six", program_path, "hip", "@scale.hip", "-DMORE=2",
                 "--offload-arch=gfx90a", "-O1"),
           "KILN_OK compiles=0 hits=1");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest on_fakes[] = {cmocka_unit_test(a_cuda_program_is_compiled_ahead),
                                          cmocka_unit_test(a_hip_program_is_compiled_ahead)};
    const struct CMUnitTest on_opencl[] = {
        cmocka_unit_test(an_opencl_program_is_compiled_ahead),
        cmocka_unit_test(its_kernels_are_checked),
        cmocka_unit_test(what_only_a_program_knows_is_refused),
        cmocka_unit_test(a_pack_is_warmed_for_a_drop_in),
    };
    if (argc >= 3) {
        return child(argc, argv);
    }
    if (realpath("/proc/self/exe", program_path) == NULL) {
        return 1;
    }
    char *made = kt_tmpdir_create();
    (void)snprintf(dir, sizeof(dir), "%s", made);
    int failures = cmocka_run_group_tests(on_fakes, NULL, NULL);
    write_file("probe.cl", "__kernel void probe(void) {}\n");
    const bool device = START(NULL, "probe", program_path, "opencl", "@probe.cl") != NO_DEVICE;
    failures += device ? cmocka_run_group_tests(on_opencl, NULL, NULL) : 0;
    kt_tmpdir_remove(made);
    if (failures == 0 && !device) {
        kn_test_skip("opencl", "no OpenCL device");
    }
    return failures;
}
