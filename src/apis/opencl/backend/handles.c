/* The kernels of a program, made: all that the driver lists, or those of a list where it must not
 * be asked for its own. */
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/opencl.h"
#include "apis/opencl/backend/status.h"
#include "base/diag.h"

#define MAX_KERNELS 4096u

static const char doing[] = "listing OpenCL kernels";

static kiln_status create_listed(const kn_opencl_site *site, cl_program program,
                                 cl_kernel **out_kernels, size_t *out_count, kiln_diag *diag)
{
    cl_uint count = 0;
    *out_kernels = NULL;
    *out_count = 0;
    cl_int code = site->api->clCreateKernelsInProgram(program, 0, NULL, &count);
    if (code != CL_SUCCESS) {
        return kn_opencl_fail(diag, doing, "clCreateKernelsInProgram", code);
    }
    if (count > MAX_KERNELS) {
        return kiln_diag_set(diag, KILN_E_INTERNAL, "update the OpenCL driver", doing,
                             "the driver counts %u kernels", (unsigned)count);
    }
    cl_kernel *made = calloc(count + 1u, sizeof(cl_kernel));
    if (made == NULL) {
        return kn_no_memory(diag, doing);
    }
    if (count > 0) {
        code = site->api->clCreateKernelsInProgram(program, count, made, NULL);
    }
    size_t given = 0;
    while (code == CL_SUCCESS && given < count && made[given] != NULL) {
        given++;
    }
    if (code == CL_SUCCESS && given == count) {
        *out_kernels = made;
        *out_count = count;
        return KILN_OK;
    }
    kn_opencl_handles_release(site->api, made, given);
    return code != CL_SUCCESS ? kn_opencl_fail(diag, doing, "clCreateKernelsInProgram", code)
                              : kiln_diag_set(diag, KILN_E_INTERNAL, "update the OpenCL driver",
                                              doing, "the driver counts %u kernels and gives %zu",
                                              (unsigned)count, given);
}

static size_t count_names(const char *names, size_t length)
{
    size_t count = 1;
    for (size_t i = 0; i < length; i++) {
        count += names[i] == ';';
    }
    return count;
}

kiln_status kn_opencl_handles_named(const kn_opencl_site *site, cl_program program,
                                    const char *names, size_t length, cl_kernel **out_kernels,
                                    size_t *out_count, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    cl_kernel *made = calloc(count_names(names, length), sizeof(cl_kernel));
    char *name = calloc(1, length + 1);
    size_t count = 0;
    if (made == NULL || name == NULL) {
        status = kn_no_memory(diag, doing);
    } else if (site->api->clCreateKernel == NULL) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, doing,
                               "the OpenCL library lacks clCreateKernel");
    }
    for (size_t at = 0; at < length && status == KILN_OK;) {
        const char *end = (const char *)memchr(names + at, ';', length - at);
        const size_t size = end != NULL ? (size_t)(end - names) - at : length - at;
        cl_int code = CL_SUCCESS;
        memcpy(name, names + at, size);
        name[size] = '\0';
        made[count] = site->api->clCreateKernel(program, name, &code);
        if (made[count] == NULL) {
            status = kiln_diag_set(diag, KILN_E_REJECTED, NULL, doing,
                                   "the driver does not find %.80s (%d)", name, (int)code);
        } else {
            count++;
        }
        at += size + 1;
    }
    free(name);
    if (status != KILN_OK) {
        kn_opencl_handles_release(site->api, made, count);
        made = NULL;
        count = 0;
    }
    *out_kernels = made;
    *out_count = count;
    return status;
}

kiln_status kn_opencl_handles_create(const kn_opencl_site *site, cl_program program,
                                     const char *names, size_t length, cl_kernel **out_kernels,
                                     size_t *out_count, kiln_diag *diag)
{
    kn_strbuf asked;
    const bool can_name = site->api->clCreateKernel != NULL;
    kn_strbuf_init(&asked, 0);
    if (names == NULL && can_name) {
        kn_nvidia_names(site, program, &asked);
        names = kn_strbuf_text(&asked);
        length = kn_strbuf_ok(&asked) ? asked.length : 0;
    }
    kiln_status status =
        can_name && !kn_nvidia_lists_kernels(site, length)
            ? kn_opencl_handles_named(site, program, names, length, out_kernels, out_count, diag)
            : create_listed(site, program, out_kernels, out_count, diag);
    kn_strbuf_deinit(&asked);
    return status;
}

void kn_opencl_handles_release(const kn_opencl_api *api, cl_kernel *kernels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)api->clReleaseKernel(kernels[i]);
    }
    free(kernels);
}
