/* The text behind `#include <kiln.glsl>`: what lets one compute shader serve Vulkan and OpenGL. A
 * change here must raise the revision of every stage that compiles GLSL. */
#ifndef KILN_HAL_GLSL_PRELUDE_H
#define KILN_HAL_GLSL_PRELUDE_H

/* Values given at launch: a push constant block under Vulkan, numbered uniforms under OpenGL.
 *     KILN_VALUES_BEGIN
 *     KILN_VALUE(0, float, a)
 *     KILN_VALUE(1, uint, n)
 *     KILN_VALUES_END
 *
 * KILN_BUFFER(binding, type, name) declares a storage buffer of a run-time length, in std430
 * layout; buffers are bound in the order of their bindings. */
static const char kn_glsl_prelude[] =
    "#ifndef KILN_GLSL\n"
    "#define KILN_GLSL 1\n"
    "#ifdef VULKAN\n"
    "#define KILN_VALUES_BEGIN layout(push_constant) uniform kiln_values_block {\n"
    "#define KILN_VALUE(index, type, name) type name;\n"
    "#define KILN_VALUES_END };\n"
    "#define KILN_BUFFER(slot, type, name) \\\n"
    "    layout(std430, set = 0, binding = slot) buffer kiln_buffer_##name { type name[]; };\n"
    "#else\n"
    "#define KILN_VALUES_BEGIN\n"
    "#define KILN_VALUE(index, type, name) layout(location = index) uniform type name;\n"
    "#define KILN_VALUES_END\n"
    "#define KILN_BUFFER(slot, type, name) \\\n"
    "    layout(std430, binding = slot) buffer kiln_buffer_##name { type name[]; };\n"
    "#endif\n"
    "#endif\n";

#endif
