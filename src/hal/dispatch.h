/* Calls into an opened backend, on the thread that it wants: directly where it may be called from
 * any thread, else through `invoke`, which runs a call on the backend's own thread and waits.
 * For each operation of kiln/sys/backend.h there is kn_hal_<operation>(in, the operation's own
 * arguments). */
#ifndef KILN_HAL_DISPATCH_H
#define KILN_HAL_DISPATCH_H

#include "kiln/sys/backend.h"

typedef void kn_invoke_fn(void *user, void (*run)(void *call), void *call);

typedef struct kn_instance {
    const kiln_backend *backend;
    void *handle;         /* what the backend's open gave */
    kn_invoke_fn *invoke; /* NULL: call from any thread */
    void *invoke_user;
} kn_instance;

static inline bool kn_instance_can(const kn_instance *in, uint32_t cap)
{
    return (in->backend->caps & cap) != 0;
}

/* Opens the backend on the right thread; in->backend and in->invoke are set, in->handle is filled
 * on success. Close takes an instance that was opened, or one with no handle. */
kiln_status kn_instance_open(kn_instance *in, const kiln_host *host, kiln_probe_report *report,
                             kiln_diag *diag);
void kn_instance_close(kn_instance *in);

#define KN_OPERATION(name) kn_hal_##name
#define KN_OPERATION_FIRST const kn_instance *in,
#include "hal/operations.h"

#endif
