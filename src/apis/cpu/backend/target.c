/* Targets of the cpu backend: names, levels, features and the compiler's flags for them. The flags
 * name every feature one by one and tune for no model, so that the list of features is all that the
 * code depends on. */
#include "apis/cpu/backend/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "sys/env.h"

#define NAME_ROW(name, text) text,
static const char *const x86_names[] = {KN_X86_FEATURE_MAP(NAME_ROW)};
static const char *const arm_names[] = {KN_ARM_FEATURE_MAP(NAME_ROW)};
#undef NAME_ROW

#define BIT(feature) ((uint64_t)1 << (feature))
#define LEVEL_2                                                                                    \
    (BIT(KN_X86_CX16) | BIT(KN_X86_SAHF) | BIT(KN_X86_POPCNT) | BIT(KN_X86_SSE3) |                 \
     BIT(KN_X86_SSSE3) | BIT(KN_X86_SSE41) | BIT(KN_X86_SSE42))
#define LEVEL_3                                                                                    \
    (LEVEL_2 | BIT(KN_X86_AVX) | BIT(KN_X86_AVX2) | BIT(KN_X86_BMI) | BIT(KN_X86_BMI2) |           \
     BIT(KN_X86_F16C) | BIT(KN_X86_FMA) | BIT(KN_X86_LZCNT) | BIT(KN_X86_MOVBE))
#define LEVEL_4                                                                                    \
    (LEVEL_3 | BIT(KN_X86_AVX512F) | BIT(KN_X86_AVX512BW) | BIT(KN_X86_AVX512CD) |                 \
     BIT(KN_X86_AVX512DQ) | BIT(KN_X86_AVX512VL))

typedef struct level {
    const char *name;
    kn_architecture architecture;
    uint64_t features;
} level;

/* Within an architecture from high to low; the lowest has nothing beyond the architecture. */
static const level levels[] = {
    {"x86-64-v4", KN_ARCH_X86_64, LEVEL_4}, {"x86-64-v3", KN_ARCH_X86_64, LEVEL_3},
    {"x86-64-v2", KN_ARCH_X86_64, LEVEL_2}, {"x86-64", KN_ARCH_X86_64, 0},
    {"aarch64", KN_ARCH_AARCH64, 0},
};
#define LEVEL_COUNT (sizeof(levels) / sizeof(levels[0]))

/* What the compilers switch on along with a feature: without these it is unavailable, and is
 * dropped (a virtual machine may hide some and show others). In an order that needs one pass. */
static const struct {
    uint8_t feature;
    uint64_t needs;
} x86_needs[] = {
    {KN_X86_SSSE3, BIT(KN_X86_SSE3)},
    {KN_X86_SSE41, BIT(KN_X86_SSSE3)},
    {KN_X86_SSE42, BIT(KN_X86_SSE41)},
    {KN_X86_AVX, BIT(KN_X86_SSE42)},
    {KN_X86_AVX2, BIT(KN_X86_AVX)},
    {KN_X86_F16C, BIT(KN_X86_AVX)},
    {KN_X86_FMA, BIT(KN_X86_AVX)},
    {KN_X86_VAES, BIT(KN_X86_AVX) | BIT(KN_X86_AES)},
    {KN_X86_VPCLMULQDQ, BIT(KN_X86_AVX) | BIT(KN_X86_PCLMUL)},
    {KN_X86_AVX512F, BIT(KN_X86_AVX2) | BIT(KN_X86_FMA) | BIT(KN_X86_F16C)},
    {KN_X86_AVX512BW, BIT(KN_X86_AVX512F)},
    {KN_X86_AVX512CD, BIT(KN_X86_AVX512F)},
    {KN_X86_AVX512DQ, BIT(KN_X86_AVX512F)},
    {KN_X86_AVX512VL, BIT(KN_X86_AVX512F)},
    {KN_X86_AVX512VNNI, BIT(KN_X86_AVX512F)},
    {KN_X86_AVX512IFMA, BIT(KN_X86_AVX512F)},
    {KN_X86_AVX512VBMI, BIT(KN_X86_AVX512BW)},
    {KN_X86_AVX512VBMI2, BIT(KN_X86_AVX512BW)},
    {KN_X86_AVX512BITALG, BIT(KN_X86_AVX512BW)},
    {KN_X86_AVX512VPOPCNTDQ, BIT(KN_X86_AVX512F)},
};

static uint64_t consistent_features(kn_architecture architecture, uint64_t features)
{
    for (size_t i = 0; i < sizeof(x86_needs) / sizeof(x86_needs[0]); i++) {
        if (architecture == KN_ARCH_X86_64 && (x86_needs[i].needs & ~features) != 0) {
            features &= ~BIT(x86_needs[i].feature);
        }
    }
    return features;
}

static const char *const *names_of(kn_architecture architecture, size_t *out_count)
{
    if (architecture == KN_ARCH_X86_64) {
        *out_count = KN_X86_FEATURE_COUNT;
        return x86_names;
    }
    *out_count = architecture == KN_ARCH_AARCH64 ? KN_ARM_FEATURE_COUNT : 0;
    return arm_names;
}

static bool same_text(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(text, name, length) == 0;
}

/* What one word of KILN_CPU_FEATURES leaves of the features; false if it means nothing. */
static bool mask_of_word(kn_architecture architecture, const char *word, size_t length,
                         uint64_t *out_mask)
{
    size_t count = 0;
    const char *const *names = names_of(architecture, &count);
    for (size_t i = 0; length > 1 && word[0] == '-' && i < count; i++) {
        if (same_text(word + 1, length - 1, names[i])) {
            *out_mask = ~BIT(i);
            return true;
        }
    }
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (levels[i].architecture == architecture && same_text(word, length, levels[i].name)) {
            *out_mask = levels[i].features;
            return true;
        }
    }
    return false;
}

kiln_status kn_cpu_target_native(const kn_processor *processor, cpu_target *out_target,
                                 kiln_diag *diag)
{
    cpu_target target = {processor->architecture, processor->features};
    const char *list = kn_env_get("KILN_CPU_FEATURES");
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ",");
        uint64_t mask = 0;
        if (!mask_of_word(target.architecture, list, length, &mask)) {
            return kiln_diag_set(diag, KILN_E_INVALID,
                                 "write -FEATURE or a level, for example -avx512f or x86-64-v3",
                                 "KILN_CPU_FEATURES", "\"%.*s\" is not a feature of this processor",
                                 (int)(length < 64 ? length : 64), list);
        }
        target.features &= mask;
        list += length;
        list += *list == ',';
    }
    target.features = consistent_features(target.architecture, target.features);
    *out_target = target;
    return KILN_OK;
}

static kiln_status unknown_target(const char *name, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID,
                         "use native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4 or aarch64",
                         "target of the cpu backend", "there is no \"%.64s\"", name);
}

kiln_status kn_cpu_target_named(const kn_processor *processor, const char *name,
                                cpu_target *out_target, kiln_diag *diag)
{
    if (strcmp(name, "native") == 0) {
        return kn_cpu_target_native(processor, out_target, diag);
    }
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        const size_t length = strlen(levels[i].name);
        if (strncmp(name, levels[i].name, length) != 0) {
            continue;
        }
        uint64_t extra = 0;
        if (name[length] == '_') {
            char *end = NULL;
            extra = strtoull(name + length + 1, &end, 16);
            if (end == name + length + 1 || *end != '\0') {
                return unknown_target(name, diag);
            }
        } else if (name[length] != '\0') {
            continue;
        }
        size_t count = 0;
        (void)names_of(levels[i].architecture, &count);
        if ((extra & ~(BIT(count) - 1)) != 0) {
            return unknown_target(name, diag);
        }
        *out_target =
            (cpu_target){levels[i].architecture,
                         consistent_features(levels[i].architecture, levels[i].features | extra)};
        return KILN_OK;
    }
    return unknown_target(name, diag);
}

void kn_cpu_target_name(const cpu_target *target, char *name, size_t size)
{
    kn_text_put(name, size, "unknown");
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (levels[i].architecture != target->architecture ||
            (levels[i].features & ~target->features) != 0) {
            continue;
        }
        const uint64_t extra = target->features & ~levels[i].features;
        if (extra == 0) {
            kn_text_put(name, size, levels[i].name);
        } else {
            kn_text_putf(name, size, "%s_%llx", levels[i].name, (unsigned long long)extra);
        }
        return;
    }
}

void kn_cpu_target_features(const cpu_target *target, kn_strbuf *text)
{
    size_t count = 0;
    const char *const *names = names_of(target->architecture, &count);
    const char *gap = "";
    for (size_t i = 0; i < count; i++) {
        if ((target->features & BIT(i)) != 0) {
            kn_strbuf_append_text(text, gap);
            kn_strbuf_append_text(text, names[i]);
            gap = " ";
        }
    }
}

void kn_cpu_target_flags(const cpu_target *target, kn_strbuf *flags)
{
    size_t count = 0;
    const char *const *names = names_of(target->architecture, &count);
    const bool arm = target->architecture == KN_ARCH_AARCH64;
    if (target->architecture == KN_ARCH_X86_64) {
        kn_strbuf_append(flags, "-march=x86-64\0-mtune=generic",
                         sizeof("-march=x86-64\0-mtune=generic"));
    } else if (arm) {
        kn_strbuf_append_text(flags, "-march=armv8-a");
    }
    for (size_t i = 0; i < count; i++) {
        if ((target->features & BIT(i)) != 0) {
            kn_strbuf_append_text(flags, arm ? "+" : "-m");
            kn_strbuf_append_text(flags, names[i]);
            if (!arm) {
                kn_strbuf_append_char(flags, '\0');
            }
        }
    }
    if (arm) {
        kn_strbuf_append_char(flags, '\0');
    }
}

bool kn_cpu_target_runs_on(const cpu_target *target, const cpu_target *machine)
{
    return target->architecture == machine->architecture &&
           (target->features & ~machine->features) == 0;
}

const char *kn_cpu_architecture_name(kn_architecture architecture)
{
    if (architecture == KN_ARCH_X86_64) {
        return "x86_64";
    }
    return architecture == KN_ARCH_AARCH64 ? "aarch64" : "";
}

kn_architecture kn_cpu_architecture_of_machine(const char *machine)
{
    if (kn_text_starts(machine, "x86_64-") || kn_text_starts(machine, "amd64-")) {
        return KN_ARCH_X86_64;
    }
    return kn_text_starts(machine, "aarch64-") ? KN_ARCH_AARCH64 : KN_ARCH_OTHER;
}

const cpu_target *kn_cpu_target_of(const kiln_target *target)
{
    return (const cpu_target *)target->handle;
}

kiln_status kn_cpu_target_wrap(const cpu_target *target, kiln_target *out_target, kiln_diag *diag)
{
    cpu_target *copy = (cpu_target *)malloc(sizeof(*copy));
    if (copy == NULL) {
        return kn_no_memory(diag, "making a target");
    }
    *copy = *target;
    *out_target = (kiln_target){.handle = copy};
    kn_cpu_target_name(target, out_target->name, sizeof(out_target->name));
    return KILN_OK;
}
