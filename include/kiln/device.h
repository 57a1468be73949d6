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

/* "discrete", "integrated", "virtual", "software".
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never; "unknown". */
KILN_API const char *kiln_device_class_name(kiln_device_class device_class);

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

/* "c", "opencl-c", "cuda", "glsl", ...; the inverse; and the language that a file's name says it is
 * in (.c .cl .cu .hip .comp .glsl .spv .ptx .cubin).
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never; what is unknown
 * gives KILN_LANG_NONE. */
KILN_API const char *kiln_language_name(kiln_language language);
KILN_API kiln_language kiln_language_parse(const char *name);
KILN_API kiln_language kiln_language_of_path(const char *path);

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
KILN_API const kiln_device_info *kiln_device_properties(const kiln_device *device);

/* X(name, text). What a backend said when it was asked whether it can work. */
#define KILN_PROBE_MAP(X)                                                                          \
    X(KILN_PROBE_READY, "ready")                                                                   \
    X(KILN_PROBE_LIBRARY_MISSING, "library missing")                                               \
    X(KILN_PROBE_LIBRARY_UNUSABLE, "library unusable") /* stub, wrong ELF class, unresolved */     \
    X(KILN_PROBE_SYMBOL_MISSING, "symbol missing")                                                 \
    X(KILN_PROBE_DRIVER_TOO_OLD, "driver too old")                                                 \
    X(KILN_PROBE_NO_DEVICE, "no device")                                                           \
    X(KILN_PROBE_NO_PERMISSION, "no permission")                                                   \
    X(KILN_PROBE_FAILED, "failed")                                                                 \
    X(KILN_PROBE_CRASHED, "crashed")                                                               \
    X(KILN_PROBE_TIMED_OUT, "timed out")                                                           \
    X(KILN_PROBE_SKIPPED, "skipped") /* not asked for */

/* One of them. */
typedef enum kiln_probe_outcome {
#define KILN_PROBE_ENUM(name, text) name,
    KILN_PROBE_MAP(KILN_PROBE_ENUM)
#undef KILN_PROBE_ENUM
} kiln_probe_outcome;

/* The outcome's text in KILN_PROBE_MAP.
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never; "unknown". */
KILN_API const char *kiln_probe_outcome_name(kiln_probe_outcome outcome);

/* One backend's answer. `why` is one sentence, `fix` what to do about it. A backend that fills one
 * leaves struct_size alone. */
typedef struct kiln_probe_report {
    size_t struct_size;
    kiln_probe_outcome outcome;
    char backend[32];
    char library[512]; /* file that was opened, or looked for */
    char version[128]; /* of the library or driver */
    char why[768];
    char fix[512];
    uint32_t device_count;
    uint64_t probe_ns;
    bool remembered; /* from an earlier probe: the backend has not been opened in this process */
} kiln_probe_report;

KILN_END_DECLS

#endif
