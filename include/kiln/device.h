/* Devices: what a backend found, described in plain fields.
 *
 * A device belongs to the runtime that listed it and lives as long as that runtime. */
#ifndef KILN_DEVICE_H
#define KILN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/export.h"
#include "kiln/status.h"

KILN_BEGIN_DECLS

typedef struct kiln_device kiln_device; /* borrowed from a runtime */

/* From fastest to slowest: the order in which selection prefers devices. */
typedef enum kiln_device_class {
    KILN_DEVICE_DISCRETE = 0,
    KILN_DEVICE_INTEGRATED = 1,
    KILN_DEVICE_VIRTUAL = 2,
    KILN_DEVICE_SOFTWARE = 3, /* runs on the host's processor: llvmpipe, lavapipe, PoCL, cpu */
} kiln_device_class;

/* Source and artifact languages. */
typedef enum kiln_language {
    KILN_LANG_NONE = 0,
    KILN_LANG_C,       /* C for the cpu backend, with <kiln_kernel.h> */
    KILN_LANG_BUILTIN, /* C kernels compiled into the program: a kiln_cpu_kernel table */
    KILN_LANG_OPENCL_C,
    KILN_LANG_CUDA, /* CUDA C++ */
    KILN_LANG_GLSL, /* GLSL compute */
    KILN_LANG_SPIRV,
    KILN_LANG_PTX,
    KILN_LANG_CUBIN,
    KILN_LANG_FATBIN,
    KILN_LANG_FAKE, /* the fake backend's toy language */
    KILN_LANG_HIP,  /* HIP C++ */
} kiln_language;

#define KILN_DEVICE_TEXT 256

/* Read-only after the device was listed. Text is UTF-8, empty where unknown; numbers 0. */
typedef struct kiln_device_info {
    size_t struct_size;
    char backend[32];
    char name[KILN_DEVICE_TEXT];
    char vendor[KILN_DEVICE_TEXT];
    char driver[KILN_DEVICE_TEXT];   /* driver version, as the driver writes it */
    char version[KILN_DEVICE_TEXT];  /* API version the device offers */
    char platform[KILN_DEVICE_TEXT]; /* OpenCL platform, GL vendor string, ... */
    /* Short name of what code is made for, and of a directory: "sm_90", "x86_64-avx512". */
    char target[64];
    char uuid[40]; /* hexadecimal, or empty */
    kiln_device_class device_class;
    uint32_t index; /* within its backend */
    uint32_t compute_units;
    uint32_t max_group_size; /* work-items in a work-group */
    uint32_t max_group_dim[3];
    uint32_t subgroup_size; /* warp or wavefront; 0 if unknown or variable */
    uint32_t address_bits;
    uint64_t memory_bytes;
    uint64_t max_buffer_bytes;
    uint64_t local_bytes; /* work-group memory */
    bool fp16, fp64, int8_dot, timestamps;
} kiln_device_info;

/* The description of a device; its struct_size is the library's.
 * Threads: any.   Blocks: never.
 * Owns: borrowed, lives as long as the runtime.
 * Fails: never. */
KILN_API const kiln_device_info *kiln_device_get_info(const kiln_device *device);

KILN_END_DECLS

#endif
