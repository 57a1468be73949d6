/* Shaders of dropin_opengl: of each stage, with what each kind of query is about. */
#ifndef KILN_TESTS_CONFORMANCE_DROPIN_OPENGL_SHADERS_H
#define KILN_TESTS_CONFORMANCE_DROPIN_OPENGL_SHADERS_H

#define VERSION "#version 430 core\n"
#define PLACES                                                                                     \
    "const vec2 places[3] = vec2[](vec2(-1, -1), vec2(3, -1), vec2(-1, 3));\n"                     \
    "out gl_PerVertex { vec4 gl_Position; };\n"

static const char vertex[] =
    VERSION PLACES "in vec4 place; in mat3 turn;\n"
                   "uniform float scale = 0.5; uniform vec3 list[4];\n"
                   "layout(std140) uniform Scene { mat4 view; float fade[3]; } scene;\n"
                   "out vec3 tint; out vec2 spot;\n"
                   "void main() {\n"
                   "  spot = places[gl_VertexID] * (1.0 + place.x);\n"
                   "  tint = vec3(scale, 1.0 / 3.0, 0.1) + list[1] * scene.fade[2] + turn[0] * "
                   "scene.view[0][0];\n"
                   "  gl_Position = vec4(spot, 0, 1);\n}\n";
static const char fragment[] =
    VERSION "in vec3 tint; in vec2 spot; out vec4 colour;\n"
            "layout(location = 3) uniform float gain = 0.25;\n"
            "uniform sampler2D image;\n"
            "subroutine vec3 shade(vec3 v);\n"
            "subroutine(shade) vec3 twice(vec3 v) { return v * 2.0; }\n"
            "subroutine(shade) vec3 half_of(vec3 v) { return v / 2.0; }\n"
            "subroutine uniform shade shading;\n"
            "void main() { colour = vec4(shading(tint) * sin(spot.x), "
            "gain) + texture(image, spot); }\n";
static const char simple_vertex[] =
    VERSION PLACES "out vec3 tint; out vec2 spot;\n"
                   "void main() { spot = places[gl_VertexID]; tint = vec3(0.2, 0.4, 0.7);\n"
                   "  gl_Position = vec4(spot, 0, 1); }\n";
static const char simple_fragment[] =
    VERSION "in vec3 tint; in vec2 spot; layout(location = 0) out vec4 colour; "
            "layout(location = 1) out vec4 second;\n"
            "void main() { colour = vec4(tint * exp(spot.y), 1); second = colour.bgra; }\n";
static const char plain_fragment[] =
    VERSION "#pragma optimize(off)\n#pragma debug(on)\n"
            "layout(location = 0) out vec4 colour;\nuniform float gain = 0.125;\n"
            "void main() { colour = vec4(gain, gl_FragCoord.xy / 3.0, 1); }\n";
static const char plain_vertex[] =
    VERSION "#pragma STDGL invariant(all)\n" PLACES
            "void main() { gl_Position = vec4(places[gl_VertexID], 0, 1); }\n";
static const char geometry[] =
    VERSION "layout(triangles, invocations = 2) in; layout(triangle_strip, max_vertices = 3) out;\n"
            "in gl_PerVertex { vec4 gl_Position; } gl_in[];\n"
            "out gl_PerVertex { vec4 gl_Position; };\n"
            "void main() { for (int i = 0; i < 3; i++) { gl_Position = gl_in[i].gl_Position * "
            "vec4(1, 0.5, 1, 1); EmitVertex(); } EndPrimitive(); }\n";
static const char control[] =
    VERSION "layout(vertices = 3) out;\n"
            "in gl_PerVertex { vec4 gl_Position; } gl_in[];\n"
            "out gl_PerVertex { vec4 gl_Position; } gl_out[];\npatch out float depth;\n"
            "void main() { gl_out[gl_InvocationID].gl_Position = "
            "gl_in[gl_InvocationID].gl_Position; depth = 0.5;\n"
            "  gl_TessLevelInner[0] = 2.0; for (int i = 0; i < 3; i++) gl_TessLevelOuter[i] = 2.0; "
            "}\n";
static const char evaluation[] =
    VERSION "layout(triangles, fractional_odd_spacing, cw) in;\n"
            "in gl_PerVertex { vec4 gl_Position; } gl_in[];\n"
            "out gl_PerVertex { vec4 gl_Position; };\npatch in float depth;\n"
            "void main() { gl_Position = gl_TessCoord.x * gl_in[0].gl_Position + gl_TessCoord.y * "
            "gl_in[1].gl_Position + gl_TessCoord.z * gl_in[2].gl_Position; gl_Position.z = depth; "
            "}\n";
static const char compute[] =
    VERSION "layout(local_size_x = 4, local_size_y = 2) in;\n"
            "layout(std430, binding = 0) buffer Words { float x[4]; uint words[]; };\n"
            "layout(binding = 1, offset = 4) uniform atomic_uint ticks;\n"
            "layout(binding = 2, rgba32f) uniform image2D picture;\n"
            "uniform uint unused, value;\n"
            "shared float part[8];\n"
            "void main() { part[gl_LocalInvocationIndex] = x[0] * x[1]; barrier();\n"
            "  if (gl_LocalInvocationIndex == 0u) { words[0] = floatBitsToUint(part[7]); words[1] "
            "= floatBitsToUint(x[2] * x[3] - 1.0); words[2] = value; words[3] = "
            "floatBitsToUint(sqrt(x[2])); words[4] = uint(imageSize(picture).x);\n"
            "    if (value == 77u) { words[5] = atomicCounterIncrement(ticks); } } }\n";
static const char precise_compute[] =
    VERSION "layout(local_size_x = 1) in;\n"
            "layout(std430, binding = 0) buffer Words { float x[4]; uint words[]; };\n"
            "void main() { precise float sum = x[2] * x[3] + (-1.0); float other = x[2] * x[3] + "
            "(-1.0); words[0] = floatBitsToUint(sum); words[1] = floatBitsToUint(other); }\n";

#endif
