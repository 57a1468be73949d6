/* Kernels in C for the cpu backend. One header, two uses: kernels that are compiled at run time
 * include it as <kiln_kernel.h> (kiln gives it to the compiler, nothing has to be installed), and
 * programs that carry kernels inside include <kiln/cpu.h>. It needs C11 or C++11 and includes
 * nothing but two standard headers.
 *
 * A kernel runs once per WORK-GROUP and loops over the group's work-items itself:
 *
 *     KILN_KERNEL(saxpy, KILN_VALUE(float, a), KILN_IN(float, x), KILN_INOUT(float, y))
 *     {
 *         KILN_ITEMS_X(i)
 *         {
 *             y[i] = a * x[i] + y[i];
 *         }
 *     }
 *
 * Work-group memory is an ordinary array in the kernel (or KILN_LOCAL for a size given at launch),
 * and a barrier is the end of a loop: what one KILN_ITEMS loop wrote, the next one reads.
 *
 *     KILN_KERNEL_GROUP(row_sum, 64, 1, 1, KILN_IN(float, x), KILN_OUT(float, sums))
 *     {
 *         float part[64] = {0};
 *         KILN_ITEMS_X(i)
 *         {
 *             part[KILN_LOCAL_ID(0, i)] = x[i];
 *         }
 *         float sum = 0.0F;
 *         for (int i = 0; i < 64; i++) {
 *             sum += part[i];
 *         }
 *         sums[KILN_GROUP_ID(0)] = sum;
 *     }
 *
 * Rules: the items of one KILN_ITEMS loop are independent of each other, in any order (the compiler
 * knows, and vectorises); `continue` ends an item, `break` and `return` are for code outside the
 * loops. The last group of a dimension may be smaller than the others; the loops know. Groups run
 * at the same time on several threads and must not wait for each other. */
#ifndef KILN_CPU_H
#define KILN_CPU_H

#include <stddef.h>
#include <stdint.h>

#define KILN_CPU_ABI 1u

#if defined(__GNUC__)
#define KILN_CPU_EXPORT __attribute__((visibility("default")))
#define KILN_CPU_UNUSED __attribute__((unused))
#else
#define KILN_CPU_EXPORT
#define KILN_CPU_UNUSED
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define KILN_CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define KILN_CPU_INDEPENDENT
#endif

#ifdef __cplusplus
#define KILN_CPU_EXTERN extern "C"
#define KILN_CPU_ALIGNOF(type) alignof(type)
extern "C" {
#else
#define KILN_CPU_EXTERN extern
#define KILN_CPU_ALIGNOF(type) _Alignof(type)
#endif

/* --- what kiln and a kernel hand each other --------------------------------------------------- */

/* The work-group a kernel is called for. Ids and sizes count from 0; past `dims` a size is 1. */
typedef struct kiln_cpu_group {
    size_t id[3];    /* of this group */
    size_t count[3]; /* groups in the launch */
    size_t first[3]; /* global id of its first item, offset included */
    size_t last[3];  /* one past its last item: less than first + local in a partial group */
    size_t local[3]; /* items in a whole group */
    size_t global[3];
    size_t offset[3];
    uint32_t dims;
    uint32_t reserved;
} kiln_cpu_group;

/* What a kernel does with a parameter. */
typedef enum kiln_cpu_access {
    KILN_CPU_IN = 1, /* a buffer that is read */
    KILN_CPU_OUT,    /* written */
    KILN_CPU_INOUT,
    KILN_CPU_VALUE,
    KILN_CPU_LOCAL, /* work-group memory of a size given at launch */
} kiln_cpu_access;

/* One parameter of a kernel. */
typedef struct kiln_cpu_param {
    const char *name;
    const char *type; /* as written, without the '*' of a buffer */
    uint32_t access;  /* kiln_cpu_access */
    uint32_t align;
    size_t size; /* of the value, or of one element */
} kiln_cpu_param;

/* `args` holds, per parameter, the buffer's address, the address of the value, or the group's own
 * memory. */
typedef void kiln_cpu_run(const kiln_cpu_group *group, void *const *args);

/* What a kernel exports, as kiln_cpu_kernel_<name>. */
typedef struct kiln_cpu_kernel {
    uint32_t abi;
    uint32_t param_count;
    const char *name;
    kiln_cpu_run *run;
    const kiln_cpu_param *params;
    uint32_t group[3]; /* the only work-group size it may be launched with; 0: any */
    uint32_t reserved;
} kiln_cpu_kernel;

/* --- defining kernels ------------------------------------------------------------------------- */

/* KILN_KERNEL(name, up to 16 parameters) { body }
 * KILN_KERNEL_GROUP(name, x, y, z, up to 16 parameters) { body }: for a fixed work-group size,
 * which is chosen when a launch names none and demanded when it names one. */
#define KILN_KERNEL(...)                                                                           \
    KILN_CPU_DEFINE(KILN_CPU_FIRST(__VA_ARGS__, 0), 0, 0, 0, KILN_CPU_COUNT(__VA_ARGS__),          \
                    __VA_ARGS__)
#define KILN_KERNEL_GROUP(name, x, ...)                                                            \
    KILN_CPU_DEFINE(name, x, KILN_CPU_FIRST(__VA_ARGS__, 0), KILN_CPU_SECOND(__VA_ARGS__, 0),      \
                    KILN_CPU_COUNT_PAST_TWO(__VA_ARGS__), KILN_CPU_PAST_ONE(__VA_ARGS__))

/* Parameters. Buffers are pointers to `type`, const for IN; kiln does not call them restrict, as
 * one buffer may be given twice. */
#define KILN_IN(type, name) (KILN_CPU_IN, type, name)
#define KILN_OUT(type, name) (KILN_CPU_OUT, type, name)
#define KILN_INOUT(type, name) (KILN_CPU_INOUT, type, name)
#define KILN_VALUE(type, name) (KILN_CPU_VALUE, type, name)
#define KILN_LOCAL(type, name) (KILN_CPU_LOCAL, type, name)

/* A kernel of this program, for kiln_source.builtin; and its declaration in another file. */
#define KILN_KERNEL_DECLARE(name) KILN_CPU_EXTERN const kiln_cpu_kernel kiln_cpu_kernel_##name
#define KILN_KERNEL_REF(name) (&kiln_cpu_kernel_##name)

/* --- inside a kernel -------------------------------------------------------------------------- */

/* `kiln_group` is in scope in the kernel's body; pass it on to functions that need it. */

/* Loops over the group's items; the names become size_t variables holding global ids. */
#define KILN_ITEMS_X(x) KILN_CPU_INDEPENDENT KILN_CPU_LOOP(0, x)
#define KILN_ITEMS_XY(x, y) KILN_CPU_LOOP(1, y) KILN_CPU_INDEPENDENT KILN_CPU_LOOP(0, x)
#define KILN_ITEMS_XYZ(x, y, z)                                                                    \
    KILN_CPU_LOOP(2, z) KILN_CPU_LOOP(1, y) KILN_CPU_INDEPENDENT KILN_CPU_LOOP(0, x)

/* Dimension 0 is x. The place in its group of the item with global id `item`. */
#define KILN_LOCAL_ID(dimension, item) ((item)-kiln_group->first[dimension])
#define KILN_GROUP_ID(dimension) (kiln_group->id[dimension])
#define KILN_GROUP_COUNT(dimension) (kiln_group->count[dimension])
#define KILN_LOCAL_SIZE(dimension) (kiln_group->local[dimension])
#define KILN_GLOBAL_SIZE(dimension) (kiln_group->global[dimension])
#define KILN_GLOBAL_OFFSET(dimension) (kiln_group->offset[dimension])
/* Items that this group really has, at most KILN_LOCAL_SIZE. */
#define KILN_ITEM_COUNT(dimension) (kiln_group->last[dimension] - kiln_group->first[dimension])

/* --- how it is done: nothing below is for use ------------------------------------------------- */

#define KILN_CPU_LOOP(dimension, i)                                                                \
    for (size_t i = kiln_group->first[dimension], kiln_last_##i = kiln_group->last[dimension];     \
         i < kiln_last_##i; i++)

#define KILN_CPU_DEFINE(name, x, y, z, n, ...) KILN_CPU_DEFINE_N(name, x, y, z, n, __VA_ARGS__)
#define KILN_CPU_DEFINE_N(name, x, y, z, n, ...)                                                   \
    static inline void kiln_cpu_body_##name(                                                       \
        const kiln_cpu_group *kiln_group KILN_CPU_EACH_##n(KILN_CPU_PROTO, __VA_ARGS__));          \
    static void kiln_cpu_run_##name(const kiln_cpu_group *kiln_group, void *const *kiln_args)      \
    {                                                                                              \
        (void)kiln_args;                                                                           \
        kiln_cpu_body_##name(kiln_group KILN_CPU_EACH_##n(KILN_CPU_CALL, __VA_ARGS__));            \
    }                                                                                              \
    static const kiln_cpu_param kiln_cpu_params_##name[n + 1] = {                                  \
        KILN_CPU_EACH_##n(KILN_CPU_ROW, __VA_ARGS__){0, 0, 0, 0, 0}};                              \
    KILN_CPU_EXTERN const kiln_cpu_kernel kiln_cpu_kernel_##name KILN_CPU_EXPORT;                  \
    const kiln_cpu_kernel kiln_cpu_kernel_##name = {                                               \
        KILN_CPU_ABI, n, #name, kiln_cpu_run_##name, kiln_cpu_params_##name, {(x), (y), (z)}, 0};  \
    static inline void kiln_cpu_body_##name(                                                       \
        KILN_CPU_UNUSED const kiln_cpu_group *kiln_group KILN_CPU_EACH_##n(KILN_CPU_PROTO,         \
                                                                           __VA_ARGS__))

#define KILN_CPU_PROTO(i, param) KILN_CPU_PROTO_ param
#define KILN_CPU_PROTO_(access, type, name) , KILN_CPU_PROTO_##access(type, name)
#define KILN_CPU_PROTO_KILN_CPU_IN(type, name) const type *name
#define KILN_CPU_PROTO_KILN_CPU_OUT(type, name) type *name
#define KILN_CPU_PROTO_KILN_CPU_INOUT(type, name) type *name
#define KILN_CPU_PROTO_KILN_CPU_VALUE(type, name) const type name
#define KILN_CPU_PROTO_KILN_CPU_LOCAL(type, name) type *name

#define KILN_CPU_CALL(i, param) , KILN_CPU_CALL_I(i, KILN_CPU_UNPACK param)
#define KILN_CPU_UNPACK(access, type, name) access, type
#define KILN_CPU_CALL_I(...) KILN_CPU_CALL_II(__VA_ARGS__)
#define KILN_CPU_CALL_II(i, access, type) KILN_CPU_CALL_##access(i, type)
#define KILN_CPU_CALL_KILN_CPU_IN(i, type) (const type *)kiln_args[i]
#define KILN_CPU_CALL_KILN_CPU_OUT(i, type) (type *)kiln_args[i]
#define KILN_CPU_CALL_KILN_CPU_INOUT(i, type) (type *)kiln_args[i]
#define KILN_CPU_CALL_KILN_CPU_VALUE(i, type) *(const type *)kiln_args[i]
#define KILN_CPU_CALL_KILN_CPU_LOCAL(i, type) (type *)kiln_args[i]

#define KILN_CPU_ROW(i, param) KILN_CPU_ROW_ param
#define KILN_CPU_ROW_(access, type, name)                                                          \
    {KILN_CPU_TEXT(name), KILN_CPU_TEXT(type), access, (uint32_t)KILN_CPU_ALIGNOF(type),           \
     sizeof(type)},
#define KILN_CPU_TEXT(text) KILN_CPU_TEXT_(text)
#define KILN_CPU_TEXT_(text) #text

#define KILN_CPU_FIRST(...) KILN_CPU_FIRST_(__VA_ARGS__, 0)
#define KILN_CPU_FIRST_(a, ...) a
#define KILN_CPU_SECOND(...) KILN_CPU_SECOND_(__VA_ARGS__, 0, 0)
#define KILN_CPU_SECOND_(a, b, ...) b
#define KILN_CPU_PAST_ONE(a, ...) __VA_ARGS__
/* Arguments less one, and less two; at most 16. */
#define KILN_CPU_COUNT(...)                                                                        \
    KILN_CPU_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define KILN_CPU_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, count, ...) count
#define KILN_CPU_COUNT_PAST_TWO(a, ...) KILN_CPU_COUNT(__VA_ARGS__)

/* The first of `...` is a name or number that is skipped. */
#define KILN_CPU_EACH_0(f, ...)
#define KILN_CPU_EACH_1(f, z, a) f(0, a)
#define KILN_CPU_EACH_2(f, z, a, b) KILN_CPU_EACH_1(f, z, a) f(1, b)
#define KILN_CPU_EACH_3(f, z, a, b, c) KILN_CPU_EACH_2(f, z, a, b) f(2, c)
#define KILN_CPU_EACH_4(f, z, a, b, c, d) KILN_CPU_EACH_3(f, z, a, b, c) f(3, d)
#define KILN_CPU_EACH_5(f, z, a, b, c, d, e) KILN_CPU_EACH_4(f, z, a, b, c, d) f(4, e)
#define KILN_CPU_EACH_6(f, z, a, b, c, d, e, g) KILN_CPU_EACH_5(f, z, a, b, c, d, e) f(5, g)
#define KILN_CPU_EACH_7(f, z, a, b, c, d, e, g, h) KILN_CPU_EACH_6(f, z, a, b, c, d, e, g) f(6, h)
#define KILN_CPU_EACH_8(f, z, a, b, c, d, e, g, h, i)                                              \
    KILN_CPU_EACH_7(f, z, a, b, c, d, e, g, h) f(7, i)
#define KILN_CPU_EACH_9(f, z, a, b, c, d, e, g, h, i, j)                                           \
    KILN_CPU_EACH_8(f, z, a, b, c, d, e, g, h, i) f(8, j)
#define KILN_CPU_EACH_10(f, z, a, b, c, d, e, g, h, i, j, k)                                       \
    KILN_CPU_EACH_9(f, z, a, b, c, d, e, g, h, i, j) f(9, k)
#define KILN_CPU_EACH_11(f, z, a, b, c, d, e, g, h, i, j, k, l)                                    \
    KILN_CPU_EACH_10(f, z, a, b, c, d, e, g, h, i, j, k) f(10, l)
#define KILN_CPU_EACH_12(f, z, a, b, c, d, e, g, h, i, j, k, l, m)                                 \
    KILN_CPU_EACH_11(f, z, a, b, c, d, e, g, h, i, j, k, l) f(11, m)
#define KILN_CPU_EACH_13(f, z, a, b, c, d, e, g, h, i, j, k, l, m, n)                              \
    KILN_CPU_EACH_12(f, z, a, b, c, d, e, g, h, i, j, k, l, m) f(12, n)
#define KILN_CPU_EACH_14(f, z, a, b, c, d, e, g, h, i, j, k, l, m, n, o)                           \
    KILN_CPU_EACH_13(f, z, a, b, c, d, e, g, h, i, j, k, l, m, n) f(13, o)
#define KILN_CPU_EACH_15(f, z, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p)                        \
    KILN_CPU_EACH_14(f, z, a, b, c, d, e, g, h, i, j, k, l, m, n, o) f(14, p)
#define KILN_CPU_EACH_16(f, z, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q)                     \
    KILN_CPU_EACH_15(f, z, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p) f(15, q)

#ifdef __cplusplus
}
#endif

#endif
