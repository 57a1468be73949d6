/* The system's object files, as far as the cpu backend needs them: is this a shared object for that
 * machine, which kernels does it export, how is one asked for, and what identifies a program file.
 * object.c reads ELF, object_pe.c DLLs of Windows, identify.c any file. All read bytes with bounds
 * and trust nothing. */
#ifndef KILN_CPU_BACKEND_OBJECT_H
#define KILN_CPU_BACKEND_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/file.h"
#include "sys/processor.h"

#define CPU_KERNEL_PREFIX "kiln_cpu_kernel_"

/* True for a whole 64-bit shared object (ELF, or a DLL) for `architecture`; else *out_why says
 * in one sentence what it is instead. */
bool kn_cpu_object_check(const void *data, size_t size, kn_architecture architecture,
                         const char **out_why);
/* The exported kernels' names without the prefix, borrowed from `data`, in the object's order. NULL
 * past the last. Only for objects that passed the check. */
const char *kn_cpu_object_kernel(const void *data, size_t size, size_t index);

/* The compiler's options that make one, NULL after the last; and one more for the compiler that
 * calls itself `version`, or NULL. */
extern const char *const kn_cpu_object_flags[];
const char *kn_cpu_object_flag_for(const char *version);

/* Whether -v names the file that was started, so that one which starts another is seen. */
extern const bool kn_cpu_object_names_driver;

/* The build id of a file, where its format has one. `out_dynamic` as below. */
bool kn_cpu_object_build_id(const char *path, char *id, size_t id_size, bool *out_dynamic);

/* What a program or library file is: "build-id:<hex>:<size>", or "xxh3:<hex>:<size>" of its bytes
 * where it has none. False if it cannot be read. `out_dynamic` marks an ELF program that the
 * system's loader starts. */
bool kn_cpu_object_identify(const char *path, char *id, size_t id_size, bool *out_dynamic);

/* True for a file that begins with these two characters ("#!": a script); for one that holds this
 * text. */
bool kn_cpu_object_begins(const char *path, const char *two);
bool kn_cpu_object_holds(const char *path, const char *text);

#endif
