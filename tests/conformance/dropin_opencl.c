/* dropin_opencl: level 2 on every OpenCL platform that is here. A program from the cache answers
 * every query of OpenCL as the program that was compiled did, and computes the same, for each of a
 * list of options: from memory, from disk, from a pack. What a driver cannot give back from a
 * binary is listed here, and in docs/use/drop-ins.md; anything else that is lost fails. Exit 77
 * without a platform. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <kiln/opencl.h>
#include <kiln/unstable/pocl.h>

#include "conformance/dropin_rig.h"
#include "conformance/options.h"
#include "support/skip.h"
#include "support/tmpdir.h"

#define WORDS 32
#define FUNCTIONS(X)                                                                               \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clGetProgramInfo)                                                                            \
    X(clGetProgramBuildInfo)                                                                       \
    X(clReleaseProgram)                                                                            \
    X(clCreateKernel)                                                                              \
    X(clReleaseKernel)                                                                             \
    X(clGetKernelInfo)                                                                             \
    X(clGetKernelArgInfo)                                                                          \
    X(clGetKernelWorkGroupInfo)                                                                    \
    X(clSetKernelArg)                                                                              \
    X(clCreateBuffer)                                                                              \
    X(clReleaseMemObject)                                                                          \
    X(clCreateCommandQueue)                                                                        \
    X(clReleaseCommandQueue)                                                                       \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueReadBuffer)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} cl;

/* What is lost, by the beginning of the query's name; platform "": by every driver. */
static const struct {
    const char *platform, *query;
} losses[] = {
    {"", "CL_PROGRAM_SOURCE"},
    {"", "CL_PROGRAM_BUILD_LOG"},
    {"Portable Computing Language", "CL_KERNEL_ATTRIBUTES"},
    {"NVIDIA", "CL_KERNEL_ARG_"},
};

static struct {
    const char *dir;
    char platform[256];
    cl_device_id device;
    cl_context context;
} site;

typedef struct request {
    const char *text, *options;
} request;

/* --- everything that can be asked ------------------------------------------------------------- */

typedef struct query {
    unsigned name;
    const char *text;
    bool is_text;
} query;
#define NUMBER(name)                                                                               \
    {                                                                                              \
        name, #name, false                                                                         \
    }
#define TEXT(name)                                                                                 \
    {                                                                                              \
        name, #name, true                                                                          \
    }

#define WIDEST 24 /* bytes of a number: three size_t */

/* What the next query writes to. Drivers differ in whether they say how much that was. */
static unsigned char value[65536];

static void *cleared(void)
{
    memset(value, 0, sizeof(value));
    return value;
}

static void note(FILE *out, const query *q, const char *of, cl_int code)
{
    (void)fprintf(out, "%s%s: ", q->text, of);
    if (code != CL_SUCCESS) {
        (void)fprintf(out, "error %d", code);
    }
    for (size_t i = 0; code == CL_SUCCESS && (q->is_text ? value[i] != '\0' : i < WIDEST); i++) {
        if (q->is_text) {
            (void)fputc(value[i] == '\n' ? '|' : value[i], out);
        } else {
            (void)fprintf(out, "%02x", value[i]);
        }
    }
    (void)fputc('\n', out);
}

static void ask_program(FILE *out, cl_program program)
{
    static const query of_program[] = {NUMBER(CL_PROGRAM_NUM_DEVICES), TEXT(CL_PROGRAM_SOURCE),
                                       NUMBER(CL_PROGRAM_NUM_KERNELS),
                                       TEXT(CL_PROGRAM_KERNEL_NAMES)};
    static const query of_build[] = {
        NUMBER(CL_PROGRAM_BUILD_STATUS), TEXT(CL_PROGRAM_BUILD_OPTIONS), TEXT(CL_PROGRAM_BUILD_LOG),
        NUMBER(CL_PROGRAM_BINARY_TYPE), NUMBER(CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE)};
    for (size_t i = 0; i < sizeof(of_program) / sizeof(of_program[0]); i++) {
        const query *q = &of_program[i];
        note(out, q, "", cl.clGetProgramInfo(program, q->name, sizeof(value) - 1, cleared(), NULL));
    }
    for (size_t i = 0; i < sizeof(of_build) / sizeof(of_build[0]); i++) {
        const query *q = &of_build[i];
        note(out, q, "",
             cl.clGetProgramBuildInfo(program, site.device, q->name, sizeof(value) - 1, cleared(),
                                      NULL));
    }
}

static void ask_args(FILE *out, cl_kernel kernel, const char *name)
{
    static const query of_arg[] = {NUMBER(CL_KERNEL_ARG_ADDRESS_QUALIFIER),
                                   NUMBER(CL_KERNEL_ARG_ACCESS_QUALIFIER),
                                   TEXT(CL_KERNEL_ARG_TYPE_NAME),
                                   NUMBER(CL_KERNEL_ARG_TYPE_QUALIFIER), TEXT(CL_KERNEL_ARG_NAME)};
    cl_uint count = 0;
    assert_int_equal(cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL),
                     CL_SUCCESS);
    for (cl_uint i = 0; i < count * 5; i++) {
        char of[64];
        const query *q = &of_arg[i % 5];
        (void)snprintf(of, sizeof(of), " of %s, %u", name, i / 5);
        note(out, q, of,
             cl.clGetKernelArgInfo(kernel, i / 5, q->name, sizeof(value) - 1, cleared(), NULL));
    }
}

static void ask_kernel(FILE *out, cl_program program, const char *name)
{
    static const query of_kernel[] = {TEXT(CL_KERNEL_FUNCTION_NAME), NUMBER(CL_KERNEL_NUM_ARGS),
                                      TEXT(CL_KERNEL_ATTRIBUTES)};
    static const query of_group[] = {
        NUMBER(CL_KERNEL_WORK_GROUP_SIZE), NUMBER(CL_KERNEL_COMPILE_WORK_GROUP_SIZE),
        NUMBER(CL_KERNEL_LOCAL_MEM_SIZE), NUMBER(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
        NUMBER(CL_KERNEL_PRIVATE_MEM_SIZE)};
    char of[64];
    cl_int code = CL_SUCCESS;
    (void)snprintf(of, sizeof(of), " of %s", name);
    cl_kernel kernel = cl.clCreateKernel(program, name, &code);
    assert_int_equal(code, CL_SUCCESS);
    for (size_t i = 0; i < sizeof(of_kernel) / sizeof(of_kernel[0]); i++) {
        const query *q = &of_kernel[i];
        note(out, q, of, cl.clGetKernelInfo(kernel, q->name, sizeof(value) - 1, cleared(), NULL));
    }
    for (size_t i = 0; i < sizeof(of_group) / sizeof(of_group[0]); i++) {
        const query *q = &of_group[i];
        code = cl.clGetKernelWorkGroupInfo(kernel, site.device, q->name, sizeof(value) - 1,
                                           cleared(), NULL);
        note(out, q, of, code);
    }
    ask_args(out, kernel, name);
    (void)cl.clReleaseKernel(kernel);
}

static void run_sense(FILE *out, cl_program program)
{
    static unsigned values[16] = {0x000002ca, 0x60ad78ec, 0x3f800800, 0x3f7ff000,
                                  0xbf800000, 0x7fc00000, 0x7f800000, 0x80000000,
                                  0x7149f2ca, 0x3f800000, 0x40400000, 0x3dcccccd};
    unsigned words[WORDS] = {0};
    const size_t items = 8;
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = cl.clCreateKernel(program, "sense", &code);
    cl_command_queue queue = cl.clCreateCommandQueue(site.context, site.device, 0, &code);
    cl_mem in =
        cl.clCreateBuffer(site.context, CL_MEM_COPY_HOST_PTR, sizeof(values), values, &code);
    cl_mem to = cl.clCreateBuffer(site.context, CL_MEM_COPY_HOST_PTR, sizeof(words), words, &code);
    code |= cl.clSetKernelArg(kernel, 0, sizeof(cl_mem), (const void *)&in);
    code |= cl.clSetKernelArg(kernel, 1, sizeof(cl_mem), (const void *)&to);
    code |= cl.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL);
    code |= cl.clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof(words), words, 0, NULL, NULL);
    assert_int_equal(code, CL_SUCCESS);
    for (size_t i = 0; i < WORDS; i++) {
        (void)fprintf(out, "word %zu: %08x\n", i, words[i]);
    }
    (void)cl.clReleaseMemObject(to);
    (void)cl.clReleaseMemObject(in);
    (void)cl.clReleaseCommandQueue(queue);
    (void)cl.clReleaseKernel(kernel);
}

static char *describe(void *user, kiln_cache *cache, bool first)
{
    const request *r = (const request *)user;
    kiln_diag diag = KILN_DIAG_INIT;
    cl_program program = NULL;
    char *text = NULL;
    size_t size = 0;
    kiln_status status = kiln_opencl_build_program(cache, site.context, site.device, r->text,
                                                   r->options, &program, &diag);
    kiln_diag_clear(&diag);
    if (status != KILN_OK && first) {
        return NULL;
    }
    assert_int_equal(status, KILN_OK);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    ask_program(out, program);
    ask_kernel(out, program, "sense");
    ask_kernel(out, program, "fixed");
    run_sense(out, program);
    assert_int_equal(fclose(out), 0);
    if (first) { /* PoCL's binary is read late; others have stored it, and say so */
        status = kiln_opencl_capture_program(cache, program, NULL);
        assert_true(status == KILN_OK || status == KILN_MISS);
    }
    (void)cl.clReleaseProgram(program);
    return text;
}

/* --- comparing -------------------------------------------------------------------------------- */

static bool lost[sizeof(losses) / sizeof(losses[0])]; /* seen on this platform */

static bool may_be_lost(void *user, const char *line)
{
    (void)user;
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        if (strstr(site.platform, losses[i].platform) != NULL &&
            strncmp(line, losses[i].query, strlen(losses[i].query)) == 0) {
            lost[i] = true;
            return true;
        }
    }
    return false;
}

/* --- platforms -------------------------------------------------------------------------------- */

static void a_hit_answers_as_the_compile_did(void **state)
{
    const char *const *options = conformance_options("opencl");
    size_t taken = 0;
    (void)state;
    char *text = kt_file_read(KILN_CONFORMANCE_DIR "/kernels/sense.cl", NULL);
    assert_non_null(text);
    for (size_t i = 0; options[i] != NULL; i++) {
        char name[32];
        request r = {text, options[i]};
        (void)snprintf(name, sizeof(name), "%zu", i);
        const dropin_case one = {site.dir, name, options[i], describe, may_be_lost, &r};
        if (dropin_compare(&one, NULL)) {
            taken++;
        } else {
            print_message("not taken: %s\n", options[i]);
        }
    }
    assert_true(taken >= 8);
    free(text);
}

static int test_platform(cl_platform_id platform)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_hit_answers_as_the_compile_did)};
    cl_int code = CL_SUCCESS;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &site.device, NULL) != CL_SUCCESS ||
        cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(site.platform), site.platform,
                             NULL) != CL_SUCCESS) {
        return 0;
    }
    site.context = cl.clCreateContext(NULL, 1, &site.device, NULL, NULL, &code);
    if (site.context == NULL) {
        return 1;
    }
    char *dir = kt_tmpdir_create();
    site.dir = dir;
    (void)printf("%s\n", site.platform);
    const int failed = _cmocka_run_group_tests(site.platform, tests, 1, NULL, NULL);
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        if (lost[i]) {
            (void)printf("lost with a binary of %s: %s\n", site.platform, losses[i].query);
        }
        lost[i] = false;
    }
    (void)cl.clReleaseContext(site.context);
    kt_tmpdir_remove(dir);
    return failed;
}

static bool open_library(void)
{
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL);
    bool whole = lib != NULL;
#define FIND(name)                                                                                 \
    if (whole) {                                                                                   \
        void *symbol = dlsym(lib, #name);                                                          \
        memcpy(&cl.name, &symbol, sizeof(symbol));                                                 \
        whole = symbol != NULL;                                                                    \
    }
    FUNCTIONS(FIND)
#undef FIND
    return whole; /* never closed: drivers have threads */
}

int main(void)
{
    cl_platform_id platforms[16] = {NULL};
    cl_uint count = 0;
    int failed = 0;
    if (!open_library() || cl.clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS || count == 0) {
        kn_test_skip("opencl", "no OpenCL platform");
    }
    for (cl_uint i = 0; i < count && i < 16; i++) {
        failed += test_platform(platforms[i]);
    }
    return failed != 0;
}
