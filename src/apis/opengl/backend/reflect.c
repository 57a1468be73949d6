/* What a linked program takes, asked of the driver: buffers by binding, values by location, the
 * work-group size. Specification: OpenGL 4.6, 7.3.1 (program interfaces). */
#include <string.h>

#include "apis/opengl/backend/opengl.h"

static const struct {
    GLenum type;
    uint32_t parts, bytes; /* components, bytes of each */
    char base;             /* f, i, u, d */
    const char *name;
} types[] = {
    {GL_FLOAT, 1, 4, 'f', "float"},
    {GL_FLOAT_VEC2, 2, 4, 'f', "vec2"},
    {GL_FLOAT_VEC3, 3, 4, 'f', "vec3"},
    {GL_FLOAT_VEC4, 4, 4, 'f', "vec4"},
    {GL_INT, 1, 4, 'i', "int"},
    {GL_INT_VEC2, 2, 4, 'i', "ivec2"},
    {GL_INT_VEC3, 3, 4, 'i', "ivec3"},
    {GL_INT_VEC4, 4, 4, 'i', "ivec4"},
    {GL_UNSIGNED_INT, 1, 4, 'u', "uint"},
    {GL_UNSIGNED_INT_VEC2, 2, 4, 'u', "uvec2"},
    {GL_UNSIGNED_INT_VEC3, 3, 4, 'u', "uvec3"},
    {GL_UNSIGNED_INT_VEC4, 4, 4, 'u', "uvec4"},
    {GL_BOOL, 1, 4, 'i', "bool"},
    {GL_DOUBLE, 1, 8, 'd', "double"},
    {GL_DOUBLE_VEC2, 2, 8, 'd', "dvec2"},
    {GL_DOUBLE_VEC3, 3, 8, 'd', "dvec3"},
    {GL_DOUBLE_VEC4, 4, 8, 'd', "dvec4"},
};
enum { TYPE_COUNT = sizeof(types) / sizeof(types[0]) };

static size_t find_type(GLenum type)
{
    size_t i = 0;
    while (i < TYPE_COUNT && types[i].type != type) {
        i++;
    }
    return i;
}

size_t kn_gl_value_size(const kn_gl_value *value, const char **out_type)
{
    const size_t row = find_type(value->type);
    *out_type = row < TYPE_COUNT ? types[row].name : "";
    return row < TYPE_COUNT ? (size_t)types[row].parts * types[row].bytes * (size_t)value->count
                            : 0;
}

/* glProgramUniform<parts><base>v differ in the pointer's type only. */
#define SET(suffix, type)                                                                          \
    {                                                                                              \
        const type *v = (const type *)data;                                                        \
        switch (types[row].parts) {                                                                \
        case 1:                                                                                    \
            gl->glProgramUniform1##suffix(program, at, count, v);                                  \
            return;                                                                                \
        case 2:                                                                                    \
            gl->glProgramUniform2##suffix(program, at, count, v);                                  \
            return;                                                                                \
        case 3:                                                                                    \
            gl->glProgramUniform3##suffix(program, at, count, v);                                  \
            return;                                                                                \
        default:                                                                                   \
            gl->glProgramUniform4##suffix(program, at, count, v);                                  \
            return;                                                                                \
        }                                                                                          \
    }

void kn_gl_value_set(const kn_gl_api *gl, GLuint program, const kn_gl_value *value,
                     const void *data)
{
    const size_t row = find_type(value->type);
    const GLint at = value->location;
    const GLsizei count = value->count;
    if (row == TYPE_COUNT) {
        return; /* refused when the program was made */
    }
    switch (types[row].base) {
    case 'f':
        SET(fv, GLfloat)
    case 'i':
        SET(iv, GLint)
    case 'u':
        SET(uiv, GLuint)
    default:
        SET(dv, GLdouble)
    }
}

static kiln_status refuse_shader(const char *name, const char *why, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED,
                         "use storage buffers, and plain numbers and vectors as uniforms", name,
                         "%s", why);
}

#define MOST_RESOURCES 65536 /* each of them is asked about */

static kiln_status count_resources(const kn_gl_api *gl, GLuint program, GLenum kind,
                                   const char *name, GLint *out_count, kiln_diag *diag)
{
    *out_count = 0;
    gl->glGetProgramInterfaceiv(program, kind, GL_ACTIVE_RESOURCES, out_count);
    return *out_count <= MOST_RESOURCES
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INTERNAL, "update the OpenGL driver", name,
                               "the driver says that it takes %d blocks or values", *out_count);
}

/* Blocks that share a binding are views of one buffer. */
static bool is_bound(const kn_gl_interface *in, GLint binding, bool uniform)
{
    for (size_t i = 0; i < in->binding_count; i++) {
        if (in->bindings[i].uniform == uniform && (GLint)in->bindings[i].binding == binding) {
            return true;
        }
    }
    return false;
}

static kiln_status add_blocks(const kn_gl_api *gl, GLuint program, bool uniform, const char *name,
                              kn_gl_interface *out, kiln_diag *diag)
{
    static const GLenum wanted[] = {GL_BUFFER_BINDING};
    const GLenum kind = uniform ? GL_UNIFORM_BLOCK : GL_SHADER_STORAGE_BLOCK;
    GLint count = 0;
    kiln_status status = count_resources(gl, program, kind, name, &count, diag);
    for (GLint i = 0; status == KILN_OK && i < count; i++) {
        GLint binding = 0;
        gl->glGetProgramResourceiv(program, kind, (GLuint)i, 1, wanted, 1, NULL, &binding);
        if (is_bound(out, binding, uniform)) {
            continue;
        }
        if (out->binding_count == KN_GL_MAX_BUFFERS || binding < 0) {
            return refuse_shader(name, "it takes more than 32 buffers", diag);
        }
        const kn_gl_binding added = {(uint32_t)binding, uniform};
        size_t place = out->binding_count++;
        for (; place > 0 && out->bindings[place - 1].binding > added.binding; place--) {
            out->bindings[place] = out->bindings[place - 1];
        }
        out->bindings[place] = added;
    }
    return status;
}

static kiln_status add_values(const kn_gl_api *gl, GLuint program, const char *name,
                              kn_gl_interface *out, kiln_diag *diag)
{
    static const GLenum wanted[] = {GL_TYPE, GL_ARRAY_SIZE, GL_LOCATION, GL_BLOCK_INDEX};
    GLint count = 0;
    kiln_status status = count_resources(gl, program, GL_UNIFORM, name, &count, diag);
    for (GLint i = 0; status == KILN_OK && i < count; i++) {
        GLint facts[4] = {0, 0, -1, -1};
        kn_gl_value value = {.location = -1};
        gl->glGetProgramResourceiv(program, GL_UNIFORM, (GLuint)i, 4, wanted, 4, NULL, facts);
        if (facts[3] >= 0) {
            continue; /* of a block: it comes in a buffer */
        }
        value.type = (GLenum)facts[0];
        value.count = facts[1];
        value.location = facts[2];
        gl->glGetProgramResourceName(program, GL_UNIFORM, (GLuint)i,
                                     (GLsizei)sizeof(value.name) - 1, NULL, value.name);
        if (value.location < 0 || find_type(value.type) == TYPE_COUNT) {
            return refuse_shader(name, "it uses images, samplers, counters or matrices", diag);
        }
        if (out->value_count == KN_GL_MAX_VALUES) {
            return refuse_shader(name, "it takes more than 32 values", diag);
        }
        size_t place = out->value_count++;
        for (; place > 0 && out->values[place - 1].location > value.location; place--) {
            out->values[place] = out->values[place - 1];
        }
        out->values[place] = value;
    }
    return status;
}

kiln_status kn_gl_reflect(const kn_gl_api *gl, GLuint program, const char *name,
                          kn_gl_interface *out_interface, kiln_diag *diag)
{
    GLint local[3] = {0, 0, 0};
    memset(out_interface, 0, sizeof(*out_interface));
    gl->glGetProgramiv(program, GL_COMPUTE_WORK_GROUP_SIZE, local);
    for (int i = 0; i < 3; i++) {
        out_interface->local[i] = local[i] > 0 ? (uint32_t)local[i] : 1;
    }
    kiln_status status = add_blocks(gl, program, false, name, out_interface, diag);
    if (status == KILN_OK) {
        status = add_blocks(gl, program, true, name, out_interface, diag);
    }
    if (status == KILN_OK) {
        status = add_values(gl, program, name, out_interface, diag);
    }
    return status == KILN_OK ? kn_gl_check(gl, "glGetProgramResourceiv", diag) : status;
}
