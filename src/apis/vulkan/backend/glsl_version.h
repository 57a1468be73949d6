/* What #version a GLSL text has, found as glslang finds it before it reads anything else. */
#ifndef KILN_VULKAN_BACKEND_GLSL_VERSION_H
#define KILN_VULKAN_BACKEND_GLSL_VERSION_H

#include <stddef.h>

/* The number after the first `#version` at the beginning of a line, comments apart. 0: there is no
 * such line, or no number in it. */
int kn_glsl_version(const char *text, size_t length);

#endif
