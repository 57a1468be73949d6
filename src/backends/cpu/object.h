/* ELF, as far as the cpu backend needs it: is this a shared object for that machine, which kernels
 * does it export, and what identifies a program file. Reads bytes with bounds; trusts nothing. */
#ifndef KILN_BACKENDS_CPU_OBJECT_H
#define KILN_BACKENDS_CPU_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/processor.h"

#define CPU_KERNEL_PREFIX "kiln_cpu_kernel_"

/* True for a whole 64-bit little-endian ELF shared object for `architecture`; else *out_why says
 * in one sentence what it is instead. */
bool kn_cpu_object_check(const void *data, size_t size, kn_architecture architecture,
                         const char **out_why);
/* The exported kernels' names without the prefix, borrowed from `data`, in the object's order. NULL
 * past the last. Only for objects that passed the check. */
const char *kn_cpu_object_kernel(const void *data, size_t size, size_t index);

/* What a program or library file is: "build-id:<hex>:<size>", or "xxh3:<hex>:<size>" of its bytes
 * where it has none. False if it cannot be read. `out_dynamic` marks an ELF program that the
 * system's loader starts. */
bool kn_cpu_object_identify(const char *path, char *id, size_t id_size, bool *out_dynamic);

#endif
