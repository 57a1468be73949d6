/* The vulkan backend's tables. */
#include "apis/vulkan/backend/instance.h"

static const kiln_include_rules include_rules = {
    .complete = true,
    .option_effects = kn_vk_option_effects,
};

static const kiln_compiler_ops compiler_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_compiler_ops),
    .stages = kn_vk_stages,
    .target_of_device = kn_vk_target_of_device,
    .target_parse = kn_vk_target_parse,
    .target_destroy = kn_vk_target_destroy,
    .identify = kn_vk_identify,
    .system_include_dir = kn_vk_system_include_dir,
    .ships_header = kn_vk_ships_header,
    .uncacheable_option = kn_vk_uncacheable_option,
    .compile = kn_vk_compile,
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_device_ops),
    .device_info = kn_vk_device_info,
    .device_open = kn_vk_device_open,
    .device_close = kn_vk_device_close,
    .buffer_create = kn_vk_buffer_create,
    .buffer_destroy = kn_vk_buffer_destroy,
    .program_load = kn_vk_program_load,
    .program_unload = kn_vk_program_unload,
    .program_grew = kn_vk_program_grew,
    .program_capture = kn_vk_program_capture,
    .program_entry = kn_vk_program_entry,
    .program_params = kn_vk_program_params,
    .queue_create = kn_vk_queue_create,
    .queue_destroy = kn_vk_queue_destroy,
    .queue_write = kn_vk_queue_write,
    .queue_read = kn_vk_queue_read,
    .queue_fill = kn_vk_queue_fill,
    .queue_copy = kn_vk_queue_copy,
    .queue_launch = kn_vk_queue_launch,
    .queue_finish = kn_vk_queue_finish,
    .event_done = kn_vk_event_done,
    .event_wait = kn_vk_event_wait,
    .event_elapsed = kn_vk_event_elapsed,
    .event_destroy = kn_vk_event_destroy,
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
