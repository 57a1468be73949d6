/* Names of languages and of classes of devices, as the command writes and reads them. */
#ifndef KILN_UNSTABLE_NAMES_H
#define KILN_UNSTABLE_NAMES_H

#include "kiln/device.h"

KILN_BEGIN_DECLS

/* "c", "opencl-c", "cuda", "glsl", ...; the inverse; and the language that a file's name says it is
 * in (.c .cl .cu .hip .comp .glsl .spv .ptx .cubin).
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never; what is unknown
 * gives KILN_LANG_NONE. */
KILN_API const char *kiln_language_name(kiln_language language);
KILN_API kiln_language kiln_language_parse(const char *name);
KILN_API kiln_language kiln_language_of_path(const char *path);

/* "discrete", "integrated", "virtual", "software".
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never; "unknown". */
KILN_API const char *kiln_device_class_name(kiln_device_class device_class);

KILN_END_DECLS

#endif
