/* What code is made for: an architecture and a set of features, never a word like "native". */
#ifndef KILN_CPU_BACKEND_TARGET_H
#define KILN_CPU_BACKEND_TARGET_H

#include <stddef.h>

#include "kiln/sys/backend.h"

#include "base/strbuf.h"
#include "sys/processor.h"

typedef struct cpu_target {
    kn_architecture architecture;
    uint64_t features;
} cpu_target;

/* The machine's own features, less what KILN_CPU_FEATURES masks: a comma-separated list of
 * "-feature", or of a level ("x86-64-v3") that is not to be passed. KILN_E_INVALID names what is
 * wrong with it. */
kiln_status kn_cpu_target_native(const kn_processor *processor, cpu_target *out_target,
                                 kiln_diag *diag);
/* "native", "x86-64", "x86-64-v2" to "-v4", "aarch64", and any name kn_cpu_target_name gives. */
kiln_status kn_cpu_target_named(const kn_processor *processor, const char *name,
                                cpu_target *out_target, kiln_diag *diag);
/* Equal names mean equal targets: the highest level that is there, then the bits that remain. */
void kn_cpu_target_name(const cpu_target *target, char *name, size_t size);
/* "sse3 ssse3 ..." in the order of the maps. */
void kn_cpu_target_features(const cpu_target *target, kn_strbuf *text);
/* The compiler's options, each followed by a NUL. */
void kn_cpu_target_flags(const cpu_target *target, kn_strbuf *flags);
/* True if code for `target` runs on a processor with `machine`'s features. */
bool kn_cpu_target_runs_on(const cpu_target *target, const cpu_target *machine);

const char *kn_cpu_architecture_name(kn_architecture architecture); /* "x86_64"; "" for others */
/* The architecture of a compiler's machine name ("x86_64-linux-gnu"). */
kn_architecture kn_cpu_architecture_of_machine(const char *machine);

/* The target behind a kiln_target. */
const cpu_target *kn_cpu_target_of(const kiln_target *target);
kiln_status kn_cpu_target_wrap(const cpu_target *target, kiln_target *out_target, kiln_diag *diag);

#endif
