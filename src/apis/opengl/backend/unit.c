/* One EGL device: a context of ours on it, and its description in kiln's words. */
#include <ctype.h>
#include <string.h>

#include "apis/opengl/backend/opengl.h"
#include "base/text.h"

enum { NVX_DEDICATED_KILOBYTES = 0x9047 };

kiln_status kn_gl_enter(kn_gl *gl, const kn_gl_unit *unit, kiln_diag *diag)
{
    if (gl->current == unit) {
        return KILN_OK;
    }
    if (gl->egl.eglMakeCurrent(unit->display, EGL_NO_SURFACE, EGL_NO_SURFACE, unit->context) !=
        EGL_TRUE) {
        gl->current = NULL;
        kiln_status status =
            kiln_diag_set(diag, KILN_E_DEVICE_LOST, NULL, unit->info.name,
                          "eglMakeCurrent fails with 0x%04x", gl->egl.eglGetError());
        return status;
    }
    gl->current = unit;
    return KILN_OK;
}

/* A 4.3 core context; drivers give the newest one that is compatible with it. */
static EGLContext create_context(const kn_gl *gl, EGLDisplay display, const char *extensions)
{
    static const EGLint wanted[] = {EGL_CONTEXT_MAJOR_VERSION_KHR,
                                    4,
                                    EGL_CONTEXT_MINOR_VERSION_KHR,
                                    3,
                                    EGL_CONTEXT_OPENGL_PROFILE_MASK_KHR,
                                    EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT_KHR,
                                    EGL_NONE};
    static const EGLint drawable[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                                      EGL_OPENGL_BIT, EGL_NONE};
    EGLConfig config = NULL; /* EGL_NO_CONFIG_KHR */
    EGLint count = 0;
    if (!kn_text_has_word(extensions, "EGL_KHR_no_config_context") &&
        !kn_text_has_word(extensions, "EGL_MESA_configless_context") &&
        (gl->egl.eglChooseConfig(display, drawable, &config, 1, &count) != EGL_TRUE ||
         count == 0)) {
        return EGL_NO_CONTEXT;
    }
    return gl->egl.eglCreateContext(display, config, EGL_NO_CONTEXT, wanted);
}

bool kn_gl_unit_init(kn_gl *gl, EGLDisplay display, const char *path, kn_gl_unit *unit, char *why,
                     size_t why_size)
{
    EGLint major = 0, minor = 0;
    memset(unit, 0, sizeof(*unit));
    unit->display = display;
    unit->path = path;
    if (gl->egl.eglInitialize(display, &major, &minor) != EGL_TRUE) {
        kn_text_putf(why, why_size, "eglInitialize fails with 0x%04x", gl->egl.eglGetError());
        return false;
    }
    const char *extensions = gl->egl.eglQueryString(display, EGL_EXTENSIONS);
    if (!kn_text_has_word(extensions, "EGL_KHR_surfaceless_context")) {
        kn_text_put(why, why_size, "the driver has no contexts without a surface");
        return false;
    }
    if (gl->egl.eglBindAPI(EGL_OPENGL_API) == EGL_TRUE) {
        unit->context = create_context(gl, display, extensions);
    }
    if (unit->context == EGL_NO_CONTEXT) {
        kn_text_putf(why, why_size, "the driver gives no OpenGL 4.3 core context (0x%04x)",
                     gl->egl.eglGetError());
        return false;
    }
    gl->current = NULL;
    const char *missing = "eglMakeCurrent";
    if (kn_gl_enter(gl, unit, NULL) == KILN_OK) {
        missing = kn_gl_bind((kn_gl_get *)gl->egl.eglGetProcAddress, KN_GL_COMPUTE, &unit->gl);
    }
    if (missing != NULL) {
        kn_text_putf(why, why_size, "the driver lacks %s", missing);
        (void)gl->egl.eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        (void)gl->egl.eglDestroyContext(display, unit->context);
        gl->current = NULL;
        return false;
    }
    kn_gl_facts_query(&unit->gl, &unit->facts);
    return true;
}

/* --- description ------------------------------------------------------------------------------ */

static uint32_t get_u32(const kn_gl_api *gl, GLenum name)
{
    GLint value = 0;
    gl->glGetIntegerv(name, &value);
    return value > 0 ? (uint32_t)value : 0;
}

static void query_limits(kn_gl_unit *unit)
{
    const kn_gl_api *gl = &unit->gl;
    kn_gl_limits *limits = &unit->limits;
    GLint64 size = 0;
    GLint bits = 0;
    limits->groups.size = get_u32(gl, GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS);
    limits->local_bytes = get_u32(gl, GL_MAX_COMPUTE_SHARED_MEMORY_SIZE);
    limits->bindings = get_u32(gl, GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS);
    limits->storage_align = get_u32(gl, GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT);
    limits->uniform_align = get_u32(gl, GL_UNIFORM_BUFFER_OFFSET_ALIGNMENT);
    for (GLuint i = 0; i < 3; i++) {
        GLint value = 0;
        gl->glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_SIZE, i, &value);
        limits->groups.dim[i] = value > 0 ? (uint32_t)value : 1;
        value = 0;
        gl->glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_COUNT, i, &value);
        limits->groups.count[i] = value > 0 ? (uint32_t)value : UINT32_MAX;
    }
    gl->glGetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &size);
    limits->buffer_bytes = size > 0 ? (uint64_t)size : 0;
    gl->glGetQueryiv(GL_TIMESTAMP, GL_QUERY_COUNTER_BITS, &bits);
    limits->timestamps = bits > 0;
    kn_gl_forget(gl);
}

#define MAX_EXTENSIONS 65536

static uint64_t memory_bytes(const kn_gl_api *gl)
{
    GLint count = 0;
    GLint kilobytes = 0;
    gl->glGetIntegerv(GL_NUM_EXTENSIONS, &count);
    for (GLint i = 0; i < count && i < MAX_EXTENSIONS; i++) {
        const char *name = (const char *)gl->glGetStringi(GL_EXTENSIONS, (GLuint)i);
        if (name != NULL && strcmp(name, "GL_NVX_gpu_memory_info") == 0) {
            gl->glGetIntegerv(NVX_DEDICATED_KILOBYTES, &kilobytes);
        }
    }
    return kilobytes > 0 ? (uint64_t)kilobytes * 1024 : 0;
}

static bool mentions_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(text, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

kiln_device_class kn_gl_class_of(const kn_gl_facts *facts)
{
    static const char *const software[] = {"llvmpipe", "softpipe",    "swrast",
                                           "SWR",      "SwiftShader", "Software"};
    static const char *const guests[] = {"virgl", "SVGA3D", "Virtio", "Parallels"};
    static const char *const inside[] = {"Intel", "Mali", "Adreno", "PowerVR", "V3D", "Apple"};
    if (mentions_any(facts->renderer, software, sizeof(software) / sizeof(software[0]))) {
        return KILN_DEVICE_SOFTWARE;
    }
    if (mentions_any(facts->renderer, guests, sizeof(guests) / sizeof(guests[0]))) {
        return KILN_DEVICE_VIRTUAL;
    }
    const bool arc = strstr(facts->renderer, "Arc") != NULL;
    if (!arc && (mentions_any(facts->renderer, inside, sizeof(inside) / sizeof(inside[0])) ||
                 mentions_any(facts->vendor, inside, sizeof(inside) / sizeof(inside[0])))) {
        return KILN_DEVICE_INTEGRATED;
    }
    return KILN_DEVICE_DISCRETE;
}

/* "llvmpipe (LLVM 15.0.6, 256 bits)" -> "opengl-llvmpipe-llvm-15-0-6-256-bits" */
static void name_target(const char *renderer, char *target, size_t size)
{
    bool gap = true;
    kn_text_put(target, size, "opengl");
    size_t at = strlen(target);
    for (; *renderer != '\0' && at + 3 < size; renderer++) {
        const unsigned char c = (unsigned char)*renderer;
        if (c >= 0x80 || isalnum(c) == 0) {
            gap = true;
            continue;
        }
        if (gap) {
            target[at++] = '-';
            gap = false;
        }
        target[at++] = (char)tolower(c);
    }
    target[at] = '\0';
}

void kn_gl_unit_describe(kn_gl_unit *unit, uint32_t index)
{
    kiln_device_info *info = &unit->info;
    query_limits(unit);
    *info = (kiln_device_info){.struct_size = sizeof(*info), .index = index};
    kn_text_put(info->backend, sizeof(info->backend), "opengl");
    kn_text_put(info->name, sizeof(info->name), unit->facts.renderer);
    kn_text_put(info->vendor, sizeof(info->vendor), unit->facts.vendor);
    kn_text_put(info->driver, sizeof(info->driver), unit->facts.version);
    kn_text_putf(info->version, sizeof(info->version), "OpenGL %d.%d", unit->facts.major,
                 unit->facts.minor);
    kn_text_putf(info->platform, sizeof(info->platform), "EGL %s", unit->path);
    name_target(unit->facts.renderer, info->target, sizeof(info->target));
    info->device_class = kn_gl_class_of(&unit->facts);
    info->max_group_size = unit->limits.groups.size;
    memcpy(info->max_group_dim, unit->limits.groups.dim, sizeof(info->max_group_dim));
    info->address_bits = 64;
    info->memory_bytes = memory_bytes(&unit->gl);
    info->max_buffer_bytes = unit->limits.buffer_bytes;
    info->local_bytes = unit->limits.local_bytes;
    info->fp64 = true; /* part of OpenGL since 4.0 */
    info->timestamps = unit->limits.timestamps;
}

kiln_status kn_gl_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                              kiln_diag *diag)
{
    const kn_gl *gl = (const kn_gl *)instance;
    if (index >= gl->unit_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "opengl", "there is no device %u", index);
    }
    *out_info = gl->units[index].info;
    return KILN_OK;
}
