/* Programs from source, from binaries, and back to binaries, for one device of any context. Knows
 * the driver's calls; neither artifacts nor kernels. */
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/opencl.h"
#include "apis/opencl/backend/options.h"
#include "apis/opencl/backend/status.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"

#define LOG_LIMIT ((size_t)16 << 20)
#define BINARY_LIMIT ((size_t)1 << 30)
#define DEVICE_LIMIT 256u

/* The build log without blank lines at its end; NULL when there is nothing to read. */
char *kn_opencl_build_log(const kn_opencl_site *site, cl_program program)
{
    const kn_opencl_api *api = site->api;
    size_t size = 0;
    if (api->clGetProgramBuildInfo(program, site->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) !=
            CL_SUCCESS ||
        size <= 1 || size > LOG_LIMIT) {
        return NULL;
    }
    char *log = calloc(1, size + 1);
    if (log == NULL || api->clGetProgramBuildInfo(program, site->device, CL_PROGRAM_BUILD_LOG, size,
                                                  log, NULL) != CL_SUCCESS) {
        free(log);
        return NULL;
    }
    size_t length = strlen(log);
    while (length > 0 && strchr(" \t\r\n", log[length - 1]) != NULL) {
        log[--length] = '\0';
    }
    if (length == 0) {
        free(log);
        return NULL;
    }
    return log;
}

static cl_program create_program(const kn_opencl_site *site, kiln_language language,
                                 const void *text, size_t length, const char **out_call,
                                 cl_int *out_code)
{
    if (language == KILN_LANG_SPIRV) {
        *out_call = "clCreateProgramWithIL";
        return site->api->clCreateProgramWithIL(site->context, text, length, out_code);
    }
    const char *string = (const char *)text;
    *out_call = "clCreateProgramWithSource";
    return site->api->clCreateProgramWithSource(site->context, 1, &string, &length, out_code);
}

static kiln_status fail_build(kiln_diag *diag, cl_int code, const char *log)
{
    kiln_status status =
        kn_opencl_fail(diag, "compiling an OpenCL program", "clBuildProgram", code);
    if (diag != NULL && status == KILN_E_COMPILE && log != NULL) {
        kiln_diag_set_log(diag, log, strlen(log));
    }
    return status;
}

/* One build. *out_code is what clBuildProgram said, *out_log what there is to read of it. */
static kiln_status build_once(const kn_opencl_site *site, kiln_language language, const void *text,
                              size_t length, const char *options, cl_program *out_program,
                              char **out_log, cl_int *out_code, kiln_diag *diag)
{
    const char *call = NULL;
    cl_int code = CL_SUCCESS;
    *out_log = NULL;
    *out_program = NULL;
    cl_program program = create_program(site, language, text, length, &call, &code);
    if (program == NULL || code != CL_SUCCESS) {
        *out_code = CL_SUCCESS;
        return kn_opencl_fail(diag, "making an OpenCL program", call, code);
    }
    *out_code = site->api->clBuildProgram(program, 1, &site->device, options, NULL, NULL);
    *out_log = kn_opencl_build_log(site, program);
    *out_program = program;
    return KILN_OK;
}

kiln_status kn_opencl_build_source(const kn_opencl_site *site, kiln_language language,
                                   const void *text, size_t length, const char *options,
                                   cl_program *out_program, char **out_log, kiln_diag *diag)
{
    cl_int code = CL_SUCCESS;
    cl_program program = NULL;
    char *log = NULL;
    *out_log = NULL;
    kiln_status status =
        build_once(site, language, text, length, options, &program, &log, &code, diag);
    if (status == KILN_OK && code == CL_BUILD_PROGRAM_FAILURE && log == NULL) {
        /* A source at fault has its errors in the log. PoCL prints nothing when two processes
         * work in its own cache directory; the second time it finds what the other made. */
        kn_log(KILN_LOG_INFO, "the OpenCL driver failed to build and gave no reason: trying again");
        (void)site->api->clReleaseProgram(program);
        status = build_once(site, language, text, length, options, &program, &log, &code, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    if (code != CL_SUCCESS) {
        status = fail_build(diag, code, log);
        free(log);
        (void)site->api->clReleaseProgram(program);
        return status;
    }
    *out_program = program;
    *out_log = log;
    return KILN_OK;
}

/* A driver that refuses options of the front end with a binary gets the others. */
static cl_int build_loaded(const kn_opencl_site *site, cl_program program, const char *options)
{
    cl_int code = site->api->clBuildProgram(program, 1, &site->device, options, NULL, NULL);
    if (code == CL_SUCCESS) {
        return code;
    }
    kn_strbuf fewer;
    kn_strbuf_init(&fewer, 0);
    kn_opencl_options_of_code(options, &fewer);
    if (kn_strbuf_ok(&fewer) && strcmp(kn_strbuf_text(&fewer), options) != 0) {
        code = site->api->clBuildProgram(program, 1, &site->device, kn_strbuf_text(&fewer), NULL,
                                         NULL);
    }
    kn_strbuf_deinit(&fewer);
    return code;
}

kiln_status kn_opencl_build_binary(const kn_opencl_site *site, bool is_pocl, const void *data,
                                   size_t size, const char *options, cl_program *out_program,
                                   kiln_diag *diag)
{
    const unsigned char *bytes = (const unsigned char *)data;
    cl_int binary_code = CL_SUCCESS;
    cl_int code = CL_SUCCESS;
    if (size == 0 || (is_pocl && !kn_pocl_binary_is_sound(data, size))) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "loading an OpenCL binary",
                             "the %zu bytes are not a complete binary", size);
    }
    cl_program program = site->api->clCreateProgramWithBinary(site->context, 1, &site->device,
                                                              &size, &bytes, &binary_code, &code);
    if (program == NULL || code != CL_SUCCESS || binary_code != CL_SUCCESS) {
        if (program != NULL) {
            (void)site->api->clReleaseProgram(program);
        }
        return kn_opencl_fail_load(diag, "clCreateProgramWithBinary",
                                   code != CL_SUCCESS ? code : binary_code);
    }
    code = build_loaded(site, program, options);
    if (code != CL_SUCCESS) {
        (void)site->api->clReleaseProgram(program);
        return kn_opencl_fail_load(diag, "clBuildProgram", code);
    }
    *out_program = program;
    return KILN_OK;
}

/* Which of `count` binaries is the site's. PoCL lists only the devices that were built for. */
static kiln_status find_device(const kn_opencl_site *site, cl_program program, size_t count,
                               size_t *out_index, kiln_diag *diag)
{
    cl_device_id devices[DEVICE_LIMIT] = {NULL};
    *out_index = 0;
    if (count == 1) {
        return KILN_OK;
    }
    cl_int code =
        site->api->clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(devices), devices, NULL);
    for (size_t i = 0; i < count && code == CL_SUCCESS; i++) {
        if (devices[i] == site->device) {
            *out_index = i;
            return KILN_OK;
        }
    }
    if (code != CL_SUCCESS) {
        return kn_opencl_fail(diag, "reading an OpenCL binary", "clGetProgramInfo", code);
    }
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "update the OpenCL driver",
                         "reading an OpenCL binary",
                         "the driver lists %zu devices, and not the one built for", count);
}

char *kn_opencl_program_names(const kn_opencl_api *api, cl_program program)
{
    size_t size = 0;
    if (api->clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size) != CL_SUCCESS ||
        size == 0) {
        return NULL;
    }
    char *names = calloc(1, size + 1);
    if (names != NULL &&
        api->clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, size, names, NULL) != CL_SUCCESS) {
        free(names);
        names = NULL;
    }
    return names;
}

/* One buffer for each device: some drivers write all of them, asked or not. */
static kiln_status read_all(const kn_opencl_site *site, cl_program program, const size_t *sizes,
                            size_t count, unsigned char **binaries, kiln_diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] > BINARY_LIMIT) {
            return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "reading an OpenCL binary",
                                 "the driver reports a size of %zu bytes", sizes[i]);
        }
        /* Zeros: what a driver leaves out of a size that is too large is not of this process. */
        binaries[i] = sizes[i] > 0 ? calloc(1, sizes[i]) : NULL;
        if (sizes[i] > 0 && binaries[i] == NULL) {
            return kn_no_memory(diag, "reading an OpenCL binary");
        }
    }
    cl_int code = site->api->clGetProgramInfo(program, CL_PROGRAM_BINARIES,
                                              count * sizeof(*binaries), binaries, NULL);
    if (code != CL_SUCCESS) {
        return kn_opencl_fail(diag, "reading an OpenCL binary", "clGetProgramInfo", code);
    }
    return KILN_OK;
}

kiln_status kn_opencl_read_binary(const kn_opencl_site *site, cl_program program, void **out_data,
                                  size_t *out_size, kiln_diag *diag)
{
    size_t sizes[DEVICE_LIMIT] = {0};
    unsigned char *binaries[DEVICE_LIMIT] = {NULL};
    size_t bytes = 0, index = 0;
    *out_data = NULL;
    *out_size = 0;
    cl_int code =
        site->api->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, &bytes);
    if (code != CL_SUCCESS) {
        return kn_opencl_fail(diag, "reading an OpenCL binary", "clGetProgramInfo", code);
    }
    if (bytes < sizeof(size_t) || bytes > sizeof(sizes) || bytes % sizeof(size_t) != 0) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "update the OpenCL driver",
                             "reading an OpenCL binary",
                             "the driver lists the sizes of its binaries in %zu bytes", bytes);
    }
    const size_t count = bytes / sizeof(size_t);
    kiln_status status = find_device(site, program, count, &index, diag);
    if (status == KILN_OK && sizes[index] > 0) {
        status = read_all(site, program, sizes, count, binaries, diag);
    }
    if (status == KILN_OK) {
        *out_data = binaries[index];
        *out_size = binaries[index] != NULL ? sizes[index] : 0;
        binaries[index] = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        free(binaries[i]);
    }
    return status;
}
