/* What the files of the OpenCL backend share: the instance, one unit for each device found, the
 * opened device. The functions that work on a bare context and device also serve
 * apis/opencl/dropin/calls.c; none of them knows a cache or a key.
 *
 * The operations of a device are in memory.c, launch.c, program.c and capture.c, those of the
 * instance in probe.c (open, close), unit.c, identity.c and compile.c (stages, targets, options,
 * the compile). */
#ifndef KILN_OPENCL_BACKEND_OPENCL_H
#define KILN_OPENCL_BACKEND_OPENCL_H

#include "apis/opencl/backend/symbols.h"
#include "base/strbuf.h"
#include "kiln/sys/backend.h"
#include "sys/thread.h"

/* One device of one platform. */
typedef struct kn_opencl_unit {
    cl_platform_id platform;
    cl_device_id device;
    kiln_device_info info;
    char platform_version[KILN_DEVICE_TEXT];
    bool has_icd;              /* handles begin with a dispatch table (cl_khr_icd) */
    bool is_pocl;              /* compiles work-group functions at launch: capture.c */
    bool takes_linker;         /* PoCL to 6: ends the process where it finds no ld to link with */
    bool takes_spirv;          /* clCreateProgramWithIL */
    uint32_t offset_alignment; /* of a sub-buffer, in bytes */
    uint32_t capability;       /* NVIDIA's: 90 for sm_90; 0 for all others */
    char *modules;             /* identity.c: lines "name build-id", NULL until asked for */
} kn_opencl_unit;

typedef struct kn_opencl {
    const kiln_host *host;
    kn_dylib *lib;
    kn_opencl_api api;
    kn_opencl_unit *units;
    size_t unit_count;
    kn_mutex lock; /* guards `modules` of the units */
} kn_opencl;

typedef struct kn_opencl_device {
    kn_opencl *cl;
    const kn_opencl_unit *unit;
    cl_context context;
} kn_opencl_device;

typedef struct kn_opencl_buffer {
    cl_mem memory;
    size_t size;
} kn_opencl_buffer;

extern const kiln_backend kn_backend_opencl;

/* --- unit.c: one device described ------------------------------------------------------------- */

/* Fills a unit from the device; KILN_E_UNSUPPORTED when the device or its platform is older than
 * OpenCL 1.2. Nothing in a unit of one's own needs releasing but `modules` (free). */
kiln_status kn_opencl_unit_init(const kn_opencl_api *api, cl_platform_id platform,
                                cl_device_id device, kn_opencl_unit *unit, kiln_diag *diag);
/* Text of a platform, cut to size; "" when it does not say. */
void kn_opencl_platform_text(const kn_opencl_api *api, cl_platform_id platform,
                             cl_platform_info name, char *text, size_t size);

/* --- identity.c ------------------------------------------------------------------------------- */

/* The code-generating libraries of a unit, as lines "name build-id"; malloc'ed. */
kiln_status kn_opencl_modules_find(const kn_opencl_api *api, const kn_opencl_unit *unit,
                                   char **out_modules, kiln_diag *diag);
/* The same for a unit of an instance, looked for once and kept in it. */
kiln_status kn_opencl_unit_modules(kn_opencl *cl, kn_opencl_unit *unit, kiln_diag *diag);
/* Emits what code for this unit depends on besides source and options. `host` remembers what files
 * hold. */
void kn_opencl_identify_unit(const kn_opencl_api *api, const kn_opencl_unit *unit,
                             const char *modules, const kiln_host *host,
                             const kiln_identity *identity);

/* --- binary.c: programs from source, from binaries, and back ---------------------------------- */

typedef struct kn_opencl_site {
    const kn_opencl_api *api;
    cl_context context;
    cl_device_id device;
} kn_opencl_site;

/* The build log for the site's device, without blank lines at its end; malloc'ed, NULL when there
 * is nothing to read. */
char *kn_opencl_build_log(const kn_opencl_site *site, cl_program program);
/* Compiles text (or SPIR-V). *out_log (malloc'ed or NULL) holds warnings. KILN_E_COMPILE puts the
 * whole log into the diag. */
kiln_status kn_opencl_build_source(const kn_opencl_site *site, kiln_language language,
                                   const void *text, size_t length, const char *options,
                                   cl_program *out_program, char **out_log, kiln_diag *diag);
/* Loads a binary with the options that it was built with: drivers finish code when they load it or
 * at the first launch, by the options of the program that they see then. KILN_E_REJECTED when the
 * driver will not have it. */
kiln_status kn_opencl_build_binary(const kn_opencl_site *site, bool is_pocl, const void *data,
                                   size_t size, const char *options, cl_program *out_program,
                                   kiln_diag *diag);
/* The program's binary for the site's device, malloc'ed; *out_size 0 (and KILN_OK) when the driver
 * has none to give. */
kiln_status kn_opencl_read_binary(const kn_opencl_site *site, cl_program program, void **out_data,
                                  size_t *out_size, kiln_diag *diag);

/* The names of its kernels as CL_PROGRAM_KERNEL_NAMES gives them; malloc'ed, NULL if the driver
 * gives none. Not for NVIDIA's driver (nvidia.c). */
char *kn_opencl_program_names(const kn_opencl_api *api, cl_program program);

/* --- handles.c: the kernels of a program ------------------------------------------------------ */

/* Makes all kernels of a program that is built. `names`, with ';' between them, are all that it
 * has, or NULL where they are not known. *out_kernels is malloc'ed, NULL on failure. */
kiln_status kn_opencl_handles_create(const kn_opencl_site *site, cl_program program,
                                     const char *names, size_t length, cl_kernel **out_kernels,
                                     size_t *out_count, kiln_diag *diag);
/* Makes each of `names` by its name. KILN_E_REJECTED: the program lacks one. */
kiln_status kn_opencl_handles_named(const kn_opencl_site *site, cl_program program,
                                    const char *names, size_t length, cl_kernel **out_kernels,
                                    size_t *out_count, kiln_diag *diag);
/* Releases them, and frees the list. */
void kn_opencl_handles_release(const kn_opencl_api *api, cl_kernel *kernels, size_t count);

/* --- pocl.c: what one has to know about PoCL's binaries and files ----------------------------- */

#define KN_POCL_HEADER 77u /* magic, device, version, counts, flags and the hash of the program */

/* False when the bytes cannot be a whole PoCL binary. PoCL itself walks the lengths in a binary
 * without looking where they lead, and aborts or worse on damaged ones. */
bool kn_pocl_binary_is_sound(const void *data, size_t size);

/* True for the path of a library that such a PoCL has made and loaded for a launch of one of
 * `names`, which are parted by semicolons as CL_PROGRAM_KERNEL_NAMES gives them. */
bool kn_pocl_is_code_of(const char *path, const char *names);

/* False where POCL_WORK_GROUP_SPECIALIZATION says that launches take the functions for any shape,
 * which are in every binary. */
bool kn_pocl_specializes(void);

/* Whether the platform's version is one of a PoCL that links with ld; and KILN_E_UNAVAILABLE where
 * a unit does and none is on $PATH. To be asked before PoCL makes code of a kernel. */
bool kn_pocl_takes_linker(const char *platform_version);
kiln_status kn_pocl_check_linker(bool takes_linker, kiln_diag *diag);

/* KILN_E_UNSUPPORTED for a program whose binary PoCL cannot make: it names a file after each
 * kernel, and aborts the process where the name is too long for one. To be asked before its binary
 * is. */
kiln_status kn_pocl_check_names(const kn_opencl_api *api, cl_program program, kiln_diag *diag);

/* --- pocl_files.c: headers and libraries that PoCL's compiler reads --------------------------- */

#define KN_POCL_DIGEST 33u /* with its NUL */

/* The directory of the files of the PoCL whose library is mapped from `library`, malloc'ed; NULL:
 * there is none. */
char *kn_pocl_files_dir(const char *library);
/* What the files in it hold. False if one cannot be read. Blocks: disk. */
bool kn_pocl_files_digest(const char *dir, const kiln_host *host, char digest[KN_POCL_DIGEST]);
/* Why it is unknown which files PoCL takes; NULL: it is known. */
const char *kn_pocl_files_reason(void);

/* --- nvidia.c: machine code of PTX ------------------------------------------------------------ */

/* True for the driver's binary of a program of which code can be made: it is PTX for exactly this
 * capability and has kernels, and its options leave nothing to the driver's own assembler. */
bool kn_nvidia_can_assemble(uint32_t capability, const void *data, size_t size,
                            const char *options);
/* Appends the code that ptxas makes of such PTX, or a note that it refused it. Starts a child
 * process, calls no driver. KILN_E_UNAVAILABLE where there is no ptxas, or it was killed. */
kiln_status kn_nvidia_assemble(uint32_t capability, const char *ptx, kn_strbuf *out,
                               kiln_diag *diag);
/* False where the driver must not be asked for a program's list of kernels, whose names have so
 * many bytes in all: neither for CL_PROGRAM_KERNEL_NAMES or CL_PROGRAM_NUM_KERNELS nor by
 * clCreateKernelsInProgram. NVIDIA's (580.159) writes past its own memory then, with three names of
 * 200 bytes or one of 1,000. */
bool kn_nvidia_lists_kernels(const kn_opencl_site *site, size_t names);
/* Appends the names of a program's kernels, with ';' between them, where the driver is NVIDIA's and
 * gives PTX; nothing elsewhere. */
void kn_nvidia_names(const kn_opencl_site *site, cl_program program, kn_strbuf *names);
/* Loads the code. False where there is none, the driver refuses it or does not find all kernels in
 * it: then it is to be given the PTX. */
bool kn_nvidia_load(const kn_opencl_site *site, const void *code, size_t size, const char *options,
                    cl_program *out_program);
/* PTX and code in one piece, and the code in such a piece: *size becomes that of the PTX in front.
 * NULL for what is none. */
void kn_nvidia_join(const void *ptx, size_t size, const kn_strbuf *code, kn_strbuf *out);
const void *kn_nvidia_split(const void *data, size_t *size, size_t *out_code_size);

/* --- the backend's operations: see kiln/sys/backend.h ----------------------------------------- */

#define KN_OPERATION(name) kn_opencl_##name
#include "hal/operations.h"

kiln_status kn_opencl_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                           kiln_diag *diag);
void kn_opencl_close(void *instance);

extern const kiln_include_rules kn_opencl_include_rules;

#endif
