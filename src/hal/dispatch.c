/* Defines kn_hal_<operation> for every row of dispatch.def: a struct that holds the arguments, a
 * function that makes the call from it, and the choice between calling directly and invoking. */
#include "hal/dispatch.h"

#include <stddef.h>

/* Whether the caller's thread will do. */
static bool is_direct(const kn_instance *in)
{
    return in->invoke == NULL;
}

static bool is_direct_fact(const kn_instance *in)
{
    return in->invoke == NULL || in->backend->compiler->include_rules->facts_any_thread;
}

/* clang-format off */
/* One operation: `fields` of the call's struct, `params` of the function, `direct` arguments,
 * `carried` arguments from the struct. */
#define DEFINE_OP(direct_if, table, result_type, op, fields, params, direct, carried)                         \
    struct op##_call { const kiln_backend *backend; result_type result; fields };                  \
    static void op##_run(void *user)                                                               \
    {                                                                                              \
        struct op##_call *call = (struct op##_call *)user;                                         \
        call->result = call->backend->table->op carried;                                           \
    }                                                                                              \
    result_type kn_hal_##op params                                                                 \
    {                                                                                              \
        if (direct_if(in)) {                                                                       \
            return in->backend->table->op direct;                                                  \
        }                                                                                          \
        struct op##_call call = {in->backend, (result_type)0, UNPACK direct};                      \
        in->invoke(in->invoke_user, op##_run, &call);                                              \
        return call.result;                                                                        \
    }
#define DEFINE_VOID(table, op, fields, params, direct, carried)                                    \
    struct op##_call { const kiln_backend *backend; fields };                                      \
    static void op##_run(void *user)                                                               \
    {                                                                                              \
        struct op##_call *call = (struct op##_call *)user;                                         \
        call->backend->table->op carried;                                                          \
    }                                                                                              \
    void kn_hal_##op params                                                                        \
    {                                                                                              \
        if (in->invoke == NULL) {                                                                  \
            in->backend->table->op direct;                                                         \
            return;                                                                                \
        }                                                                                          \
        struct op##_call call = {in->backend, UNPACK direct};                                      \
        in->invoke(in->invoke_user, op##_run, &call);                                              \
    }
#define UNPACK(...) __VA_ARGS__

#define DEFINE_OP2(direct_if, table, result, op, A, a, B, b)                                       \
    DEFINE_OP(direct_if, table, result, op, A a_; B b_;,                                           \
              (const kn_instance *in, A a, B b), (a, b),                                           \
              (call->a_, call->b_))
#define DEFINE_OP3(direct_if, table, result, op, A, a, B, b, C, c)                                 \
    DEFINE_OP(direct_if, table, result, op, A a_; B b_; C c_;,                                     \
              (const kn_instance *in, A a, B b, C c), (a, b, c),                                   \
              (call->a_, call->b_, call->c_))
#define DEFINE_OP4(direct_if, table, result, op, A, a, B, b, C, c, D, d)                           \
    DEFINE_OP(direct_if, table, result, op, A a_; B b_; C c_; D d_;,                               \
              (const kn_instance *in, A a, B b, C c, D d), (a, b, c, d),                           \
              (call->a_, call->b_, call->c_, call->d_))
#define DEFINE_OP5(direct_if, table, result, op, A, a, B, b, C, c, D, d, E, e)                     \
    DEFINE_OP(direct_if, table, result, op, A a_; B b_; C c_; D d_; E e_;,                         \
              (const kn_instance *in, A a, B b, C c, D d, E e), (a, b, c, d, e),                   \
              (call->a_, call->b_, call->c_, call->d_, call->e_))
#define DEFINE_OP6(direct_if, table, result, op, A, a, B, b, C, c, D, d, E, e, F, f)               \
    DEFINE_OP(direct_if, table, result, op, A a_; B b_; C c_; D d_; E e_; F f_;,                   \
              (const kn_instance *in, A a, B b, C c, D d, E e, F f), (a, b, c, d, e, f),           \
              (call->a_, call->b_, call->c_, call->d_, call->e_, call->f_))
#define DEFINE_OP7(direct_if, table, result, op, A, a, B, b, C, c, D, d, E, e, F, f, G, g)         \
    DEFINE_OP(direct_if, table, result, op, A a_; B b_; C c_; D d_; E e_; F f_; G g_;,             \
              (const kn_instance *in, A a, B b, C c, D d, E e, F f, G g), (a, b, c, d, e, f, g),   \
              (call->a_, call->b_, call->c_, call->d_, call->e_, call->f_, call->g_))
#define DEFINE_VOID1(table, op, A, a)                                                              \
    DEFINE_VOID(table, op, A a_;, (const kn_instance *in, A a), (a), (call->a_))
#define DEFINE_VOID2(table, op, A, a, B, b)                                                        \
    DEFINE_VOID(table, op, A a_; B b_;, (const kn_instance *in, A a, B b), (a, b),                 \
                (call->a_, call->b_))
#define KN_OP(n, table, capability, ...) DEFINE_OP##n(is_direct, table, __VA_ARGS__)
#define KN_VOID(n, table, capability, ...) DEFINE_VOID##n(table, __VA_ARGS__)
#define KN_FACT(n, table, capability, ...) DEFINE_OP##n(is_direct_fact, table, __VA_ARGS__)
#define KN_RULE(n, ...) DEFINE_OP##n(is_direct_fact, compiler->include_rules, __VA_ARGS__)
#include "hal/dispatch.def"
/* clang-format on */

struct open_call {
    kn_instance *in;
    const kiln_host *host;
    kiln_probe_report *report;
    kiln_diag *diag;
    kiln_status status;
};

static void open_run(void *user)
{
    struct open_call *call = (struct open_call *)user;
    const kiln_backend *backend = call->in->backend;
    call->status = backend->open(call->host, &call->in->handle, call->report, call->diag);
    if (backend->device == NULL) {
        call->report->device_count = 0; /* nothing would answer for them */
    }
}

static void close_run(void *user)
{
    kn_instance *in = (kn_instance *)user;
    in->backend->close(in->handle);
    in->handle = NULL;
}

static void run_there(kn_instance *in, void (*run)(void *call), void *call)
{
    if (in->invoke != NULL) {
        in->invoke(in->invoke_user, run, call);
    } else {
        run(call);
    }
}

kiln_status kn_instance_open(kn_instance *in, const kiln_host *host, kiln_probe_report *report,
                             kiln_diag *diag)
{
    struct open_call call = {in, host, report, diag, KILN_E_INTERNAL};
    in->handle = NULL;
    run_there(in, open_run, &call);
    return call.status;
}

void kn_instance_close(kn_instance *in)
{
    if (in->handle != NULL) {
        run_there(in, close_run, in);
    }
}
