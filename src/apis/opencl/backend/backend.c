/* The OpenCL backend's tables. */
#include "apis/opencl/backend/opencl.h"

static const kiln_compiler_ops compiler_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_compiler_ops),
    .stages = kn_opencl_stages,
    .target_of_device = kn_opencl_target_of_device,
    .target_parse = NULL, /* KILN_CAP_COMPILE_OFFLINE: a driver compiles for its own devices only */
    .target_destroy = kn_opencl_target_destroy,
    .identify = kn_opencl_identify,
    .system_include_dir = kn_opencl_system_include_dir,
    .ships_header = kn_opencl_ships_header,
    .uncacheable_option = kn_opencl_uncacheable_option,
    .compile = kn_opencl_compile,
    .include_rules = &kn_opencl_include_rules,
};

static const kiln_device_ops device_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_device_ops),
    .device_info = kn_opencl_device_info,
    .device_open = kn_opencl_device_open,
    .device_close = kn_opencl_device_close,
    .buffer_create = kn_opencl_buffer_create,
    .buffer_destroy = kn_opencl_buffer_destroy,
    .program_load = kn_opencl_program_load,
    .program_unload = kn_opencl_program_unload,
    .program_grew = kn_opencl_program_grew,
    .program_capture = kn_opencl_program_capture,
    .program_entry = kn_opencl_program_entry,
    .program_params = kn_opencl_program_params,
    .queue_create = kn_opencl_queue_create,
    .queue_destroy = kn_opencl_queue_destroy,
    .queue_write = kn_opencl_queue_write,
    .queue_read = kn_opencl_queue_read,
    .queue_fill = kn_opencl_queue_fill,
    .queue_copy = kn_opencl_queue_copy,
    .queue_launch = kn_opencl_queue_launch,
    .queue_finish = kn_opencl_queue_finish,
    .queue_wait = kn_opencl_queue_wait,
    .event_done = kn_opencl_event_done,
    .event_wait = kn_opencl_event_wait,
    .event_elapsed = kn_opencl_event_elapsed,
    .event_destroy = kn_opencl_event_destroy,
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
