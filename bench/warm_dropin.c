/* A start on OpenCL with kiln in place of clBuildProgram. */
#include "bench/warm_opencl.h"

#include <kiln/opencl.h>
#include <kiln/unstable/pocl.h>

#include "bench/warm.h"

static cl_int build_through_kiln(cl_context context, cl_device_id device, cl_program *out_program)
{
    return kiln_opencl_build_program(NULL, context, device, warm_opencl_text, "", out_program,
                                     NULL) == KILN_OK
               ? CL_SUCCESS
               : CL_BUILD_PROGRAM_FAILURE;
}

static void keep_binary(cl_context context, cl_device_id device)
{
    if (kiln_opencl_capture(NULL, context, device, warm_opencl_text, "", NULL) != KILN_OK) {
        /* nothing to keep: a hit has it all, and other drivers than PoCL need none */
    }
}

bool warm_opencl_dropin(void)
{
    return warm_opencl_from(build_through_kiln, keep_binary);
}
