/* The opengl backend's tables. */
#include "apis/opengl/backend/opengl.h"

static const kiln_include_rules include_rules = {
    .complete = true,
    .facts_any_thread = true,
};

static const kiln_compiler_ops compiler_ops = {
    KN_COMPILER_OPS(kn_gl_),
    KN_SEARCH_OPS(kn_glsl_),
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    KN_DEVICE_OPS(kn_gl_),
    .program_grew = kn_gl_program_grew,
    .program_capture = kn_gl_program_capture,
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
