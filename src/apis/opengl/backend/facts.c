/* What a context says of itself, and the libraries that make its code: the identity of a program
 * binary. Behind a dispatch library (glvnd) no function's address leads to the driver, so the
 * driver's modules are known by their names. */
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/api.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "sys/dylib.h"
#include "sys/file.h"

/* --- facts ------------------------------------------------------------------------------------ */

static void put_string(const kn_gl_api *gl, GLenum name, char *field, size_t size)
{
    const char *text = (const char *)gl->glGetString(name);
    kn_text_put(field, size, text != NULL ? text : "");
}

/* "4.5 (Core Profile) ...", "OpenGL ES 3.2 ...": contexts before 3.0 have no GL_MAJOR_VERSION. */
static void parse_version(kn_gl_facts *facts)
{
    static const char es[] = "OpenGL ES ";
    const char *at = facts->version;
    facts->es = kn_text_starts(at, es);
    at += facts->es ? strlen(es) : 0;
    while (*at >= '0' && *at <= '9' && facts->major < 100) {
        facts->major = facts->major * 10 + (*at++ - '0');
    }
    if (*at == '.' && at[1] >= '0' && at[1] <= '9') {
        facts->minor = at[1] - '0';
    }
}

#define FORMATS_ROOM 4096

void kn_gl_facts_query(const kn_gl_api *gl, kn_gl_facts *out_facts)
{
    GLint value = 0;
    memset(out_facts, 0, sizeof(*out_facts));
    kn_gl_forget(gl);
    put_string(gl, GL_VENDOR, out_facts->vendor, sizeof(out_facts->vendor));
    put_string(gl, GL_RENDERER, out_facts->renderer, sizeof(out_facts->renderer));
    put_string(gl, GL_VERSION, out_facts->version, sizeof(out_facts->version));
    put_string(gl, GL_SHADING_LANGUAGE_VERSION, out_facts->glsl, sizeof(out_facts->glsl));
    parse_version(out_facts);
    gl->glGetIntegerv(GL_CONTEXT_PROFILE_MASK, &value);
    out_facts->profile = (uint32_t)value;
    value = 0;
    gl->glGetIntegerv(GL_CONTEXT_FLAGS, &value);
    out_facts->flags = (uint32_t)value;
    value = 0;
    gl->glGetIntegerv(GL_NUM_PROGRAM_BINARY_FORMATS, &value);
    /* The call has no word for how much room there is: more than the driver says that it needs. */
    GLint *formats = value > 0 && value < FORMATS_ROOM
                         ? (GLint *)calloc(FORMATS_ROOM, sizeof(*formats))
                         : (GLint *)NULL;
    if (formats != NULL) {
        gl->glGetIntegerv(GL_PROGRAM_BINARY_FORMATS, formats);
        for (GLint i = 0; i < value && i < KN_GL_MAX_FORMATS; i++) {
            out_facts->formats[out_facts->format_count++] = (uint32_t)formats[i];
        }
        free(formats);
    }
    kn_gl_forget(gl); /* an older context does not know all of these */
}

/* --- modules ---------------------------------------------------------------------------------- */

typedef enum family { MESA, NVIDIA, OTHER } family;

static family family_of(const kn_gl_facts *facts)
{
    return strstr(facts->version, "Mesa") != NULL     ? MESA
           : strstr(facts->version, "NVIDIA") != NULL ? NVIDIA
                                                      : OTHER;
}

/* Drivers as they are called on disk, and whether what they need (LLVM above all) is taken in. For
 * a context of Mesa only Mesa's count: which others are mapped is a matter of what else the process
 * does, and would make a miss of a hit. NVIDIA has no row: its version text is that of the whole
 * driver, whose parts refuse each other's versions, while which parts are mapped depends on Vulkan,
 * GLX and whether something was compiled before. Of a driver that is none of these all rows count.
 */
static const struct {
    const char *prefix, *suffix;
    family family;
    bool needed;
} drivers[] = {
    {"libEGL_mesa", "", MESA, true}, {"", "_dri.so", MESA, true},
    {"libgallium", "", MESA, false}, {"libEGL_", "", OTHER, true},
    {"libamdxc", "", OTHER, false},  {"libmali", "", OTHER, false},
};

typedef struct line_list {
    family family;
    kn_strbuf lines; /* each with its NUL */
    size_t count;
} line_list;

static void add_module(void *user, const char *path, const char *build_id)
{
    line_list *list = (line_list *)user;
    kn_strbuf_printf(&list->lines, "%s %s", kn_path_name(path), build_id);
    kn_strbuf_append_char(&list->lines, '\0');
    list->count++;
}

static kn_module_choice choose_driver(void *user, const char *path)
{
    const char *name = kn_path_name(path);
    const line_list *list = (const line_list *)user;
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        if ((drivers[i].family == list->family || list->family == OTHER) &&
            kn_text_starts(name, drivers[i].prefix) && kn_text_ends(name, drivers[i].suffix)) {
            return drivers[i].needed ? KN_MODULE_WITH_NEEDED : KN_MODULE_ITSELF;
        }
    }
    return KN_MODULE_NO;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

kiln_status kn_gl_modules_find(const kn_gl_facts *facts, char **out_modules, kiln_diag *diag)
{
    line_list list = {.family = family_of(facts)};
    kn_strbuf out;
    *out_modules = NULL;
    kn_strbuf_init(&out, 0);
    kn_strbuf_init(&list.lines, 0);
    const bool listed = kn_module_select(choose_driver, add_module, &list);
    const char **lines = (const char **)calloc(list.count + 1, sizeof(*lines));
    if (listed && lines != NULL && kn_strbuf_ok(&list.lines)) {
        const char *at = kn_strbuf_text(&list.lines);
        for (size_t i = 0; i < list.count; i++, at += strlen(at) + 1) {
            lines[i] = at;
        }
        qsort(lines, list.count, sizeof(*lines), compare_lines);
        for (size_t i = 0; i < list.count; i++) {
            if (i == 0 || strcmp(lines[i], lines[i - 1]) != 0) {
                kn_strbuf_printf(&out, "%s\n", lines[i]);
            }
        }
        *out_modules = kn_strbuf_ok(&out) ? kn_text_copy(kn_strbuf_text(&out)) : NULL;
    }
    free(lines);
    kn_strbuf_deinit(&list.lines);
    kn_strbuf_deinit(&out);
    return *out_modules != NULL ? KILN_OK : kn_no_memory(diag, "identifying the OpenGL driver");
}

/* --- identity --------------------------------------------------------------------------------- */

static const char *const variables[] = {
    "MESA_GLSL",
    "MESA_DEBUG",
    "MESA_NO_ERROR",
    "MESA_EXTENSION_OVERRIDE",
    "MESA_GL_VERSION_OVERRIDE",
    "MESA_GLSL_VERSION_OVERRIDE",
    "MESA_LOADER_DRIVER_OVERRIDE",
    "MESA_SHADER_READ_PATH",
    "GALLIUM_DRIVER",
    "LIBGL_ALWAYS_SOFTWARE",
    "LP_NATIVE_VECTOR_WIDTH",
    "LP_DEBUG",
    "LP_PERF",
    "GALLIVM_DEBUG",
    "GALLIVM_PERF",
    "NIR_DEBUG",
    "ST_DEBUG",
    "AMD_DEBUG",
    "R600_DEBUG",
    "ACO_DEBUG",
    "INTEL_DEBUG",
    "BRW_DEBUG",
    "NOUVEAU_LIBDRM_DEBUG",
    "ZINK_DEBUG",
    "__GL_ShaderPortabilityWarnings",
    "__GL_WriteProgramObjectAssembly",
    "__GL_NO_DSO_FINALIZER",
};

static void identify_u32(const kiln_identity *identity, const char *name, uint32_t value)
{
    char text[16];
    kn_text_putf(text, sizeof(text), "0x%04x", value);
    identity->text(identity->sink, name, text);
}

void kn_gl_identify_context(const kn_gl_facts *facts, const char *modules,
                            const kiln_identity *identity)
{
    char line[512];
    identity->text(identity->sink, "gl.vendor", facts->vendor);
    identity->text(identity->sink, "gl.renderer", facts->renderer);
    identity->text(identity->sink, KILN_IDENTITY_CODE,
                   kn_gl_class_of(facts) != KILN_DEVICE_SOFTWARE ? KILN_IDENTITY_GPU : "processor");
    identity->text(identity->sink, "gl.version", facts->version);
    identity->text(identity->sink, "gl.glsl", facts->glsl);
    identity->text(identity->sink, "gl.api", facts->es ? "es" : "gl");
    identify_u32(identity, "gl.profile", facts->profile);
    identify_u32(identity, "gl.flags", facts->flags);
    for (size_t i = 0; i < facts->format_count; i++) {
        identify_u32(identity, "gl.format", facts->formats[i]);
    }
    for (const char *at = modules; *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        kn_text_putf(line, sizeof(line), "%.*s", (int)length, at);
        identity->text(identity->sink, "gl.module", line);
        at += length + (at[length] == '\n');
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        identity->env(identity->sink, variables[i]);
    }
}
