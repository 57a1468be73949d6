/* The opengl backend's tables. */
#include "apis/opengl/backend/opengl.h"

static const kiln_include_rules include_rules = {
    .complete = true,
    .facts_any_thread = true,
};

static const kiln_compiler_ops compiler_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_compiler_ops),
    .stages = kn_gl_stages,
    .target_of_device = kn_gl_target_of_device,
    .target_parse = NULL, /* KILN_CAP_COMPILE_OFFLINE: a driver compiles for its own device only */
    .target_destroy = kn_gl_target_destroy,
    .identify = kn_gl_identify,
    .system_include_dir = kn_gl_system_include_dir,
    .ships_header = kn_gl_ships_header,
    .uncacheable_option = kn_gl_uncacheable_option,
    .compile = kn_gl_compile,
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_device_ops),
    .device_info = kn_gl_device_info,
    .device_open = kn_gl_device_open,
    .device_close = kn_gl_device_close,
    .buffer_create = kn_gl_buffer_create,
    .buffer_destroy = kn_gl_buffer_destroy,
    .program_load = kn_gl_program_load,
    .program_unload = kn_gl_program_unload,
    .program_grew = kn_gl_program_grew,
    .program_capture = kn_gl_program_capture,
    .program_entry = kn_gl_program_entry,
    .program_params = kn_gl_program_params,
    .queue_create = kn_gl_queue_create,
    .queue_destroy = kn_gl_queue_destroy,
    .queue_write = kn_gl_queue_write,
    .queue_read = kn_gl_queue_read,
    .queue_fill = kn_gl_queue_fill,
    .queue_copy = kn_gl_queue_copy,
    .queue_launch = kn_gl_queue_launch,
    .queue_finish = kn_gl_queue_finish,
    .event_done = kn_gl_event_done,
    .event_wait = kn_gl_event_wait,
    .event_elapsed = kn_gl_event_elapsed,
    .event_destroy = kn_gl_event_destroy,
};

static const char *const basis_variables[] = {"EGL_*",  "__EGL_*", "LIBGL_*", "MESA_*", "GALLIUM_*",
                                              "LP_*",   "__GL*",   "__NV*",   "DRI_*",  "NVIDIA_*",
                                              "CUDA_*", "XDG_*",   "HOME",    NULL};
static const char *const basis_places[] = {"/etc/glvnd/egl_vendor.d/",
                                           "/usr/share/glvnd/egl_vendor.d/",
                                           "$__EGL_VENDOR_LIBRARY_FILENAMES",
                                           "$__EGL_VENDOR_LIBRARY_DIRS/",
                                           "$LIBGL_DRIVERS_PATH",
                                           "/usr/lib/x86_64-linux-gnu/dri",
                                           "/usr/lib/aarch64-linux-gnu/dri",
                                           "/usr/lib64/dri",
                                           "/usr/lib/dri",
                                           "/etc/drirc",
                                           "/usr/share/drirc.d/",
                                           "$HOME/.drirc",
                                           "/dev/dri/",
                                           "/dev/nvidia*",
                                           "/sys/module/nvidia/version",
                                           NULL};
static const kiln_probe_basis basis = {basis_variables, basis_places, true};

const kiln_backend kn_backend_opengl = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "opengl",
    .summary = "OpenGL 4.3 and later through EGL, no display needed",
    .caps = KILN_CAP_CAPTURE | KILN_CAP_FILL | KILN_CAP_COPY | KILN_CAP_REFLECT |
            KILN_CAP_LIVE_COMPILE | KILN_CAP_BUFFER_OFFSET | KILN_CAP_WHOLE_PROGRAMS,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = kn_gl_open,
    .close = kn_gl_close,
    .basis = &basis,
};
