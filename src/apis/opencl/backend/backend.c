/* The OpenCL backend's tables. */
#include "apis/opencl/backend/opencl.h"

static const kiln_compiler_ops compiler_ops = {
    KN_COMPILER_OPS(kn_opencl_),
    KN_SEARCH_OPS(kn_opencl_),
    .include_rules = &kn_opencl_include_rules,
};

static const kiln_device_ops device_ops = {
    KN_DEVICE_OPS(kn_opencl_),
    .program_grew = kn_opencl_program_grew,
    .program_capture = kn_opencl_program_capture,
    .queue_wait = kn_opencl_queue_wait,
};

static const char *const basis_variables[] = {
    "OCL_*", "OPENCL_*", "CL_*",   "POCL_*",   "CLVK_*",  "RUSTICL_*", "MESA_*", "LIBGL_*",
    "ZE_*",  "NEO*",     "IGC_*",  "ONEAPI_*", "INTEL_*", "SYCL_*",    "CUDA_*", "NVIDIA_*",
    "GPU_*", "HSA_*",    "ROCR_*", "HIP_*",    "AMD_*",   NULL};
static const char *const basis_places[] = {"/etc/OpenCL/vendors/",
                                           "$OCL_ICD_VENDORS/",
                                           "$OPENCL_VENDOR_PATH/",
                                           "$OCL_ICD_FILENAMES",
                                           "/dev/dri/",
                                           "/dev/kfd",
                                           "/dev/nvidia*",
                                           "/sys/module/nvidia/version",
                                           "/sys/module/amdgpu/version",
                                           NULL};
static const kiln_probe_basis basis = {basis_variables, basis_places, true};

const kiln_backend kn_backend_opencl = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "opencl",
    .summary = "OpenCL 1.2 and later, any vendor",
    .caps = KILN_CAP_ANY_THREAD | KILN_CAP_CAPTURE | KILN_CAP_FILL | KILN_CAP_COPY |
            KILN_CAP_REFLECT | KILN_CAP_LIVE_COMPILE | KILN_CAP_BUFFER_OFFSET |
            KILN_CAP_QUEUE_WAIT | KILN_CAP_ASYNC_COPY | KILN_CAP_WHOLE_PROGRAMS,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = kn_opencl_open,
    .close = kn_opencl_close,
    .basis = &basis,
};
