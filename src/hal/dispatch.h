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

/* clang-format off */
#define KN_OP2(table, result, op, A, a, B, b) result kn_hal_##op(const kn_instance *in, A a, B b);
#define KN_OP3(table, result, op, A, a, B, b, C, c)                                                \
    result kn_hal_##op(const kn_instance *in, A a, B b, C c);
#define KN_OP4(table, result, op, A, a, B, b, C, c, D, d)                                          \
    result kn_hal_##op(const kn_instance *in, A a, B b, C c, D d);
#define KN_OP5(table, result, op, A, a, B, b, C, c, D, d, E, e)                                    \
    result kn_hal_##op(const kn_instance *in, A a, B b, C c, D d, E e);
#define KN_OP6(table, result, op, A, a, B, b, C, c, D, d, E, e, F, f)                              \
    result kn_hal_##op(const kn_instance *in, A a, B b, C c, D d, E e, F f);
#define KN_OP7(table, result, op, A, a, B, b, C, c, D, d, E, e, F, f, G, g)                        \
    result kn_hal_##op(const kn_instance *in, A a, B b, C c, D d, E e, F f, G g);
#define KN_FACT2 KN_OP2
#define KN_FACT3 KN_OP3
#define KN_FACT4 KN_OP4
#define KN_FACT5 KN_OP5
#define KN_VOID1(table, op, A, a) void kn_hal_##op(const kn_instance *in, A a);
#define KN_VOID2(table, op, A, a, B, b) void kn_hal_##op(const kn_instance *in, A a, B b);
#include "hal/dispatch.def"
#undef KN_OP2
#undef KN_OP3
#undef KN_OP4
#undef KN_OP5
#undef KN_OP6
#undef KN_OP7
#undef KN_FACT2
#undef KN_FACT3
#undef KN_FACT4
#undef KN_FACT5
#undef KN_VOID1
#undef KN_VOID2
/* clang-format on */

#endif
