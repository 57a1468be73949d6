/* The hip backend's tables. hipRTC compiles without a GPU and without a driver; a device half is
 * not there, so nothing is listed and nothing is launched. */
#include "backends/hip/instance.h"

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
    .option_effects = kn_hip_option_effects,
};

const kiln_backend kn_backend_hip = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "hip",
    .summary = "AMD GPUs through hipRTC: compiles, does not run",
    .caps = KILN_CAP_ANY_THREAD | KILN_CAP_COMPILE_OFFLINE | KILN_CAP_OPTION_EFFECTS |
            KILN_CAP_ON_REQUEST | KILN_CAP_NO_DEVICES,
    .compiler = &compiler_ops,
    .device = NULL,
    .open = kn_hip_open,
    .close = kn_hip_close,
};
