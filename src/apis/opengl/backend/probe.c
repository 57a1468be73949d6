/* Opening EGL and listing what it offers without a display server: each device of the device
 * platform, or else Mesa's surfaceless platform. $DISPLAY is never looked at, so a stale one does
 * no harm. EGL is left open and its displays initialised: they belong to the whole process, and
 * the program may use the same ones. */
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/opengl.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/clock.h"

static const kn_symbol egl_symbols[] = {
#define X(need, type, name) {#name, offsetof(kn_egl_api, name), 0, need},
#include "apis/opengl/backend/egl.def"
#undef X
};

static void answer_probe(kiln_probe_report *report, kiln_probe_outcome outcome, const char *fix,
                         const char *why)
{
    report->outcome = outcome;
    kn_text_put(report->why, sizeof(report->why), why);
    kn_text_put(report->fix, sizeof(report->fix), fix);
}

/* Extensions are found through eglGetProcAddress; the rest was bound from the library. */
static void bind_extensions(kn_egl_api *egl)
{
    for (size_t i = 0; i < sizeof(egl_symbols) / sizeof(egl_symbols[0]); i++) {
        if (egl_symbols[i].need == KN_OPTIONAL) {
            __eglMustCastToProperFunctionPointerType function =
                egl->eglGetProcAddress(egl_symbols[i].name);
            memcpy((char *)egl + egl_symbols[i].offset, &function, sizeof(function));
        }
    }
}

static void add_unit(kn_gl *gl, EGLDisplay display, const char *path, kiln_probe_report *report)
{
    char why[256] = "eglGetPlatformDisplay returned nothing";
    if (gl->unit_count == KN_GL_MAX_UNITS) {
        return;
    }
    kn_gl_unit *unit = &gl->units[gl->unit_count];
    if (display != EGL_NO_DISPLAY && kn_gl_unit_init(gl, display, path, unit, why, sizeof(why))) {
        kn_gl_unit_describe(unit, gl->unit_count++);
        return;
    }
    const size_t used = strlen(report->why);
    kn_text_putf(report->why + used, sizeof(report->why) - used, "%sEGL %s: %s",
                 used > 0 ? "; " : "", path, why);
}

static void list_devices(kn_gl *gl, kiln_probe_report *report)
{
    EGLDeviceEXT devices[KN_GL_MAX_UNITS] = {EGL_NO_DEVICE_EXT};
    EGLint count = 0;
    const char *extensions = gl->egl.eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
    if (extensions == NULL || gl->egl.eglGetPlatformDisplayEXT == NULL) {
        answer_probe(report, KILN_PROBE_DRIVER_TOO_OLD, "install a newer EGL (Debian: libegl1)",
                     "this EGL has no platforms");
        return;
    }
    if (strstr(extensions, "EGL_EXT_platform_device") != NULL &&
        gl->egl.eglQueryDevicesEXT != NULL &&
        gl->egl.eglQueryDevicesEXT(KN_GL_MAX_UNITS, devices, &count) == EGL_TRUE) {
        for (EGLint i = 0; i < count && i < KN_GL_MAX_UNITS; i++) {
            if (devices[i] == EGL_NO_DEVICE_EXT) {
                continue; /* counted, and not listed */
            }
            add_unit(gl,
                     gl->egl.eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[i], NULL),
                     "device", report);
        }
    }
    if (gl->unit_count == 0 && strstr(extensions, "EGL_MESA_platform_surfaceless") != NULL) {
        add_unit(gl,
                 gl->egl.eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA,
                                                  (void *)EGL_DEFAULT_DISPLAY, NULL),
                 "surfaceless", report);
    }
}

/* What is to be said of the devices found: those that cannot be cached above all. */
static void report_units(const kn_gl *gl, kiln_probe_report *report)
{
    uint32_t without = 0;
    for (uint32_t i = 0; i < gl->unit_count; i++) {
        without += gl->units[i].facts.format_count == 0;
    }
    report->outcome = KILN_PROBE_READY;
    report->device_count = gl->unit_count;
    kn_text_put(report->version, sizeof(report->version), gl->units[0].facts.version);
    kn_text_putf(report->why, sizeof(report->why), "%u device%s", gl->unit_count,
                 gl->unit_count == 1 ? "" : "s");
    if (without > 0) {
        const size_t used = strlen(report->why);
        kn_text_putf(report->why + used, sizeof(report->why) - used,
                     "; %u of them gives no program binaries (GL_NUM_PROGRAM_BINARY_FORMATS is 0), "
                     "so its programs run but are compiled in every process",
                     without);
        kn_text_put(report->fix, sizeof(report->fix),
                    "with Mesa, leave its own cache on: unset MESA_SHADER_CACHE_DISABLE and "
                    "MESA_GLSL_CACHE_DISABLE, and let it write to a directory that you own");
    }
}

static void open_egl(kn_gl *gl, kiln_probe_report *report)
{
    static const char *const names[] = KN_LIBRARY_NAMES("libEGL.dll", "libEGL.so.1");
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    if (kn_dylib_open(names, &gl->library, &outcome, &diag) != KILN_OK) {
        answer_probe(report, outcome, "install EGL (Debian: libegl1) and a driver", diag.why);
        kiln_diag_clear(&diag);
        return;
    }
    kn_text_put(report->library, sizeof(report->library), kn_dylib_path(gl->library));
    if (kn_dylib_bind(gl->library, egl_symbols, sizeof(egl_symbols) / sizeof(egl_symbols[0]), 0,
                      &gl->egl, &diag) != KILN_OK) {
        answer_probe(report, KILN_PROBE_SYMBOL_MISSING, "install a newer EGL (Debian: libegl1)",
                     diag.why);
        kiln_diag_clear(&diag);
        return;
    }
    bind_extensions(&gl->egl);
    report->outcome = KILN_PROBE_NO_DEVICE;
    list_devices(gl, report);
    if (gl->unit_count > 0) {
        report_units(gl, report);
    } else if (report->outcome == KILN_PROBE_NO_DEVICE) {
        kn_text_put(report->fix, sizeof(report->fix),
                    "install an OpenGL 4.3 driver (Debian: libgl1-mesa-dri, or the vendor's)");
        if (report->why[0] == '\0') {
            kn_text_put(report->why, sizeof(report->why), "EGL lists no device");
        }
    }
}

kiln_status kn_gl_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                       kiln_diag *diag)
{
    *out_instance = NULL;
    kn_gl *gl = (kn_gl *)calloc(1, sizeof(*gl));
    if (gl == NULL) {
        return kn_no_memory(diag, "opengl");
    }
    const uint64_t start = kn_clock_now();
    gl->host = host;
    kn_mutex_init(&gl->lock);
    kn_text_put(report->backend, sizeof(report->backend), "opengl");
    open_egl(gl, report);
    report->probe_ns = kn_clock_now() - start;
    if (gl->unit_count == 0) {
        kn_gl_close(gl);
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, "opengl", "%s", report->why);
    }
    *out_instance = gl;
    return KILN_OK;
}

void kn_gl_close(void *instance)
{
    kn_gl *gl = (kn_gl *)instance;
    if (gl == NULL) {
        return;
    }
    for (uint32_t i = 0; i < gl->unit_count; i++) {
        kn_gl_unit *unit = &gl->units[i];
        (void)gl->egl.eglMakeCurrent(unit->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        (void)gl->egl.eglDestroyContext(unit->display, unit->context);
        free(unit->modules);
    }
    if (gl->egl.eglReleaseThread != NULL) {
        (void)gl->egl.eglReleaseThread();
    }
    kn_mutex_deinit(&gl->lock);
    kn_dylib_retire(gl->library); /* it stays mapped: see the top */
    free(gl);
}

kiln_status kn_gl_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag)
{
    kn_gl *gl = (kn_gl *)instance;
    if (index >= gl->unit_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "opengl", "there is no device %u", index);
    }
    kn_gl_device *device = (kn_gl_device *)calloc(1, sizeof(*device));
    if (device == NULL) {
        return kn_no_memory(diag, "opengl");
    }
    device->owner = gl;
    device->unit = &gl->units[index];
    /* The first key will want them: looked for once, as a small part of what opening costs. */
    kiln_status status = kn_gl_unit_modules(gl, device->unit, diag);
    if (status != KILN_OK) {
        free(device);
        return status;
    }
    *out_device = device;
    return KILN_OK;
}

void kn_gl_device_close(void *device)
{
    free(device);
}
