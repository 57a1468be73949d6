/* The kernel that bench_warm starts, and the driver calls by hand that it is compared with. */
#ifndef KILN_BENCH_WARM_H
#define KILN_BENCH_WARM_H

#include <stdbool.h>
#include <stddef.h>

enum { WARM_SIZE = 64, WARM_GROUP = 8 };

extern const char warm_opencl_text[];

/* From a ready device to the result by OpenCL's own calls: the program comes from the binary in
 * `path`. Prints "load first" in microseconds. False if OpenCL or the binary is not there. */
bool warm_opencl_by_hand(const char *path);

/* The same by Vulkan's: pipeline data in `path`, SPIR-V in `path`.spv; and by OpenGL's, whose
 * binary warm_opengl_export writes. */
extern const char warm_glsl_text[];
bool warm_vulkan_by_hand(const char *path);
bool warm_opengl_by_hand(const char *path);
bool warm_opengl_export(const char *path);
/* Destroy what the last of them has made, as a program on kiln does. */
void warm_opencl_destroy(void);
void warm_vulkan_destroy(void);
void warm_opengl_destroy(void);

/* From source by the driver's own calls, and with kiln_opencl_build_program in their place; print
 * the same. Vulkan's source is the SPIR-V in `path`.spv. */
bool warm_opencl_plain(void);
bool warm_opencl_dropin(void);
bool warm_vulkan_plain(const char *path);
/* Vulkan's with shaderc before it, which lies in `library`; its result, malloc'ed. */
bool warm_vulkan_from_text(const char *library);
unsigned char *warm_shaderc_compile(const char *library, size_t *out_size);
bool warm_opengl_plain(void);

/* kiln_nvrtc_compile against a CUBIN in a file: the whole comparison, and its two children. */
int warm_nvrtc_measure(const char *self, const char *root);
int warm_nvrtc_child(const char *kernel, const char *save);
int warm_nvrtc_by_hand(const char *path);

#endif
