/* Declares KN_OPERATION(name) for every operation of dispatch.def, whose arguments come after those
 * in KN_OPERATION_FIRST, if that is defined. A backend says
 *
 *     #define KN_OPERATION(name) kn_vk_##name
 *     #include "hal/operations.h"
 *
 * and fills its tables with KN_COMPILER_OPS(kn_vk_), KN_SEARCH_OPS(kn_vk_) and
 * KN_DEVICE_OPS(kn_vk_): the required operations, and those that all backends of this tree have.
 * What it has no capability for is declared, too, and need not be defined. */
#include "kiln/sys/backend.h"

#ifndef KN_COMPILER_OPS
#define KN_COMPILER_OPS(prefix)                                                                    \
    .abi = KILN_BACKEND_ABI, .size = sizeof(kiln_compiler_ops), .stages = prefix##stages,          \
    .target_of_device = prefix##target_of_device, .target_destroy = prefix##target_destroy,        \
    .identify = prefix##identify, .compile = prefix##compile
#define KN_SEARCH_OPS(prefix)                                                                      \
    .system_include_dir = prefix##system_include_dir, .ships_header = prefix##ships_header,        \
    .uncacheable_option = prefix##uncacheable_option
#define KN_DEVICE_OPS(prefix)                                                                      \
    .abi = KILN_BACKEND_ABI, .size = sizeof(kiln_device_ops), .device_info = prefix##device_info,  \
    .device_open = prefix##device_open, .device_close = prefix##device_close,                      \
    .buffer_create = prefix##buffer_create, .buffer_destroy = prefix##buffer_destroy,              \
    .program_load = prefix##program_load, .program_unload = prefix##program_unload,                \
    .program_entry = prefix##program_entry, .program_params = prefix##program_params,              \
    .queue_create = prefix##queue_create, .queue_destroy = prefix##queue_destroy,                  \
    .queue_write = prefix##queue_write, .queue_read = prefix##queue_read,                          \
    .queue_fill = prefix##queue_fill, .queue_copy = prefix##queue_copy,                            \
    .queue_launch = prefix##queue_launch, .queue_finish = prefix##queue_finish,                    \
    .event_done = prefix##event_done, .event_wait = prefix##event_wait,                            \
    .event_elapsed = prefix##event_elapsed, .event_destroy = prefix##event_destroy

/* clang-format off */
#define KN_DECLARE1(result, op, A, a) result KN_OPERATION(op)(KN_OPERATION_FIRST A a);
#define KN_DECLARE2(result, op, A, a, B, b) result KN_OPERATION(op)(KN_OPERATION_FIRST A a, B b);
#define KN_DECLARE3(result, op, A, a, B, b, C, c)                                                  \
    result KN_OPERATION(op)(KN_OPERATION_FIRST A a, B b, C c);
#define KN_DECLARE4(result, op, A, a, B, b, C, c, D, d)                                            \
    result KN_OPERATION(op)(KN_OPERATION_FIRST A a, B b, C c, D d);
#define KN_DECLARE5(result, op, A, a, B, b, C, c, D, d, E, e)                                      \
    result KN_OPERATION(op)(KN_OPERATION_FIRST A a, B b, C c, D d, E e);
#define KN_DECLARE6(result, op, A, a, B, b, C, c, D, d, E, e, F, f)                                \
    result KN_OPERATION(op)(KN_OPERATION_FIRST A a, B b, C c, D d, E e, F f);
#define KN_DECLARE7(result, op, A, a, B, b, C, c, D, d, E, e, F, f, G, g)                          \
    result KN_OPERATION(op)(KN_OPERATION_FIRST A a, B b, C c, D d, E e, F f, G g);
/* clang-format on */
#endif

#ifndef KN_OPERATION_FIRST
#define KN_OPERATION_FIRST
#endif
#define KN_OP(n, table, capability, ...) KN_DECLARE##n(__VA_ARGS__)
#define KN_VOID(n, table, capability, ...) KN_DECLARE##n(void, __VA_ARGS__)
#define KN_FACT KN_OP
#define KN_RULE(n, ...) KN_DECLARE##n(__VA_ARGS__)
#include "hal/dispatch.def"
#undef KN_OP
#undef KN_VOID
#undef KN_FACT
#undef KN_RULE
#undef KN_OPERATION
#undef KN_OPERATION_FIRST
