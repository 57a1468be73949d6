/* The processor this process runs on: its name, and the instructions it has and the system lets
 * programs use. Features are bits; their names are those of the compilers' -m options.
 *
 * kn_processor_memory is in memory.c. */
#ifndef KILN_SYS_PROCESSOR_H
#define KILN_SYS_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

/* X(enumerator, name). Order is part of the cache's directory names: append only. */
#define KN_X86_FEATURE_MAP(X)                                                                      \
    X(KN_X86_CX16, "cx16")                                                                         \
    X(KN_X86_SAHF, "sahf")                                                                         \
    X(KN_X86_POPCNT, "popcnt")                                                                     \
    X(KN_X86_SSE3, "sse3")                                                                         \
    X(KN_X86_SSSE3, "ssse3")                                                                       \
    X(KN_X86_SSE41, "sse4.1")                                                                      \
    X(KN_X86_SSE42, "sse4.2")                                                                      \
    X(KN_X86_AVX, "avx")                                                                           \
    X(KN_X86_AVX2, "avx2")                                                                         \
    X(KN_X86_BMI, "bmi")                                                                           \
    X(KN_X86_BMI2, "bmi2")                                                                         \
    X(KN_X86_F16C, "f16c")                                                                         \
    X(KN_X86_FMA, "fma")                                                                           \
    X(KN_X86_LZCNT, "lzcnt")                                                                       \
    X(KN_X86_MOVBE, "movbe")                                                                       \
    X(KN_X86_AVX512F, "avx512f")                                                                   \
    X(KN_X86_AVX512BW, "avx512bw")                                                                 \
    X(KN_X86_AVX512CD, "avx512cd")                                                                 \
    X(KN_X86_AVX512DQ, "avx512dq")                                                                 \
    X(KN_X86_AVX512VL, "avx512vl")                                                                 \
    X(KN_X86_AES, "aes")                                                                           \
    X(KN_X86_PCLMUL, "pclmul")                                                                     \
    X(KN_X86_ADX, "adx")                                                                           \
    X(KN_X86_SHA, "sha")                                                                           \
    X(KN_X86_GFNI, "gfni")                                                                         \
    X(KN_X86_VAES, "vaes")                                                                         \
    X(KN_X86_VPCLMULQDQ, "vpclmulqdq")                                                             \
    X(KN_X86_AVX512VNNI, "avx512vnni")                                                             \
    X(KN_X86_AVX512IFMA, "avx512ifma")                                                             \
    X(KN_X86_AVX512VBMI, "avx512vbmi")                                                             \
    X(KN_X86_AVX512VBMI2, "avx512vbmi2")                                                           \
    X(KN_X86_AVX512BITALG, "avx512bitalg")                                                         \
    X(KN_X86_AVX512VPOPCNTDQ, "avx512vpopcntdq")

#define KN_ARM_FEATURE_MAP(X)                                                                      \
    X(KN_ARM_CRC, "crc")                                                                           \
    X(KN_ARM_LSE, "lse")                                                                           \
    X(KN_ARM_RDMA, "rdma")                                                                         \
    X(KN_ARM_FP16, "fp16")                                                                         \
    X(KN_ARM_DOTPROD, "dotprod")

#define KN_FEATURE_ENUM(name, text) name,
enum { KN_X86_FEATURE_MAP(KN_FEATURE_ENUM) KN_X86_FEATURE_COUNT };
enum { KN_ARM_FEATURE_MAP(KN_FEATURE_ENUM) KN_ARM_FEATURE_COUNT };
#undef KN_FEATURE_ENUM

typedef enum kn_architecture {
    KN_ARCH_OTHER,
    KN_ARCH_X86_64,
    KN_ARCH_AARCH64,
} kn_architecture;

typedef struct kn_processor {
    kn_architecture architecture;
    uint64_t features; /* bit n: enumerator n of the architecture's map */
    char model[128];
    char vendor[32];
    uint64_t memory_bytes; /* of the machine; 0 if unknown */
} kn_processor;

/* The memory of the machine in bytes; 0 if unknown. */
uint64_t kn_processor_memory(void);

void kn_processor_describe(kn_processor *out_processor);

/* The widest vectors that code may use here. Cheap: for code that chooses by it at each call. On
 * x86-64 only. */
typedef enum kn_vectors {
    KN_VECTORS_PLAIN, /* what each processor of the architecture has */
    KN_VECTORS_256,   /* AVX2 */
    KN_VECTORS_512,   /* AVX-512F */
} kn_vectors;

kn_vectors kn_processor_vectors(void);

#endif
