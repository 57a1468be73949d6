/* The state of the hip backend: where hipRTC and HIP's runtime lie, what is known of them, and what
 * the files of this directory share. Knows no key and no store. */
#ifndef KILN_HIP_BACKEND_INSTANCE_H
#define KILN_HIP_BACKEND_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "gpu/gpu.h"
#include "gpu/rtc.h"
#include "kiln/sys/backend.h"
#include "sys/dylib.h"
#include "sys/thread.h"

/* From the documentation of HIP and hipRTC; no header of AMD's is needed. hipError_t, of
 * which runtime.c has what others mean: */
enum {
    HIP_SUCCESS = 0,
    HIP_ERROR_NO_DEVICE = 100,
    HIP_ERROR_INVALID_DEVICE = 101,
    HIP_ERROR_NOT_FOUND = 500,
};

typedef struct kn_hip_uuid {
    unsigned char bytes[16];
} kn_hip_uuid;

/* amd_comgr_metadata_node_t: a handle, passed by value. */
typedef struct kn_comgr_node {
    uint64_t handle;
} kn_comgr_node;

#define X(since, need, ret, name, args) ret(*name) args;
typedef struct kn_hiprtc {
    kn_gpu_rtc rtc;
#include "apis/hip/backend/hiprtc.def"
} kn_hiprtc;

typedef struct kn_comgr {
#include "apis/hip/backend/comgr.def"
} kn_comgr;

typedef struct kn_hip_driver {
    kn_gpu_driver gpu;
#include "apis/hip/backend/driver.def"
} kn_hip_driver;
#undef X

enum { KN_HIP_PATH = 512, KN_HIP_TARGET = 48 };
/* Up to this ROCm, hipRTC's compiles take turns. ROCm 5 has a lock around them that is broken. It
 * cannot tell threads apart that have never called HIP, so it admits them all at once, and LLVM is
 * not thread-safe there. A thread that waits for one that has called HIP, or has loaded the
 * library, crashes. Without kiln the loading thread seldom compiles; under kiln it does. */
enum { KN_HIP_LAST_IN_TURN = 6 };
enum { KN_HIP_MAX_DEVICES = 64, KN_HIP_MAX_PARAMS = 4096 };

/* What the compiler's libraries are, found out by opening them once and remembered from then on:
 * opening them maps LLVM, which takes longer than all of a warm start. */
typedef struct kn_hip_facts {
    char *modules;    /* a line each: the file's name, a blank and its build id */
    char *processors; /* a line each: "gfx90a", and " xnack", " sramecc" where it has that choice */
    char version[32]; /* hiprtcVersion's, "9.0" */
} kn_hip_facts;

/* A device that was found. */
typedef struct kn_hip_listed {
    int ordinal;
    char arch[KN_HIP_TARGET]; /* gcnArchName, "gfx90a:sramecc+:xnack-" */
} kn_hip_listed;

typedef struct kn_hip {
    const kiln_host *host;
    uint32_t process;          /* that opened the runtime: a forked child must not use it */
    char runtime[KN_HIP_PATH]; /* libamdhip64 next to hipRTC, or "" */
    kn_dylib *runtime_lib;
    kn_hip_driver driver; /* usable where runtime_lib was bound whole */
    int version;          /* hipRuntimeGetVersion's */
    uint32_t device_count;
    kn_hip_listed devices[KN_HIP_MAX_DEVICES];
    char library[KN_HIP_PATH];  /* hipRTC's file */
    char builtins[KN_HIP_PATH]; /* its headers' library next to it, or "" */
    char compiler[KN_HIP_PATH]; /* the compiler's next to it, where that must be opened first */
    bool compilers_only;        /* the facts name the libraries that compile, and not all */
    bool in_turn;               /* one compile at a time */
    kn_mutex lock;              /* all below, until hipRTC is open */
    kn_hip_facts facts;         /* modules is NULL as long as they are unknown */
    kn_dylib *builtins_lib, *hiprtc_lib, *comgr_lib;
    kn_hiprtc hiprtc;
    kn_comgr comgr;
} kn_hip;

/* What code is made for: kiln_target.handle. '\0': any, else '+' or '-'. */
typedef struct kn_hip_target {
    char name[KN_HIP_TARGET]; /* as hipRTC takes it, "gfx90a:sramecc+:xnack-" */
    char processor[16];       /* "gfx90a" */
    char sramecc, xnack;
} kn_hip_target;

/* places.c, places_windows.c: fills hip->library, hip->builtins and hip->runtime; false if there is
 * no hipRTC. */
bool kn_hip_locate(kn_hip *hip);

/* locate.c: the same for the library at `path`; false where that is too long. */
bool kn_hip_locate_at(kn_hip *hip, const char *path);

/* probe.c */
kiln_status kn_hip_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                        kiln_diag *diag);
void kn_hip_close(void *instance);

/* runtime.c: opens HIP's runtime and lists its devices; the report says what became of it. */
void kn_hip_runtime_open(kn_hip *hip, kiln_probe_report *report);
/* KILN_E_INVALID for one that was not listed. */
kiln_status kn_hip_check_index(const kn_hip *hip, uint32_t index, kiln_diag *diag);
kiln_status kn_hip_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                               kiln_diag *diag);
bool kn_hip_device_arch(const kn_hip *hip, int ordinal, char out_arch[KN_HIP_TARGET]);
/* A hipError_t as status and diag; `what` is the call. */
kiln_status kn_hip_fail(const kn_hip *hip, int result, const char *what, kiln_diag *diag);

/* device.c */
kiln_status kn_hip_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag);
void kn_hip_device_close(void *device);

/* library.c. Both with hip->lock held. The first gives what is known of the libraries, from memory
 * where nothing has changed; the second opens them and makes sure that they are those. */
kiln_status kn_hip_facts_get(kn_hip *hip, kiln_diag *diag);
kiln_status kn_hip_library_get(kn_hip *hip, kiln_diag *diag);
void kn_hip_library_close(kn_hip *hip);
void kn_hip_facts_deinit(kn_hip_facts *facts);

/* library_memo.c: the facts as the host remembers them. `paths`: of the modules, a line each.
 * Recalling fails if any of them is another file than it was. */
bool kn_hip_memo_recall(const kn_hip *hip, kn_hip_facts *out_facts);
void kn_hip_memo_keep(const kn_hip *hip, const kn_hip_facts *facts, const char *paths);

/* target.c */
const kiln_stage *kn_hip_stages(void *instance, const kiln_target *target, kiln_language language,
                                size_t *out_count);
kiln_status kn_hip_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                    kiln_diag *diag);
kiln_status kn_hip_target_parse(void *instance, const char *name, kiln_target *out_target,
                                kiln_diag *diag);
/* "gfx90a:sramecc+:xnack-" and what it says; false if it is none. */
bool kn_hip_target_read(const char *name, kn_hip_target *out_target);
void kn_hip_target_destroy(void *instance, kiln_target *target);

/* identity.c */
kiln_status kn_hip_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                            const kiln_identity *identity, kiln_diag *diag);
const char *kn_hip_system_include_dir(void *instance, const kiln_target *target, size_t index);
bool kn_hip_ships_header(void *instance, const kiln_target *target, const char *name);
const char *kn_hip_uncacheable_option(void *instance, const kiln_source *source);
uint32_t kn_hip_option_effects(void *instance, const kiln_source *source);
extern const kiln_include_rules kn_hip_include_rules;

/* compile.c */
kiln_status kn_hip_compile(void *instance, const kiln_compile_request *request,
                           kiln_artifact *artifact, void **out_live, kiln_diag *diag);

#endif
