/* Asks the processor (CPUID, or the system's hwcaps) what it can do. AVX and AVX-512 count only
 * when the system saves their registers. This file must not know what the answers are used for. */
#include "sys/processor.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__has_include)
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define KN_LIBC_ASKED /* the C library keeps what CPUID gave it when the process began */
#endif
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__x86_64__)

enum { LEAF_1_C, LEAF_7_B, LEAF_7_C, LEAF_EXT_C, LEAF_COUNT };
enum { NEEDS_NOTHING, NEEDS_AVX, NEEDS_AVX512 };

typedef struct feature_row {
    uint8_t feature, leaf, bit, needs;
} feature_row;

static const feature_row rows[] = {
    {KN_X86_SSE3, LEAF_1_C, 0, NEEDS_NOTHING},
    {KN_X86_PCLMUL, LEAF_1_C, 1, NEEDS_NOTHING},
    {KN_X86_SSSE3, LEAF_1_C, 9, NEEDS_NOTHING},
    {KN_X86_FMA, LEAF_1_C, 12, NEEDS_AVX},
    {KN_X86_CX16, LEAF_1_C, 13, NEEDS_NOTHING},
    {KN_X86_SSE41, LEAF_1_C, 19, NEEDS_NOTHING},
    {KN_X86_SSE42, LEAF_1_C, 20, NEEDS_NOTHING},
    {KN_X86_MOVBE, LEAF_1_C, 22, NEEDS_NOTHING},
    {KN_X86_POPCNT, LEAF_1_C, 23, NEEDS_NOTHING},
    {KN_X86_AES, LEAF_1_C, 25, NEEDS_NOTHING},
    {KN_X86_AVX, LEAF_1_C, 28, NEEDS_AVX},
    {KN_X86_F16C, LEAF_1_C, 29, NEEDS_AVX},
    {KN_X86_BMI, LEAF_7_B, 3, NEEDS_NOTHING},
    {KN_X86_AVX2, LEAF_7_B, 5, NEEDS_AVX},
    {KN_X86_BMI2, LEAF_7_B, 8, NEEDS_NOTHING},
    {KN_X86_AVX512F, LEAF_7_B, 16, NEEDS_AVX512},
    {KN_X86_AVX512DQ, LEAF_7_B, 17, NEEDS_AVX512},
    {KN_X86_ADX, LEAF_7_B, 19, NEEDS_NOTHING},
    {KN_X86_AVX512IFMA, LEAF_7_B, 21, NEEDS_AVX512},
    {KN_X86_AVX512CD, LEAF_7_B, 28, NEEDS_AVX512},
    {KN_X86_SHA, LEAF_7_B, 29, NEEDS_NOTHING},
    {KN_X86_AVX512BW, LEAF_7_B, 30, NEEDS_AVX512},
    {KN_X86_AVX512VL, LEAF_7_B, 31, NEEDS_AVX512},
    {KN_X86_AVX512VBMI, LEAF_7_C, 1, NEEDS_AVX512},
    {KN_X86_AVX512VBMI2, LEAF_7_C, 6, NEEDS_AVX512},
    {KN_X86_GFNI, LEAF_7_C, 8, NEEDS_NOTHING},
    {KN_X86_VAES, LEAF_7_C, 9, NEEDS_AVX},
    {KN_X86_VPCLMULQDQ, LEAF_7_C, 10, NEEDS_AVX},
    {KN_X86_AVX512VNNI, LEAF_7_C, 11, NEEDS_AVX512},
    {KN_X86_AVX512BITALG, LEAF_7_C, 12, NEEDS_AVX512},
    {KN_X86_AVX512VPOPCNTDQ, LEAF_7_C, 14, NEEDS_AVX512},
    {KN_X86_SAHF, LEAF_EXT_C, 0, NEEDS_NOTHING},
    {KN_X86_LZCNT, LEAF_EXT_C, 5, NEEDS_NOTHING},
};

/* Which register files the system saves: XCR0, where the processor lets programs read it. */
static uint64_t saved_registers(unsigned leaf_1_c)
{
    unsigned low = 0;
    unsigned high = 0;
    if ((leaf_1_c & (1u << 27)) == 0) {
        return 0;
    }
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* In a virtual machine each CPUID leaves it: 2 to 70 us. */
static void ask_features(unsigned words[LEAF_COUNT])
{
#ifdef KN_LIBC_ASKED
    words[LEAF_1_C] = __x86_get_cpuid_feature_leaf(CPUID_INDEX_1)->cpuid_array[2];
    words[LEAF_7_B] = __x86_get_cpuid_feature_leaf(CPUID_INDEX_7)->cpuid_array[1];
    words[LEAF_7_C] = __x86_get_cpuid_feature_leaf(CPUID_INDEX_7)->cpuid_array[2];
    words[LEAF_EXT_C] = __x86_get_cpuid_feature_leaf(CPUID_INDEX_80000001)->cpuid_array[2];
#else
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d)) {
        words[LEAF_1_C] = c;
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        words[LEAF_7_B] = b;
        words[LEAF_7_C] = c;
    }
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) {
        words[LEAF_EXT_C] = c;
    }
#endif
}

static uint64_t x86_features(void)
{
    unsigned words[LEAF_COUNT] = {0};
    ask_features(words);
    const uint64_t saved = saved_registers(words[LEAF_1_C]);
    const bool has[] = {true, (saved & 0x6) == 0x6, (saved & 0xe6) == 0xe6};
    uint64_t features = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((words[rows[i].leaf] >> rows[i].bit & 1u) != 0 && has[rows[i].needs]) {
            features |= (uint64_t)1 << rows[i].feature;
        }
    }
    return features;
}

static void x86_names(kn_processor *processor)
{
    unsigned words[12] = {0};
    char text[sizeof(words) + 1] = {0};
    unsigned highest = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    __cpuid(0, highest, words[0], words[2], words[1]);
    memcpy(text, words, 12);
    kn_text_put(processor->vendor, sizeof(processor->vendor), text);
    __cpuid(0x80000000u, highest, b, c, d);
    if (highest < 0x80000004u) {
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        __cpuid(0x80000002u + i, words[4 * i], words[4 * i + 1], words[4 * i + 2],
                words[4 * i + 3]);
    }
    memcpy(text, words, sizeof(words));
    const char *start = text;
    while (*start == ' ') {
        start++;
    }
    kn_text_put(processor->model, sizeof(processor->model), start);
    for (size_t end = strlen(processor->model); end > 0 && processor->model[end - 1] == ' ';) {
        processor->model[--end] = '\0';
    }
}

kn_vectors kn_processor_vectors(void)
{
#ifdef KN_LIBC_ASKED
    const bool has_512 = CPU_FEATURE_ACTIVE(AVX512F);
    const bool has_256 = CPU_FEATURE_ACTIVE(AVX2);
#else
    const bool has_512 = __builtin_cpu_supports("avx512f");
    const bool has_256 = __builtin_cpu_supports("avx2");
#endif
    return has_512 ? KN_VECTORS_512 : has_256 ? KN_VECTORS_256 : KN_VECTORS_PLAIN;
}

void kn_processor_describe(kn_processor *out_processor)
{
    *out_processor = (kn_processor){.architecture = KN_ARCH_X86_64, .features = x86_features()};
    kn_text_put(out_processor->model, sizeof(out_processor->model), "x86-64 processor");
    x86_names(out_processor);
    out_processor->memory_bytes = kn_processor_memory();
}

#elif defined(__aarch64__)

static uint64_t arm_features(void)
{
    uint64_t features = 0;
#if defined(__linux__)
    /* Bits of the kernel's ABI for AT_HWCAP on this architecture. */
    static const struct {
        unsigned bit, feature;
    } bits[] = {{7, KN_ARM_CRC}, {8, KN_ARM_LSE}, {12, KN_ARM_RDMA}, {20, KN_ARM_DOTPROD}};
    const uint64_t caps = getauxval(AT_HWCAP);
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        if ((caps >> bits[i].bit & 1u) != 0) {
            features |= (uint64_t)1 << bits[i].feature;
        }
    }
    if ((caps >> 9 & 3u) == 3u) { /* half precision for scalars and for vectors */
        features |= (uint64_t)1 << KN_ARM_FP16;
    }
#endif
    return features;
}

void kn_processor_describe(kn_processor *out_processor)
{
    *out_processor = (kn_processor){.architecture = KN_ARCH_AARCH64, .features = arm_features()};
    kn_text_put(out_processor->model, sizeof(out_processor->model), "AArch64 processor");
    out_processor->memory_bytes = kn_processor_memory();
}

#else

void kn_processor_describe(kn_processor *out_processor)
{
    *out_processor = (kn_processor){.architecture = KN_ARCH_OTHER};
    kn_text_put(out_processor->model, sizeof(out_processor->model), "processor");
    out_processor->memory_bytes = kn_processor_memory();
}

#endif
