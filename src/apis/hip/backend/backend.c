/* The hip backend's tables. hipRTC compiles without a GPU and without a driver. The device half was
 * never run on hardware: the backend is used where it is asked for, and nowhere else. */
#include "apis/hip/backend/instance.h"

static const kiln_compiler_ops compiler_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_compiler_ops),
    .stages = kn_hip_stages,
    .target_of_device = kn_hip_target_of_device,
    .target_parse = kn_hip_target_parse,
    .target_destroy = kn_hip_target_destroy,
    .identify = kn_hip_identify,
    .system_include_dir = kn_hip_system_include_dir,
    .ships_header = kn_hip_ships_header,
    .uncacheable_option = kn_hip_uncacheable_option,
    .compile = kn_hip_compile,
    .include_rules = &kn_hip_include_rules,
};

static const kiln_device_ops device_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_device_ops),
    .device_info = kn_hip_device_info,
    .device_open = kn_hip_device_open,
    .device_close = kn_hip_device_close,
    KN_GPU_DEVICE_OPS,
};

static const char *const basis_variables[] = {"ROCM_PATH", "HIP_*", "HSA_*",  "ROCR_*",
                                              "GPU_*",     "AMD_*", "CUDA_*", NULL};
static const char *const basis_places[] = {"/dev/kfd",
                                           "/dev/dxg",
                                           "/dev/dri",
                                           "/sys/module/amdgpu/version",
                                           "/opt/rocm/lib",
                                           "$ROCM_PATH/lib",
                                           "$HIP_PATH/lib",
                                           "$HIP_PATH/bin",
                                           NULL};
static const kiln_probe_basis basis = {basis_variables, basis_places, true};

const kiln_backend kn_backend_hip = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "hip",
    .summary = "AMD GPUs through hipRTC and HIP (launches never tried on hardware)",
    .caps = KILN_CAP_ANY_THREAD | KILN_CAP_QUEUE_WAIT | KILN_CAP_ASYNC_COPY |
            KILN_CAP_COMPILE_OFFLINE | KILN_CAP_FILL | KILN_CAP_COPY | KILN_CAP_REFLECT |
            KILN_CAP_BUFFER_OFFSET | KILN_CAP_COOPERATIVE | KILN_CAP_NATIVE_MEMORY |
            KILN_CAP_NATIVE_QUEUE | KILN_CAP_COMPILE_APART | KILN_CAP_ON_REQUEST,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = kn_hip_open,
    .close = kn_hip_close,
    .basis = &basis,
};
