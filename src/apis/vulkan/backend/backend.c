/* The vulkan backend's tables. */
#include "apis/vulkan/backend/instance.h"

static const kiln_include_rules include_rules = {
    .complete = true,
    .option_effects = kn_vk_option_effects,
};

static const kiln_compiler_ops compiler_ops = {
    KN_COMPILER_OPS(kn_vk_),
    KN_SEARCH_OPS(kn_glsl_),
    .target_parse = kn_vk_target_parse,
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    KN_DEVICE_OPS(kn_vk_),
    .program_grew = kn_vk_program_grew,
    .program_capture = kn_vk_program_capture,
};

static const char *const basis_variables[] = {
    "VK_*",     "MESA_*",          "LIBGL_*",      "LP_*",     "LVP_*", "GALLIUM_*",
    "RADV_*",   "ANV_*",           "AMD_*",        "INTEL_*",  "DRI_*", "__NV*",
    "NVIDIA_*", "CUDA_*",          "DISABLE_*",    "ENABLE_*", "XDG_*", "HOME",
    "DISPLAY",  "WAYLAND_DISPLAY", "KILN_LIBEXEC", NULL};
static const char *const basis_places[] = {"/etc/vulkan/icd.d/",
                                           "/usr/share/vulkan/icd.d/",
                                           "/usr/local/share/vulkan/icd.d/",
                                           "/usr/local/etc/vulkan/icd.d/",
                                           "/etc/xdg/vulkan/icd.d/",
                                           "/etc/vulkan/implicit_layer.d/",
                                           "/usr/share/vulkan/implicit_layer.d/",
                                           "/usr/local/share/vulkan/implicit_layer.d/",
                                           "$HOME/.local/share/vulkan/icd.d/",
                                           "$HOME/.local/share/vulkan/implicit_layer.d/",
                                           "$HOME/.config/vulkan/icd.d/",
                                           "$XDG_DATA_HOME/vulkan/icd.d/",
                                           "$XDG_DATA_DIRS/vulkan/icd.d/",
                                           "$XDG_CONFIG_HOME/vulkan/icd.d/",
                                           "$XDG_CONFIG_DIRS/vulkan/icd.d/",
                                           "$VK_ICD_FILENAMES/",
                                           "$VK_DRIVER_FILES/",
                                           "$VK_ADD_DRIVER_FILES/",
                                           "$KILN_LIBEXEC/libkiln-shaderc.so",
                                           "/dev/dri/",
                                           "/dev/nvidia*",
                                           "/sys/module/nvidia/version",
                                           NULL};
static const kiln_probe_basis basis = {basis_variables, basis_places, true};

const kiln_backend kn_backend_vulkan = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "vulkan",
    .summary = "Vulkan 1.1 and later; GLSL through shaderc",
    .caps = KILN_CAP_ANY_THREAD | KILN_CAP_COMPILE_OFFLINE | KILN_CAP_CAPTURE | KILN_CAP_FILL |
            KILN_CAP_COPY | KILN_CAP_REFLECT | KILN_CAP_LIVE_COMPILE | KILN_CAP_BUFFER_OFFSET |
            KILN_CAP_WHOLE_PROGRAMS,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = kn_vk_open,
    .close = kn_vk_close,
    .basis = &basis,
};
