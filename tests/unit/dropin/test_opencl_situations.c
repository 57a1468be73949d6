/* The situations of tests/unit/engine/situations.c, for OpenCL programs, on fake drivers. */
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/symbols.h"
#include "base/text.h"
#include "kiln/opencl.h"
#include "support/fakecl/fakecl.h"
#include "support/tmpdir.h"
#include "unit/engine/situations.h"

/* --- the driver ------------------------------------------------------------------------------- */

static kn_opencl_api calls;
static cl_device_id own_devices[2]; /* which are one, twice */
static cl_uint device_count;        /* that a program is for */
static cl_context own_context;

/* What it does next. */
static struct {
    _Atomic bool is_pocl, includes; /* until the row ends; the others until a compile ends */
    _Atomic bool fails, unreadable, odd;
    _Atomic cl_int loads; /* the error of a load */
    _Atomic unsigned compiles;
    void (*_Atomic during)(void);
} real;

static cl_int CL_API_CALL spy_build(cl_program program, cl_uint count, const cl_device_id *devices,
                                    const char *options,
                                    void(CL_CALLBACK *notify)(cl_program program, void *user),
                                    void *user)
{
    if (!program->from_binary) {
        void (*during)(void) = atomic_exchange(&real.during, NULL);
        real.compiles++;
        if (during != NULL) {
            during();
        }
        if (real.fails) {
            return CL_BUILD_PROGRAM_FAILURE;
        }
    }
    return calls.clBuildProgram(program, count, devices, options, notify, user);
}

static cl_program CL_API_CALL spy_load(cl_context context, cl_uint count,
                                       const cl_device_id *devices, const size_t *lengths,
                                       const unsigned char **binaries, cl_int *statuses,
                                       cl_int *code)
{
    const cl_int error = atomic_exchange(&real.loads, CL_SUCCESS);
    if (error != CL_SUCCESS) {
        *statuses = error;
        *code = error;
        return NULL;
    }
    return calls.clCreateProgramWithBinary(context, count, devices, lengths, binaries, statuses,
                                           code);
}

static cl_int CL_API_CALL spy_info(cl_program program, cl_program_info name, size_t size,
                                   void *value, size_t *out_size)
{
    return name == CL_PROGRAM_BINARIES && real.unreadable
               ? CL_OUT_OF_RESOURCES
               : calls.clGetProgramInfo(program, name, size, value, out_size);
}

static cl_int CL_API_CALL spy_platform(cl_platform_id platform, cl_platform_info name, size_t size,
                                       void *value, size_t *out_size)
{
    static const char pocl[] = "Portable Computing Language";
    if (name != CL_PLATFORM_NAME || !real.is_pocl) {
        return calls.clGetPlatformInfo(platform, name, size, value, out_size);
    }
    if (value != NULL) {
        assert_true(size >= sizeof(pocl));
        memcpy(value, pocl, sizeof(pocl));
    }
    if (out_size != NULL) {
        *out_size = sizeof(pocl);
    }
    return CL_SUCCESS;
}

kiln_status __real_kn_opencl_library_open(kn_dylib **out_lib, kn_opencl_api *api, char *path,
                                          size_t path_size, kiln_probe_outcome *out_outcome,
                                          kiln_diag *diag);
kiln_status __wrap_kn_opencl_library_open(kn_dylib **out_lib, kn_opencl_api *api, char *path,
                                          size_t path_size, kiln_probe_outcome *out_outcome,
                                          kiln_diag *diag);

kiln_status __wrap_kn_opencl_library_open(kn_dylib **out_lib, kn_opencl_api *api, char *path,
                                          size_t path_size, kiln_probe_outcome *out_outcome,
                                          kiln_diag *diag)
{
    const kiln_status status =
        __real_kn_opencl_library_open(out_lib, api, path, path_size, out_outcome, diag);
    if (status == KILN_OK) {
        api->clGetPlatformInfo = spy_platform;
        api->clBuildProgram = spy_build;
        api->clCreateProgramWithBinary = spy_load;
        api->clGetProgramInfo = spy_info;
    }
    return status;
}

static int open_driver(void **state)
{
    static kn_dylib *lib;
    char path[512];
    kiln_probe_outcome outcome;
    cl_platform_id platform = NULL;
    cl_int code = CL_SUCCESS;
    (void)state;
    assert_int_equal(
        __real_kn_opencl_library_open(&lib, &calls, path, sizeof(path), &outcome, NULL), KILN_OK);
    assert_int_equal(calls.clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
    assert_int_equal(calls.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, own_devices, NULL),
                     CL_SUCCESS);
    own_context = calls.clCreateContext(NULL, 1, own_devices, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    own_devices[1] = own_devices[0];
    return 0;
}

/* --- a program -------------------------------------------------------------------------------- */

static kiln_cache *cache_now;
static char *header, options[4096];

static void begin(const char *dir)
{
    memset(&real, 0, sizeof(real));
    header = kt_path(dir, "value.h");
    kn_text_putf(options, sizeof(options), "-I%s", dir);
    kt_file_write(header, "#define VALUE 1\n", 16);
}

static void end(void)
{
    free(header);
}

static void use_cache(kiln_cache *cache)
{
    cache_now = cache;
}

static void compile_program(bool other)
{
    const char *text = other           ? "__kernel void k(void) { another(); }\n"
                       : real.includes ? "#include \"value.h\"\n"
                                       : "__kernel void k(void) {}\n";
    const kiln_status expected = real.fails                            ? KILN_E_COMPILE
                                 : real.loads == CL_OUT_OF_HOST_MEMORY ? KILN_E_NOMEM
                                                                       : KILN_OK;
    const kiln_opencl_unit unit = {.struct_size = sizeof(unit),
                                   .strings = &text,
                                   .string_count = 1,
                                   .options = real.odd ? "-DWHEN=__TIME__" : options};
    const kiln_opencl_request request = {.struct_size = sizeof(request),
                                         .context = own_context,
                                         .devices = own_devices,
                                         .device_count = device_count,
                                         .units = &unit,
                                         .unit_count = 1};
    cl_program program = NULL;
    assert_int_equal(kiln_opencl_build(cache_now, &request, &program, NULL), expected);
    assert_int_equal(program != NULL, expected == KILN_OK);
    if (program != NULL) {
        assert_string_equal(program->text, text);
        assert_int_equal(calls.clReleaseProgram(program), CL_SUCCESS);
    }
    real.fails = false;
    real.unreadable = false;
    real.odd = false;
}

static unsigned count_compiles(void)
{
    return real.compiles;
}

static void call_during(void (*call)(void))
{
    real.during = call;
}

/* --- events ----------------------------------------------------------------------------------- */

static void refuse_load(void)
{
    real.loads = CL_INVALID_BINARY;
}

static void lack_memory(void)
{
    real.loads = CL_OUT_OF_HOST_MEMORY;
}

static void write_header(void)
{
    kt_file_write(header, "#define VALUE 200\n", 18);
}

static void change_header(void)
{
    real.includes = true;
    real.during = write_header;
}

static const kt_frontend opencl = {
    .name = "opencl",
    .target = "opencl-fake-platform-fake-device-r-3000",
    .begin = begin,
    .end = end,
    .use = use_cache,
    .compile = compile_program,
    .compiles = count_compiles,
    .during = call_during,
    .events =
        {[KT_REFUSES] = refuse_load, [KT_LOAD_FAILS] = lack_memory, [KT_HEADER] = change_header},
    .flags = {[KT_PRIVATE] = &real.unreadable,
              [KT_FAILS] = &real.fails,
              [KT_BYPASSES] = &real.odd,
              [KT_DEFERS] = &real.is_pocl},
    .impossible = {[KT_COMPILER] = "the key has the build ids of what the process has mapped",
                   [KT_UNSOUND] = "only the driver knows a binary, and refuses what is none"}};

static void opencl_passes_every_situation(void **state)
{
    (void)state;
    device_count = 1;
    kt_check_situations(&opencl);
}

/* Their binaries lie in a frame, which kiln itself can find to be none. */
static void opencl_for_two_devices_passes_every_situation(void **state)
{
    (void)state;
    kt_frontend two = opencl;
    two.name = "opencl for two devices";
    two.impossible[KT_UNSOUND] = NULL;
    two.impossible[KT_RECORDS] = "a recording has programs for one device";
    device_count = 2;
    kt_check_situations(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opencl_passes_every_situation),
        cmocka_unit_test(opencl_for_two_devices_passes_every_situation),
    };
    return cmocka_run_group_tests(tests, open_driver, NULL);
}
