/* An OpenGL driver that lies, behind an EGL that does (tests/support/fakeegl). */
#include <string.h>

#include "unit/backends/lies_rig.h"

extern const kiln_backend kn_backend_opengl;

static const char *const queries[] = {
    "eglQueryDevicesEXT value",
    "glGetIntegerv:821d value",   /* GL_NUM_EXTENSIONS */
    "glGetIntegerv:821e value",   /* GL_CONTEXT_FLAGS */
    "glGetIntegerv:87fe value",   /* GL_NUM_PROGRAM_BINARY_FORMATS */
    "glGetIntegerv:90eb value",   /* GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS */
    "glGetIntegerv:8262 value",   /* GL_MAX_COMPUTE_SHARED_MEMORY_SIZE */
    "glGetIntegerv:90db value",   /* GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS */
    "glGetIntegerv:90df value",   /* GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT */
    "glGetIntegerv:8a34 value",   /* GL_UNIFORM_BUFFER_OFFSET_ALIGNMENT */
    "glGetIntegeri_v:91bf value", /* GL_MAX_COMPUTE_WORK_GROUP_SIZE */
    "glGetIntegeri_v:91be value", /* GL_MAX_COMPUTE_WORK_GROUP_COUNT */
    "glGetInteger64v:90de value", /* GL_MAX_SHADER_STORAGE_BLOCK_SIZE */
    "glGetQueryiv:8864 value",    /* GL_QUERY_COUNTER_BITS */
    "glGetQueryObjectui64v:8866 value",
    "glGetShaderiv:8b81 value",           /* GL_COMPILE_STATUS */
    "glGetShaderiv:8b84 value",           /* GL_INFO_LOG_LENGTH */
    "glGetProgramiv:8b82 value",          /* GL_LINK_STATUS */
    "glGetProgramiv:8b84 value",          /* GL_INFO_LOG_LENGTH */
    "glGetProgramiv:8741 value",          /* GL_PROGRAM_BINARY_LENGTH */
    "glGetProgramiv:8267 value",          /* GL_COMPUTE_WORK_GROUP_SIZE */
    "glGetProgramInterfaceiv:92e1 value", /* GL_UNIFORM */
    "glGetProgramInterfaceiv:92e2 value", /* GL_UNIFORM_BLOCK */
    "glGetProgramInterfaceiv:92e6 value", /* GL_SHADER_STORAGE_BLOCK */
    "glGetProgramResourceiv:9302 value",  /* GL_BUFFER_BINDING */
    "glGetProgramResourceiv:92fa value",  /* GL_TYPE */
    "glGetProgramResourceiv:92fb value",  /* GL_ARRAY_SIZE */
    "glGetProgramResourceiv:930e value",  /* GL_LOCATION */
    "glGetProgramResourceiv:92fd value",  /* GL_BLOCK_INDEX */
    "glGetProgramBinary length",
    "glGetProgramBinary value",
};

/* A program binary that cannot be read costs the cache, not the program. */
static const char *const builds[] = {"glGetProgramiv:8741 value", "glGetProgramBinary length",
                                     NULL};

static const char text[] = "#version 430\n"
                           "layout(local_size_x = 4, local_size_y = 2) in;\n"
                           "layout(location = 0) uniform uint amount;\n"
                           "layout(std430, binding = 0) buffer d { uint data[]; };\n"
                           "void main() { data[gl_GlobalInvocationID.x] += amount; }\n";

int main(int argc, char **argv)
{
    const lies_case what = {
        .backend = &kn_backend_opengl,
        .name = "opengl",
        .library = "libEGL.so.1",
        .dir = KILN_FAKE_DIR,
        .queries = queries,
        .query_count = sizeof(queries) / sizeof(*queries),
        .builds = builds,
        .language = KILN_LANG_GLSL,
        .text = text,
        .text_size = sizeof(text) - 1,
        .buffers = 1,
        .values = 1,
        .values_are_first = true,
    };
    return lies_run(&what, argc, argv);
}
