/* The state of the cuda backend: the libraries that were found, the devices, and what the files of
 * this directory share. Knows no key and no store. */
#ifndef KILN_CUDA_BACKEND_INSTANCE_H
#define KILN_CUDA_BACKEND_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apis/cuda/backend/types.h"
#include "gpu/gpu.h"
#include "gpu/rtc.h"
#include "kiln/sys/backend.h"
#include "sys/dylib.h"
#include "sys/fork.h"
#include "sys/thread.h"

#define X(since, need, ret, name, args) ret(*name) args;
typedef struct kn_cuda_driver {
    kn_gpu_driver gpu;
#include "apis/cuda/backend/driver.def"
} kn_cuda_driver;

typedef struct kn_cuda_nvrtc {
    kn_gpu_rtc rtc;
#include "apis/cuda/backend/nvrtc.def"
} kn_cuda_nvrtc;

typedef struct kn_cuda_nvjitlink {
#include "apis/cuda/backend/nvjitlink.def"
} kn_cuda_nvjitlink;
#undef X

extern const kn_symbol kn_cuda_driver_symbols[];
extern const size_t kn_cuda_driver_symbol_count;
extern const kn_symbol kn_cuda_nvrtc_symbols[];
extern const size_t kn_cuda_nvrtc_symbol_count;
extern const kn_symbol kn_cuda_nvjitlink_symbols[];
extern const size_t kn_cuda_nvjitlink_symbol_count;

enum { KN_CUDA_MAX_DEVICES = 64, KN_CUDA_PATH = 512, KN_CUDA_ID = 144 };

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
    kn_fork_guard guard; /* of cuInit: a forked child must not use the driver */

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
    kn_gpu_device base; /* first */
    kn_cuda *cuda;
    CUcontext context; /* the primary one, shared with the host program's runtime */
} kn_cuda_device;

/* places.c, places_windows.c: candidates for libcuda (NULL-terminated), and the toolkit by files.
 */
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
kiln_status kn_cuda_compile(void *instance, const kiln_compile_request *request,
                            kiln_artifact *artifact, void **out_live, kiln_diag *diag);
kiln_status kn_cuda_jit(kn_cuda *cuda, const kiln_compile_request *request, kiln_artifact *artifact,
                        kiln_diag *diag);
kiln_status kn_cuda_lto_link(kn_cuda *cuda, const kiln_compile_request *request, const void *ir,
                             size_t size, const char *name, kiln_artifact *artifact,
                             kiln_diag *diag);

/* status.c: a CUresult as status and diag; `what` is the call. */
kiln_status kn_cuda_fail(const kn_cuda *cuda, CUresult result, const char *what, kiln_diag *diag);

/* device.c: makes the device's context current for a few calls, as kn_gpu_vendor has it. */
kiln_status kn_cuda_enter(const kn_gpu_device *device, int *out_before, kiln_diag *diag);
void kn_cuda_leave(const kn_gpu_device *device, int before);
kiln_status kn_cuda_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag);
void kn_cuda_device_close(void *device);

/* program.c: what kn_gpu_vendor asks for. */
kiln_status kn_cuda_load(kn_gpu_program *program, bool eager, kiln_diag *diag);
void kn_cuda_unload(kn_gpu_program *program);
kiln_status kn_cuda_find(kn_gpu_program *program, const char *name, kn_gpu_function *function,
                         int *out_result, kiln_diag *diag);
int kn_cuda_allow_shared(kn_gpu_program *program, kn_gpu_function *function, int bytes);
kiln_status kn_cuda_launch_with(const kn_gpu_device *device, const kiln_sys_launch *launch,
                                const kn_gpu_function *function, const kn_gpu_shape *shape,
                                void *stream, void **params, kiln_diag *diag);

#endif
