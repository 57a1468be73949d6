/* The state of the cuda backend: the libraries that were found, the devices, and what the files of
 * this directory share. Knows no key and no store. */
#ifndef KILN_CUDA_INSTANCE_H
#define KILN_CUDA_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cuda/types.h"
#include "kiln/sys/backend.h"
#include "sys/dylib.h"
#include "sys/thread.h"

#define X(since, need, ret, name, args) ret(*name) args;
typedef struct kn_cuda_driver {
#include "backends/cuda/driver.def"
} kn_cuda_driver;

typedef struct kn_cuda_nvrtc {
#include "backends/cuda/nvrtc.def"
} kn_cuda_nvrtc;

typedef struct kn_cuda_nvjitlink {
#include "backends/cuda/nvjitlink.def"
} kn_cuda_nvjitlink;
#undef X

extern const kn_symbol kn_cuda_driver_symbols[];
extern const size_t kn_cuda_driver_symbol_count;
extern const kn_symbol kn_cuda_nvrtc_symbols[];
extern const size_t kn_cuda_nvrtc_symbol_count;
extern const kn_symbol kn_cuda_nvjitlink_symbols[];
extern const size_t kn_cuda_nvjitlink_symbol_count;

enum { KN_CUDA_MAX_DEVICES = 64, KN_CUDA_PATH = 512, KN_CUDA_ID = 144, KN_CUDA_FACT = 32 };

/* A library of the toolkit as it lies on disk: named in keys without being opened. */
typedef struct kn_cuda_file {
    char path[KN_CUDA_PATH]; /* "" if there is none */
    char build_id[KN_CUDA_ID];
} kn_cuda_file;

typedef struct kn_cuda_toolkit {
    kn_cuda_file nvrtc, builtins, nvjitlink;
    int major, minor;              /* from the builtins' file name; 0 if unknown */
    char include[2][KN_CUDA_PATH]; /* the toolkit's own headers, "" past the last */
} kn_cuda_toolkit;

typedef struct kn_cuda {
    const kiln_host *host;
    uint32_t process; /* that called cuInit: a forked child must not use the driver */

    kn_dylib *driver_lib;
    kn_cuda_driver driver; /* usable when driver_version > 0 */
    int driver_version;
    char driver_text[64];             /* "580.159.04", or "" */
    char driver_build_id[KN_CUDA_ID]; /* of the mapped libcuda */
    int device_count;
    CUdevice devices[KN_CUDA_MAX_DEVICES];

    kn_cuda_toolkit toolkit;
    kn_mutex lock; /* the fields below: NVRTC and nvJitLink are opened at the first compile */
    kn_dylib *builtins_lib, *nvrtc_lib, *nvjitlink_lib;
    kn_cuda_nvrtc nvrtc;
    kn_cuda_nvjitlink nvjitlink;
} kn_cuda;

/* What code is made for: kiln_target.handle. */
typedef struct kn_cuda_target {
    int arch;          /* 90 for sm_90 */
    char suffix;       /* 'a' or 'f' for sm_90a, else 0 */
    bool virtual_only; /* compute_90: PTX is what was asked for */
    bool exact;        /* NVRTC of this toolkit makes machine code for it */
} kn_cuda_target;

typedef struct kn_cuda_device {
    kn_cuda *cuda;
    CUdevice device;
    CUcontext context; /* the primary one, shared with the host program's runtime */
} kn_cuda_device;

/* locate.c: candidates for libcuda (NULL-terminated), and the toolkit by files. */
const char *const *kn_cuda_driver_names(void);
void kn_cuda_toolkit_find(kn_cuda_toolkit *out_toolkit);

/* probe.c */
kiln_status kn_cuda_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                         kiln_diag *diag);
void kn_cuda_close(void *instance);
kiln_status kn_cuda_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                                kiln_diag *diag);

/* nvrtc.c: the compiler library, opened and bound at the first call; its image is compared with the
 * file that the key named. */
kiln_status kn_cuda_nvrtc_get(kn_cuda *cuda, const kn_cuda_nvrtc **out_nvrtc, kiln_diag *diag);
/* The same without opening it: NULL while no compile in this process has needed it. */
const kn_cuda_nvrtc *kn_cuda_nvrtc_bound(kn_cuda *cuda);
kiln_status kn_cuda_nvjitlink_get(kn_cuda *cuda, const kn_cuda_nvjitlink **out_link,
                                  kiln_diag *diag);

/* target.c */
const kiln_stage *kn_cuda_stages(void *instance, const kiln_target *target, kiln_language language,
                                 size_t *out_count);
kiln_status kn_cuda_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                     kiln_diag *diag);
kiln_status kn_cuda_target_parse(void *instance, const char *name, kiln_target *out_target,
                                 kiln_diag *diag);
void kn_cuda_target_destroy(void *instance, kiln_target *target);
/* The highest virtual architecture that this toolkit has and the device is not below: what PTX is
 * made for. */
int kn_cuda_virtual_arch(const kn_cuda_toolkit *toolkit, int wanted);

/* identity.c */
kiln_status kn_cuda_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                             const kiln_identity *identity, kiln_diag *diag);
const char *kn_cuda_system_include_dir(void *instance, const kiln_target *target, size_t index);
bool kn_cuda_ships_header(void *instance, const kiln_target *target, const char *name);
const char *kn_cuda_uncacheable_option(void *instance, const kiln_source *source);
uint32_t kn_cuda_option_effects(void *instance, const kiln_source *source);

/* compile.c, jit.c */
/* The fact that keeps the lowered name of an entry, by its place: a fact's name is short, and a
 * name expression may be a page long. src/dropin/cuda.c asks for the same. */
void kn_cuda_lowered_fact(char out_name[KN_CUDA_FACT], size_t entry);
kiln_status kn_cuda_compile(void *instance, const kiln_compile_request *request,
                            kiln_artifact *artifact, void **out_live, kiln_diag *diag);
kiln_status kn_cuda_jit(kn_cuda *cuda, const kiln_compile_request *request, kiln_artifact *artifact,
                        kiln_diag *diag);
kiln_status kn_cuda_lto_link(kn_cuda *cuda, const kiln_compile_request *request, const void *ir,
                             size_t size, const char *name, kiln_artifact *artifact,
                             kiln_diag *diag);

/* status.c: a CUresult as status and diag; `what` is the call. */
kiln_status kn_cuda_fail(const kn_cuda *cuda, CUresult result, const char *what, kiln_diag *diag);

/* device.c: makes the device's context current for a few calls; every enter that succeeds is paired
 * with a leave on the same thread, which restores what was current before. */
kiln_status kn_cuda_enter(const kn_cuda_device *device, kiln_diag *diag);
void kn_cuda_leave(const kn_cuda_device *device);

/* image.c: false for a CUBIN or fat binary that was cut off. */
bool kn_cuda_image_is_whole(const void *data, size_t size);

/* memory.c, program.c, launch.c fill the device table in backend.c. */
kiln_status kn_cuda_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag);
void kn_cuda_device_close(void *device);
kiln_status kn_cuda_buffer_create(void *device, size_t size, void **out_buffer, kiln_diag *diag);
void kn_cuda_buffer_destroy(void *device, void *buffer);
kiln_status kn_cuda_buffer_wrap(void *device, uint64_t address, size_t size, void **out_buffer,
                                kiln_diag *diag);
uint64_t kn_cuda_buffer_address(void *device, void *buffer);
CUdeviceptr kn_cuda_buffer_pointer(const void *buffer);
kiln_status kn_cuda_queue_write(void *queue, void *buffer, size_t offset, const void *data,
                                size_t size, void **out_event, kiln_diag *diag);
kiln_status kn_cuda_queue_read(void *queue, void *buffer, size_t offset, void *data, size_t size,
                               void **out_event, kiln_diag *diag);
kiln_status kn_cuda_queue_fill(void *queue, void *buffer, size_t offset, const void *pattern,
                               size_t pattern_size, size_t size, kiln_diag *diag);
kiln_status kn_cuda_queue_copy(void *queue, void *from, size_t from_offset, void *to,
                               size_t to_offset, size_t size, kiln_diag *diag);

kiln_status kn_cuda_program_load(void *device, const kiln_load_request *request, void **out_program,
                                 kiln_diag *diag);
void kn_cuda_program_unload(void *device, void *program);
const char *kn_cuda_program_entry(void *device, void *program, size_t index);
kiln_status kn_cuda_program_params(void *device, void *program, const char *entry,
                                   const kiln_param **out_params, size_t *out_count,
                                   kiln_diag *diag);

typedef struct kn_cuda_function {
    CUfunction function;
    size_t param_count; /* SIZE_MAX where the driver cannot tell */
    bool shared_known;
    int shared_limit; /* dynamic shared memory allowed so far; both under the program's lock */
    kiln_param *params;
} kn_cuda_function;
kiln_status kn_cuda_program_function(void *program, const char *entry,
                                     kn_cuda_function **out_function, kiln_diag *diag);
/* Threads that a block of it may have: asked each time, which takes longer than a first launch
 * should wait (15 us on an H200). */
int kn_cuda_function_threads(const kn_cuda *cuda, const kn_cuda_function *function);
/* Asks for that much dynamic shared memory where it is more than a launch gets without. */
CUresult kn_cuda_program_allow_shared(void *program, kn_cuda_function *function, int bytes);

typedef struct kn_cuda_queue {
    kn_cuda_device *device;
    CUstream stream;
    bool borrowed; /* the stream is others' */
} kn_cuda_queue;
/* An event of a queue: recorded at once; `start` is NULL where only the end matters. */
kiln_status kn_cuda_event_begin(kn_cuda_queue *queue, bool timed, void **out_event,
                                kiln_diag *diag);
kiln_status kn_cuda_event_end(kn_cuda_queue *queue, void *event, kiln_diag *diag);
kiln_status kn_cuda_queue_create(void *device, void **out_queue, kiln_diag *diag);
void kn_cuda_queue_destroy(void *device, void *queue);
kiln_status kn_cuda_queue_wrap(void *device, uint64_t native, void **out_queue, kiln_diag *diag);
uint64_t kn_cuda_queue_native(void *device, void *queue);
kiln_status kn_cuda_queue_mark(void *queue, void **out_event, kiln_diag *diag);
kiln_status kn_cuda_queue_launch(void *queue, const kiln_sys_launch *launch, void **out_event,
                                 kiln_diag *diag);
kiln_status kn_cuda_queue_finish(void *queue, kiln_diag *diag);
kiln_status kn_cuda_queue_wait(void *queue, void *event, kiln_diag *diag);
bool kn_cuda_event_done(void *device, void *event);
kiln_status kn_cuda_event_wait(void *device, void *event, kiln_diag *diag);
kiln_status kn_cuda_event_elapsed(void *device, void *event, uint64_t *out_ns, kiln_diag *diag);
void kn_cuda_event_destroy(void *device, void *event);

#endif
