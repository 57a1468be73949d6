/* dropin_cuda: level 2 with whatever NVRTC is here. What the cache gives is what NVRTC gave, byte
 * for byte (the binary, its size, the log, the lowered names), for each of a list of options, as
 * CUBIN and as PTX: from memory, from disk, from a pack. Where there is a GPU, the driver's answers
 * about the kernels and what they compute are compared, too. Exit 77 without NVRTC. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/cuda.h>

#include "conformance/dropin_rig.h"
#include "support/skip.h"
#include "support/tmpdir.h"

#define WORDS 32
#define ATTRIBUTES                                                                                 \
    32 /* more than there are: what a driver does not know it refuses, twice alike                 \
        */

/* cuda.h, as far as it is needed: not every machine has it. */
typedef int driver_result;
typedef struct driver_module *module_handle;
typedef struct driver_function *function_handle;
typedef struct driver_context *context_handle;
typedef uint64_t device_pointer;

static struct {
    driver_result (*cuInit)(unsigned flags);
    driver_result (*cuDeviceGet)(int *device, int ordinal);
    driver_result (*cuDeviceGetAttribute)(int *value, int attribute, int device);
    driver_result (*cuDevicePrimaryCtxRetain)(context_handle *context, int device);
    driver_result (*cuCtxPushCurrent_v2)(context_handle context);
    driver_result (*cuModuleLoadDataEx)(module_handle *module, const void *image, unsigned count,
                                        int *options, void **values);
    driver_result (*cuModuleUnload)(module_handle module);
    driver_result (*cuModuleGetFunction)(function_handle *function, module_handle module,
                                         const char *name);
    driver_result (*cuFuncGetAttribute)(int *value, int attribute, function_handle function);
    driver_result (*cuMemAlloc_v2)(device_pointer *pointer, size_t size);
    driver_result (*cuMemFree_v2)(device_pointer pointer);
    driver_result (*cuMemcpyHtoDAsync_v2)(device_pointer to, const void *from, size_t size,
                                          void *stream);
    driver_result (*cuMemcpyDtoHAsync_v2)(void *to, device_pointer from, size_t size, void *stream);
    driver_result (*cuStreamSynchronize)(void *stream);
    driver_result (*cuLaunchKernel)(function_handle function, unsigned grid_x, unsigned grid_y,
                                    unsigned grid_z, unsigned block_x, unsigned block_y,
                                    unsigned block_z, unsigned shared, void *stream, void **params,
                                    void **extra);
} cu;

static bool has_gpu;
static unsigned capability = 90; /* of the GPU, or of one that every NVRTC here knows */

static bool open_driver(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL); /* never closed: it has threads */
    bool whole = lib != NULL;
#define FIND(name)                                                                                 \
    if (whole) {                                                                                   \
        void *symbol = dlsym(lib, #name);                                                          \
        memcpy(&cu.name, &symbol, sizeof(symbol));                                                 \
        whole = symbol != NULL;                                                                    \
    }
    FIND(cuInit)
    FIND(cuDeviceGet)
    FIND(cuDeviceGetAttribute)
    FIND(cuDevicePrimaryCtxRetain)
    FIND(cuCtxPushCurrent_v2)
    FIND(cuModuleLoadDataEx)
    FIND(cuModuleUnload)
    FIND(cuModuleGetFunction)
    FIND(cuFuncGetAttribute)
    FIND(cuMemAlloc_v2)
    FIND(cuMemFree_v2)
    FIND(cuMemcpyHtoDAsync_v2)
    FIND(cuMemcpyDtoHAsync_v2)
    FIND(cuStreamSynchronize)
    FIND(cuLaunchKernel)
#undef FIND
    enum { MAJOR = 75, MINOR = 76 };
    int device = 0, major = 0, minor = 0;
    context_handle context = NULL;
    if (!whole || cu.cuInit(0) != 0 || cu.cuDeviceGet(&device, 0) != 0 ||
        cu.cuDeviceGetAttribute(&major, MAJOR, device) != 0 ||
        cu.cuDeviceGetAttribute(&minor, MINOR, device) != 0 ||
        cu.cuDevicePrimaryCtxRetain(&context, device) != 0 ||
        cu.cuCtxPushCurrent_v2(context) != 0) {
        return false;
    }
    capability = (unsigned)(major * 10 + minor);
    return true;
}

/* --- everything that can be asked ------------------------------------------------------------- */

static void note_launch(FILE *out, function_handle sense)
{
    static const unsigned values[16] = {0x000002ca, 0x60ad78ec, 0x3f800800, 0x3f7ff000,
                                        0xbf800000, 0x7fc00000, 0x7f800000, 0x80000000,
                                        0x7149f2ca, 0x3f800000, 0x40400000, 0x3dcccccd};
    unsigned words[WORDS] = {0};
    device_pointer from = 0, to = 0;
    assert_int_equal(cu.cuMemAlloc_v2(&from, sizeof(values)), 0);
    assert_int_equal(cu.cuMemAlloc_v2(&to, sizeof(words)), 0);
    assert_int_equal(cu.cuMemcpyHtoDAsync_v2(from, values, sizeof(values), NULL), 0);
    assert_int_equal(cu.cuMemcpyHtoDAsync_v2(to, words, sizeof(words), NULL), 0);
    void *params[] = {&from, &to};
    assert_int_equal(cu.cuLaunchKernel(sense, 1, 1, 1, 8, 1, 1, 0, NULL, params, NULL), 0);
    assert_int_equal(cu.cuMemcpyDtoHAsync_v2(words, to, sizeof(words), NULL), 0);
    assert_int_equal(cu.cuStreamSynchronize(NULL), 0);
    for (size_t i = 0; i < WORDS; i++) {
        (void)fprintf(out, "word %zu: %08x\n", i, words[i]);
    }
    assert_int_equal(cu.cuMemFree_v2(from), 0);
    assert_int_equal(cu.cuMemFree_v2(to), 0);
}

static void note_driver(FILE *out, const kiln_nvrtc_result *result)
{
    module_handle module = NULL;
    const driver_result loaded = cu.cuModuleLoadDataEx(&module, result->binary, 0, NULL, NULL);
    (void)fprintf(out, "cuModuleLoadDataEx: %d\n", loaded);
    for (size_t i = 0; i <= result->lowered_count && loaded == 0; i++) {
        const char *name = i < result->lowered_count ? result->lowered[i] : "sense";
        function_handle function = NULL;
        const driver_result found = cu.cuModuleGetFunction(&function, module, name);
        (void)fprintf(out, "cuModuleGetFunction %s: %d\n", name, found);
        for (int j = 0; j < ATTRIBUTES && found == 0; j++) {
            int value = 0;
            const driver_result told = cu.cuFuncGetAttribute(&value, j, function);
            (void)fprintf(out, "cuFuncGetAttribute %d of %s: %d, %d\n", j, name, told, value);
        }
        if (found == 0 && strcmp(name, "sense") == 0) {
            note_launch(out, function);
        }
    }
    if (loaded == 0) {
        assert_int_equal(cu.cuModuleUnload(module), 0);
    }
}

static char *describe(void *user, kiln_cache *cache, bool first)
{
    const dropin_request *r = (const dropin_request *)user;
    const kiln_nvrtc_request asked = {.struct_size = sizeof(asked),
                                      .text = r->text,
                                      .name = "sense.cu",
                                      .options = r->options,
                                      .option_count = r->option_count,
                                      .expressions = dropin_expressions,
                                      .expression_count = 2};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_nvrtc_result *result = NULL;
    char *text = NULL;
    size_t size = 0;
    const kiln_status status = kiln_nvrtc_compile(cache, &asked, &result, &diag);
    if (status == KILN_E_UNAVAILABLE) {
        kn_test_skip("cuda", diag.why);
    }
    if (status != KILN_OK && first) {
        print_message("%s\n", diag.log != NULL ? diag.log : diag.why);
        kiln_diag_clear(&diag);
        return NULL;
    }
    assert_int_equal(status, KILN_OK);
    assert_int_equal(result->lowered_count, 2);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    (void)fprintf(out, "PTX: %d\nlog: %zu bytes\n", result->is_ptx, strlen(result->log));
    dropin_note_bytes(out, "log", result->log, strlen(result->log));
    for (size_t i = 0; i < 2; i++) {
        (void)fprintf(out, "%s: %s\n", dropin_expressions[i], result->lowered[i]);
    }
    dropin_note_bytes(out, "binary", result->binary, result->size);
    if (result->is_ptx) { /* its NUL, and its instructions to be looked at */
        (void)fprintf(out, "%s\n", (const char *)result->binary);
    }
    if (has_gpu) {
        note_driver(out, result);
    }
    kiln_nvrtc_result_destroy(result);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* --- the options ------------------------------------------------------------------------------ */

static char *dir;

/* What options do to NVRTC's PTX: one without effect would test nothing. */
static void check_effect(const char *option, const char *plain, const char *with)
{
    static const struct {
        const char *option, *gains;
    } rows[] = {
        {"--ftz=true", "mul.ftz.f32"},        {"--use_fast_math", "div.approx.ftz.f32"},
        {"--prec-div=false", "div.full.f32"}, {"--prec-sqrt=false", "sqrt.approx.f32"},
        {"--fmad=false", "mul.rn.f32"},       {"--generate-line-info", ".loc"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].option, option) == 0) {
            assert_string_not_equal(plain, with);
            assert_non_null(strstr(with, rows[i].gains));
        }
    }
}

static void a_hit_is_what_nvrtc_gave(void **state)
{
    char arch[48];
    (void)state;
    (void)snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%u", capability);
    (void)dropin_compare_options(dir, "cuda", arch, SIZE_MAX, 8, describe, NULL);
    (void)snprintf(arch, sizeof(arch), "--gpu-architecture=compute_%u", capability);
    (void)dropin_compare_options(dir, "cuda", arch, SIZE_MAX, 8, describe, check_effect);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_hit_is_what_nvrtc_gave)};
    dir = kt_tmpdir_create();
    has_gpu = open_driver();
    (void)printf("%s\n",
                 has_gpu ? "with a GPU's driver" : "without a GPU: what the compiler gives");
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kt_tmpdir_remove(dir);
    return failed;
}
