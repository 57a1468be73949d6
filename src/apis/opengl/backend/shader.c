/* Shaders, linked programs and their binaries. A link status is always asked for: glProgramBinary
 * reports nothing else when a driver refuses (OpenGL 4.6, 7.5). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/api.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"

enum {
    LOG_LIMIT = 1 << 20,
    BINARY_LIMIT = 1 << 30, /* larger ones are not believed */
    ERRORS_LIMIT = 64,      /* a lost context may answer for ever */
    FORMAT_MESA = 0x875F,
    MESA_HEADER = 32,
    MESA_LENGTH = 24,
    CONTEXT_LOST = 0x0507,
};

static const struct {
    const char *name;
    size_t offset;
    kn_gl_group group;
} functions[] = {
#define PROGRAM KN_GL_PROGRAM
#define COMPUTE KN_GL_COMPUTE
#define X(group, type, name) {#name, offsetof(kn_gl_api, name), group},
#include "apis/opengl/backend/gl.def"
#undef X
};

const char *kn_gl_bind(kn_gl_get *get, kn_gl_group group, kn_gl_api *out_api)
{
    memset(out_api, 0, sizeof(*out_api));
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        kn_gl_function *function =
            functions[i].group <= group ? get(functions[i].name) : (kn_gl_function *)NULL;
        if (function == NULL && functions[i].group <= group) {
            return functions[i].name;
        }
        memcpy((char *)out_api + functions[i].offset, &function, sizeof(function));
    }
    return NULL;
}

/* --- errors ----------------------------------------------------------------------------------- */

kiln_status kn_gl_fail(GLenum code, const char *what, kiln_diag *diag)
{
    static const struct {
        GLenum code;
        const char *name;
        kiln_status status;
    } rows[] = {
        {GL_INVALID_ENUM, "GL_INVALID_ENUM", KILN_E_INVALID},
        {GL_INVALID_VALUE, "GL_INVALID_VALUE", KILN_E_INVALID},
        {GL_INVALID_OPERATION, "GL_INVALID_OPERATION", KILN_E_INVALID},
        {GL_INVALID_FRAMEBUFFER_OPERATION, "GL_INVALID_FRAMEBUFFER_OPERATION", KILN_E_INVALID},
        {GL_OUT_OF_MEMORY, "GL_OUT_OF_MEMORY", KILN_E_NOMEM},
        {CONTEXT_LOST, "GL_CONTEXT_LOST", KILN_E_DEVICE_LOST},
    };
    const char *name = "an unknown error";
    kiln_status status = KILN_E_INTERNAL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].code == code) {
            name = rows[i].name;
            status = rows[i].status;
        }
    }
    (void)kiln_diag_set(
        diag, status, status == KILN_E_NOMEM ? "free device memory, or use smaller buffers" : NULL,
        what, "the driver reports %s (0x%04x)", name, code);
    kiln_diag_set_vendor_code(diag, code);
    return status;
}

void kn_gl_forget(const kn_gl_api *gl)
{
    for (int i = 0; i < ERRORS_LIMIT && gl->glGetError() != GL_NO_ERROR; i++) {
    }
}

kiln_status kn_gl_check(const kn_gl_api *gl, const char *what, kiln_diag *diag)
{
    const GLenum code = gl->glGetError();
    if (code == GL_NO_ERROR) {
        return KILN_OK;
    }
    kn_gl_forget(gl);
    return kn_gl_fail(code, what, diag);
}

/* --- logs ------------------------------------------------------------------------------------- */

static const char *name_at(kn_gl_names names, size_t index)
{
    size_t at = 0;
    while (index > 0 && at < names.size) {
        at += strlen(names.text + at) + 1;
        index--;
    }
    return at < names.size ? names.text + at : NULL;
}

/* "0:12(5): error" (Mesa), "0(12) : error" (NVIDIA), "ERROR: 0:12:" (others): the number at the
 * start of a line becomes the file's name. */
static void name_line(const char *line, size_t length, kn_gl_names names, kn_strbuf *out)
{
    static const char *const prefixes[] = {"ERROR: ", "WARNING: "};
    size_t at = 0, number = 0;
    for (size_t i = 0; i < 2; i++) {
        const size_t size = strlen(prefixes[i]);
        at = length > size && memcmp(line, prefixes[i], size) == 0 ? size : at;
    }
    size_t end = at;
    while (end < length && end - at < 6 && isdigit((unsigned char)line[end]) != 0) {
        number = number * 10 + (size_t)(line[end++] - '0');
    }
    const char *name = end > at && end < length && (line[end] == ':' || line[end] == '(')
                           ? name_at(names, number)
                           : NULL;
    kn_strbuf_append(out, line, at);
    if (name != NULL) {
        kn_strbuf_append_text(out, name);
        at = end;
    }
    kn_strbuf_append(out, line + at, length - at);
}

static char *name_log(const char *log, kn_gl_names names)
{
    kn_strbuf out;
    kn_strbuf_init(&out, 4 * LOG_LIMIT);
    while (*log != '\0') {
        const size_t length = strcspn(log, "\n");
        const size_t whole = length + (log[length] == '\n');
        name_line(log, length, names, &out);
        kn_strbuf_append(&out, log + length, whole - length);
        log += whole;
    }
    char *text = out.length > 0 ? kn_strbuf_detach(&out, NULL) : NULL;
    kn_strbuf_deinit(&out);
    return text;
}

typedef void(APIENTRYP get_iv)(GLuint object, GLenum name, GLint *value);
typedef void(APIENTRYP get_log)(GLuint object, GLsizei size, GLsizei *length, GLchar *log);

/* The log of a shader or a program, malloc'ed; NULL if it is empty. */
static char *read_log(get_iv iv, get_log text, GLuint object, kn_gl_names names)
{
    GLint size = 0;
    iv(object, GL_INFO_LOG_LENGTH, &size);
    if (size <= 1 || size > LOG_LIMIT) {
        return NULL;
    }
    char *raw = (char *)calloc(1, (size_t)size + 1);
    if (raw == NULL) {
        return NULL;
    }
    text(object, size, NULL, raw);
    char *named = name_log(raw, names);
    free(raw);
    return named;
}

static kiln_status compile_error(const char *name, const char *why, const char *log,
                                 kiln_diag *diag)
{
    (void)kiln_diag_set(diag, KILN_E_COMPILE, "see the compiler's log", name, "%s", why);
    kiln_diag_set_log(diag, log != NULL ? log : "", log != NULL ? strlen(log) : 0);
    return KILN_E_COMPILE;
}

/* --- shaders and programs --------------------------------------------------------------------- */

kiln_status kn_gl_compile_shader(const kn_gl_api *gl, GLenum stage, const char *const *pieces,
                                 const GLint *lengths, GLsizei count, const char *name,
                                 kn_gl_names names, GLuint *out_shader, char **out_log,
                                 kiln_diag *diag)
{
    *out_shader = 0;
    *out_log = NULL;
    kn_gl_forget(gl);
    const GLuint shader = gl->glCreateShader(stage);
    if (shader == 0) {
        return kn_gl_fail(gl->glGetError(), "glCreateShader", diag);
    }
    gl->glShaderSource(shader, count, pieces, lengths);
    gl->glCompileShader(shader);
    GLint compiled = GL_FALSE;
    gl->glGetShaderiv(shader, GL_COMPILE_STATUS, &compiled);
    char *log = read_log(gl->glGetShaderiv, gl->glGetShaderInfoLog, shader, names);
    if (compiled == GL_FALSE) {
        kiln_status status = compile_error(name, "the OpenGL driver cannot compile it", log, diag);
        free(log);
        gl->glDeleteShader(shader);
        return status;
    }
    *out_shader = shader;
    *out_log = log;
    return KILN_OK;
}

kiln_status kn_gl_link(const kn_gl_api *gl, GLuint program, const char *name, kiln_diag *diag)
{
    GLint linked = GL_FALSE;
    gl->glLinkProgram(program);
    gl->glGetProgramiv(program, GL_LINK_STATUS, &linked);
    if (linked != GL_FALSE) {
        return kn_gl_check(gl, "glLinkProgram", diag);
    }
    char *log =
        read_log(gl->glGetProgramiv, gl->glGetProgramInfoLog, program, (kn_gl_names){NULL, 0});
    kn_gl_forget(gl);
    kiln_status status = compile_error(name, "the OpenGL driver cannot link it", log, diag);
    free(log);
    return status;
}

/* --- binaries --------------------------------------------------------------------------------- */

bool kn_gl_binary_is_sound(const kn_gl_facts *facts, uint32_t format, const void *data, size_t size)
{
    bool listed = false;
    for (size_t i = 0; i < facts->format_count; i++) {
        listed = listed || facts->formats[i] == format;
    }
    if (!listed || size == 0 || size > INT32_MAX) {
        return false;
    }
    if (format != FORMAT_MESA) {
        return true;
    }
    if (size <= MESA_HEADER) {
        return false;
    }
    /* Version 0, a digest of driver and device, the size of what follows, its checksum: numbers in
     * this machine's byte order. */
    uint32_t version = 0;
    uint32_t length = 0;
    memcpy(&version, data, sizeof(version));
    memcpy(&length, (const unsigned char *)data + MESA_LENGTH, sizeof(length));
    return version == 0 && length <= size - MESA_HEADER;
}

kiln_status kn_gl_load_binary(const kn_gl_api *gl, const kn_gl_facts *facts, GLuint program,
                              uint32_t format, const void *data, size_t size, const char *name,
                              kiln_diag *diag)
{
    GLint linked = GL_FALSE;
    if (!kn_gl_binary_is_sound(facts, format, data, size)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, name,
                             "the binary (format 0x%04x) is not one of this driver's", format);
    }
    kn_gl_forget(gl);
    gl->glProgramBinary(program, format, data, (GLsizei)size);
    gl->glGetProgramiv(program, GL_LINK_STATUS, &linked);
    kn_gl_forget(gl); /* the link status says it all */
    return linked != GL_FALSE ? KILN_OK
                              : kiln_diag_set(diag, KILN_E_REJECTED, NULL, name,
                                              "the driver refused the program binary");
}

kiln_status kn_gl_read_binary(const kn_gl_api *gl, GLuint program, const char *name,
                              uint32_t *out_format, void **out_data, size_t *out_size,
                              kiln_diag *diag)
{
    GLint size = 0;
    GLsizei length = 0;
    GLenum format = 0;
    *out_format = 0;
    *out_data = NULL;
    *out_size = 0;
    kn_gl_forget(gl);
    gl->glGetProgramiv(program, GL_PROGRAM_BINARY_LENGTH, &size);
    if (size <= 0 || size > BINARY_LIMIT) {
        kn_gl_forget(gl);
        return KILN_OK;
    }
    void *data = calloc(1, (size_t)size);
    if (data == NULL) {
        return kn_no_memory(diag, name);
    }
    gl->glGetProgramBinary(program, size, &length, &format, data);
    if (gl->glGetError() != GL_NO_ERROR || length <= 0 || length > size) {
        kn_gl_forget(gl);
        free(data);
        return KILN_OK; /* it has none to give after all */
    }
    *out_format = format;
    *out_data = data;
    *out_size = (size_t)length;
    return KILN_OK;
}
