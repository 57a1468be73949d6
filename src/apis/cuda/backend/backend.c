/* The cuda backend's tables. NVRTC compiles without a GPU and without a driver; the driver half is
 * present where libcuda is. */
#include "apis/cuda/backend/instance.h"

static const kiln_include_rules include_rules = {
    .complete = true,
    .dirs_in_order = true,
    .option_effects = kn_cuda_option_effects,
};

static const kiln_compiler_ops compiler_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_compiler_ops),
    .stages = kn_cuda_stages,
    .target_of_device = kn_cuda_target_of_device,
    .target_parse = kn_cuda_target_parse,
    .target_destroy = kn_cuda_target_destroy,
    .identify = kn_cuda_identify,
    .system_include_dir = kn_cuda_system_include_dir,
    .ships_header = kn_cuda_ships_header,
    .uncacheable_option = kn_cuda_uncacheable_option,
    .compile = kn_cuda_compile,
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_device_ops),
    .device_info = kn_cuda_device_info,
    .device_open = kn_cuda_device_open,
    .device_close = kn_cuda_device_close,
    KN_GPU_DEVICE_OPS,
};

static const char *const basis_variables[] = {"CUDA_*", "NVIDIA_*", "NVRTC_*", "__NV*", NULL};
static const char *const basis_places[] = {"/dev/nvidia*",
                                           "/dev/dxg",
                                           "/sys/module/nvidia/version",
                                           "/usr/local",
                                           "/usr/local/cuda/lib64",
                                           "/usr/local/cuda/targets/x86_64-linux/lib",
                                           "/usr/lib/wsl/lib",
                                           "$CUDA_PATH/lib64",
                                           "$CUDA_PATH/lib",
                                           "$CUDA_PATH/targets/x86_64-linux/lib",
                                           "$CUDA_HOME/lib64",
                                           "$CUDA_HOME/lib",
                                           "$CUDA_HOME/targets/x86_64-linux/lib",
                                           NULL};
static const kiln_probe_basis basis = {basis_variables, basis_places, true};

const kiln_backend kn_backend_cuda = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "cuda",
    .summary = "NVIDIA GPUs through NVRTC and the CUDA driver",
    .caps = KILN_CAP_LENT_ARTIFACT | KILN_CAP_ANY_THREAD | KILN_CAP_QUEUE_WAIT |
            KILN_CAP_ASYNC_COPY | KILN_CAP_COMPILE_OFFLINE | KILN_CAP_FILL | KILN_CAP_COPY |
            KILN_CAP_REFLECT | KILN_CAP_BUFFER_OFFSET | KILN_CAP_PRECOMPILE | KILN_CAP_COOPERATIVE |
            KILN_CAP_CLUSTERS | KILN_CAP_NATIVE_MEMORY | KILN_CAP_NATIVE_QUEUE |
            KILN_CAP_COMPILE_APART,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = kn_cuda_open,
    .close = kn_cuda_close,
    .basis = &basis,
};
