/* One table of error codes; nothing else. */
#include "apis/opencl/backend/status.h"

/* X(name, value, status). Codes of extensions are written as numbers: their headers come and go. */
#define ERRORS(X)                                                                                  \
    X(CL_SUCCESS, 0, KILN_OK)                                                                      \
    X(CL_DEVICE_NOT_FOUND, -1, KILN_E_UNAVAILABLE)                                                 \
    X(CL_DEVICE_NOT_AVAILABLE, -2, KILN_E_UNAVAILABLE)                                             \
    X(CL_COMPILER_NOT_AVAILABLE, -3, KILN_E_UNAVAILABLE)                                           \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, -4, KILN_E_NOMEM)                                          \
    X(CL_OUT_OF_RESOURCES, -5, KILN_E_NOMEM)                                                       \
    X(CL_OUT_OF_HOST_MEMORY, -6, KILN_E_NOMEM)                                                     \
    X(CL_PROFILING_INFO_NOT_AVAILABLE, -7, KILN_E_UNSUPPORTED)                                     \
    X(CL_MEM_COPY_OVERLAP, -8, KILN_E_INVALID)                                                     \
    X(CL_IMAGE_FORMAT_MISMATCH, -9, KILN_E_INVALID)                                                \
    X(CL_IMAGE_FORMAT_NOT_SUPPORTED, -10, KILN_E_UNSUPPORTED)                                      \
    X(CL_BUILD_PROGRAM_FAILURE, -11, KILN_E_COMPILE)                                               \
    X(CL_MAP_FAILURE, -12, KILN_E_NOMEM)                                                           \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET, -13, KILN_E_INVALID)                                        \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14, KILN_E_DEVICE_LOST)                       \
    X(CL_COMPILE_PROGRAM_FAILURE, -15, KILN_E_COMPILE)                                             \
    X(CL_LINKER_NOT_AVAILABLE, -16, KILN_E_UNAVAILABLE)                                            \
    X(CL_LINK_PROGRAM_FAILURE, -17, KILN_E_COMPILE)                                                \
    X(CL_DEVICE_PARTITION_FAILED, -18, KILN_E_UNAVAILABLE)                                         \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, -19, KILN_E_UNSUPPORTED)                                   \
    X(CL_INVALID_VALUE, -30, KILN_E_INVALID)                                                       \
    X(CL_INVALID_DEVICE_TYPE, -31, KILN_E_INVALID)                                                 \
    X(CL_INVALID_PLATFORM, -32, KILN_E_INVALID)                                                    \
    X(CL_INVALID_DEVICE, -33, KILN_E_INVALID)                                                      \
    X(CL_INVALID_CONTEXT, -34, KILN_E_INVALID)                                                     \
    X(CL_INVALID_QUEUE_PROPERTIES, -35, KILN_E_UNSUPPORTED)                                        \
    X(CL_INVALID_COMMAND_QUEUE, -36, KILN_E_INVALID)                                               \
    X(CL_INVALID_HOST_PTR, -37, KILN_E_INVALID)                                                    \
    X(CL_INVALID_MEM_OBJECT, -38, KILN_E_INVALID)                                                  \
    X(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, -39, KILN_E_INVALID)                                     \
    X(CL_INVALID_IMAGE_SIZE, -40, KILN_E_INVALID)                                                  \
    X(CL_INVALID_SAMPLER, -41, KILN_E_INVALID)                                                     \
    X(CL_INVALID_BINARY, -42, KILN_E_REJECTED)                                                     \
    X(CL_INVALID_BUILD_OPTIONS, -43, KILN_E_COMPILE)                                               \
    X(CL_INVALID_PROGRAM, -44, KILN_E_INVALID)                                                     \
    X(CL_INVALID_PROGRAM_EXECUTABLE, -45, KILN_E_INVALID)                                          \
    X(CL_INVALID_KERNEL_NAME, -46, KILN_E_INVALID)                                                 \
    X(CL_INVALID_KERNEL_DEFINITION, -47, KILN_E_INVALID)                                           \
    X(CL_INVALID_KERNEL, -48, KILN_E_INVALID)                                                      \
    X(CL_INVALID_ARG_INDEX, -49, KILN_E_INVALID)                                                   \
    X(CL_INVALID_ARG_VALUE, -50, KILN_E_INVALID)                                                   \
    X(CL_INVALID_ARG_SIZE, -51, KILN_E_INVALID)                                                    \
    X(CL_INVALID_KERNEL_ARGS, -52, KILN_E_INVALID)                                                 \
    X(CL_INVALID_WORK_DIMENSION, -53, KILN_E_INVALID)                                              \
    X(CL_INVALID_WORK_GROUP_SIZE, -54, KILN_E_INVALID)                                             \
    X(CL_INVALID_WORK_ITEM_SIZE, -55, KILN_E_INVALID)                                              \
    X(CL_INVALID_GLOBAL_OFFSET, -56, KILN_E_INVALID)                                               \
    X(CL_INVALID_EVENT_WAIT_LIST, -57, KILN_E_INVALID)                                             \
    X(CL_INVALID_EVENT, -58, KILN_E_INVALID)                                                       \
    X(CL_INVALID_OPERATION, -59, KILN_E_INVALID)                                                   \
    X(CL_INVALID_GL_OBJECT, -60, KILN_E_INVALID)                                                   \
    X(CL_INVALID_BUFFER_SIZE, -61, KILN_E_NOMEM)                                                   \
    X(CL_INVALID_MIP_LEVEL, -62, KILN_E_INVALID)                                                   \
    X(CL_INVALID_GLOBAL_WORK_SIZE, -63, KILN_E_INVALID)                                            \
    X(CL_INVALID_PROPERTY, -64, KILN_E_INVALID)                                                    \
    X(CL_INVALID_IMAGE_DESCRIPTOR, -65, KILN_E_INVALID)                                            \
    X(CL_INVALID_COMPILER_OPTIONS, -66, KILN_E_COMPILE)                                            \
    X(CL_INVALID_LINKER_OPTIONS, -67, KILN_E_COMPILE)                                              \
    X(CL_INVALID_DEVICE_PARTITION_COUNT, -68, KILN_E_INVALID)                                      \
    X(CL_INVALID_PIPE_SIZE, -69, KILN_E_INVALID)                                                   \
    X(CL_INVALID_DEVICE_QUEUE, -70, KILN_E_INVALID)                                                \
    X(CL_INVALID_SPEC_ID, -71, KILN_E_INVALID)                                                     \
    X(CL_MAX_SIZE_RESTRICTION_EXCEEDED, -72, KILN_E_INVALID)                                       \
    X(CL_PLATFORM_NOT_FOUND_KHR, -1001, KILN_E_UNAVAILABLE)                                        \
    X(NVIDIA_ILLEGAL_BUFFER_READ_OR_WRITE, -9999, KILN_E_DEVICE_LOST)

typedef struct error_row {
    const char *name;
    cl_int code;
    kiln_status status;
} error_row;

static const error_row errors[] = {
#define ROW(name, value, status) {#name, value, status},
    ERRORS(ROW)
#undef ROW
};

static const error_row *find_error(cl_int code)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].code == code) {
            return &errors[i];
        }
    }
    return NULL;
}

const char *kn_opencl_error_name(cl_int code)
{
    const error_row *row = find_error(code);
    return row != NULL ? row->name : "unknown error";
}

kiln_status kn_opencl_error_status(cl_int code)
{
    const error_row *row = find_error(code);
    return row != NULL ? row->status : KILN_E_INTERNAL;
}

static const char *fix_of(kiln_status status)
{
    switch (status) {
    case KILN_E_NOMEM:
        return "use smaller buffers, or close what else uses the device";
    case KILN_E_DEVICE_LOST:
        return "check the kernel's indices; create the runtime again";
    case KILN_E_UNAVAILABLE:
        return "run `kiln doctor`";
    default:
        return NULL;
    }
}

static kiln_status fail_with(kiln_diag *diag, kiln_status status, const char *what,
                             const char *call, cl_int code)
{
    /* A call that failed without saying so is a failure still. */
    status = status != KILN_OK ? status : KILN_E_INTERNAL;
    (void)kiln_diag_set(diag, status, fix_of(status), what, "%s returned %s (%d)", call,
                        kn_opencl_error_name(code), (int)code);
    kiln_diag_set_vendor_code(diag, code);
    return status;
}

kiln_status kn_opencl_fail(kiln_diag *diag, const char *what, const char *call, cl_int code)
{
    return fail_with(diag, kn_opencl_error_status(code), what, call, code);
}

kiln_status kn_opencl_fail_run(kiln_diag *diag, const char *what, const char *call, cl_int code)
{
    bool wild = code == CL_OUT_OF_RESOURCES || code == CL_INVALID_COMMAND_QUEUE;
    return fail_with(diag, wild ? KILN_E_DEVICE_LOST : kn_opencl_error_status(code), what, call,
                     code);
}

kiln_status kn_opencl_fail_load(kiln_diag *diag, const char *call, cl_int code)
{
    const kiln_status status = kn_opencl_fail(diag, "loading an OpenCL binary", call, code);
    if (status == KILN_E_NOMEM || status == KILN_E_UNAVAILABLE) {
        return status;
    }
    if (diag != NULL) {
        diag->status = KILN_E_REJECTED;
    }
    return KILN_E_REJECTED;
}
