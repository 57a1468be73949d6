/* Entries that nothing on this machine asks for any more: made for a driver or a device that has
 * gone. Only results of stages that run where their device is (an OpenCL program, a Vulkan
 * pipeline, an OpenGL program, what CUDA's driver made of PTX) are looked at, and only those of a
 * backend that is ready now. So nothing that was compiled for another machine by its name goes.
 * What a compiler made (CUBINs, SPIR-V, objects of the cpu backend) stays: an entry holds what its
 * compiler was, not where, so it cannot be distinguished from one of a second compiler that is here
 * as well. */
#ifndef KILN_UNSTABLE_UNREACHABLE_H
#define KILN_UNSTABLE_UNREACHABLE_H

#include "kiln/runtime.h"
#include "kiln/unstable/admin.h"

KILN_BEGIN_DECLS

/* One thing that is reported: an entry that goes, or a backend whose entries are all left alone. */
typedef struct kiln_unreachable {
    size_t struct_size;
    const char *backend;
    const kiln_entry_info *entry; /* NULL: about the backend */
    const char *why;              /* one line */
} kiln_unreachable;

/* It must not call kiln. */
typedef void kiln_unreachable_fn(void *user, const kiln_unreachable *told);

/* Zero it and set struct_size; then what you want. */
typedef struct kiln_unreachable_options {
    size_t struct_size;
    bool dry_run;               /* remove nothing, report and count what would go */
    kiln_unreachable_fn *visit; /* may be NULL */
    void *user;
} kiln_unreachable_options;

/* Removes from the disk of the runtime's cache (and from memory; not from remotes) every entry
 * whose stage belongs to a backend of the runtime and needs a device, and that differs from what
 * the backend says today of each of its devices. Pinned entries stay. A backend is left alone, with
 * all of its entries, when it is not ready, when a device of it could not be looked at, or when an
 * environment variable is set that chooses drivers or hides devices. Create the runtime with
 * `fresh_probe`: with what was remembered, the backend is asked all the same, and left alone if its
 * devices are others.
 * Threads: any.   Blocks: drivers, disk (every entry is read).
 * Owns: what `visit` is shown is borrowed for the call. NULL options mean none.
 * Fails: KILN_E_INVALID (options), KILN_E_UNAVAILABLE without a disk tier, KILN_E_UNSUPPORTED when
 * read-only, KILN_E_IO, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status
kiln_runtime_prune_unreachable(kiln_runtime *runtime, const kiln_unreachable_options *options,
                               kiln_prune_result *out_result, kiln_diag *diag);

KILN_END_DECLS

#endif
