/* Programs inside core: shared within the process, weakly, by device and by the keys of all stages.
 */
#ifndef KILN_CORE_PROGRAM_H
#define KILN_CORE_PROGRAM_H

#include <stdatomic.h>

#include "core/build/build.h"
#include "core/runtime/runtime.h"
#include "exec/worker.h"

#define KN_SHARE_KEY_MAX (sizeof(uintptr_t) + KILN_STAGE_MAX * sizeof(kiln_key))

/* What the backend reported about one entry. Kept until the program goes. */
typedef struct kn_reflection {
    struct kn_reflection *next;
    kiln_param *params;      /* copies of the backend's: with a struct_size */
    const kiln_param **list; /* one a parameter: these may grow */
    size_t count;
    const char *entry;
} kn_reflection;

struct kn_background;

struct kiln_program {
    atomic_uint references;
    kiln_device *device;
    void *handle;
    struct kn_background *background; /* it stands for another program, and has no handle */
    kiln_key first_key;               /* of the first stage; zeros where that bypassed the cache */
    kiln_build_info info;
    kiln_blob *blob; /* of the last stage: the backend uses its bytes where they lie; or NULL */
    char *log;
    char *kernels; /* program_kernels.h; NULL: not known */
    size_t kernels_size;
    unsigned char share_key[KN_SHARE_KEY_MAX];
    size_t share_key_size; /* 0: not shared */
    _Atomic(kn_reflection *) reflections;

    kiln_recipe *recipe; /* of the last stage, if a capture may replace its artifact */
    char *label;         /* of that artifact; NULL: none */
    uint64_t compile_ns; /* of that artifact */
    atomic_bool later;   /* the cache has nothing of it until the first capture */
    kn_worker_task capture_task;
    atomic_bool capture_queued;
};

/* A live program of the same device, stages and keys, retained; or NULL. All keys of `build` are
 * known. */
kiln_program *kn_program_find(kiln_device *device, const kn_build *build);

/* Call when the last stage returned a loaded program without bytes: threads that wait for the same
 * program keep waiting until the build has created its kiln_program, or has failed. */
void kn_program_expect(kn_build *build);
void kn_program_expected(kn_build *build);
/* True when a build has, or had and made a kiln_program of, what `build` is about to compile. */
bool kn_program_is_made(const kn_build *build);
/* After another thread's compile that shared nothing: its program, retained, as soon as it is
 * there. NULL: there is none. */
kiln_program *kn_program_await(const kn_build *build);

/* Makes a program of a loaded handle, which it takes in every case. If an equal one came up
 * meanwhile, that one is given and this handle unloaded. */
kiln_status kn_program_adopt(kiln_device *device, kn_build *build, void *handle,
                             kiln_program **out_program, kiln_diag *diag);

/* KILN_OK if a program has every entry that the source names, or cannot tell; else it is released,
 * *program NULL, and KILN_E_INVALID. */
kiln_status kn_program_check_entries(kiln_program **program, const kiln_source *source,
                                     kiln_diag *diag);

/* The first source whose language the (open) device takes, or NULL. */
const kiln_source *kn_source_taken(const kiln_device *device, const kiln_source *sources,
                                   size_t source_count);

/* The parameters of an entry, asked once. KILN_E_UNSUPPORTED without KILN_CAP_REFLECT (no diag);
 * KILN_MISS for an unknown entry. */
kiln_status kn_program_reflect(kiln_program *program, const char *entry,
                               const kn_reflection **out_reflection, kiln_diag *diag);

#endif
