/* The options of gcc 7 to 15 and clang 7 to 20. An option is cacheable when it is in a list here:
 * it names no file, nothing of this machine, and has the compiler write nothing but its output.
 * What is not in a list bypasses the cache. A value is plain text without a "/": no path is one.
 */
#include "apis/cpu/backend/compiler.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

static const char unknown_option[] =
    "an option may name a file; the known options are in docs/reference/backends/cpu.md";
static const char native[] = "\"native\" depends on the machine; name the target";

/* Reasons of those that users try, by prefix. */
static const struct {
    const char *prefix, *why;
} refused[] = {
    {"-I", "an include directory among the options is not followed; give it as an include "
           "directory"},
    {"-i", "an option includes a file, or names a directory of headers, which is not followed"},
    {"-Wl,", "options for the linker may name files"},
    {"-Wa,", "options for the assembler may name files"},
    {"-Wp,", "options for the preprocessor may name files"},
    {"-Xclang", "options for a part of the compiler may name files"},
    {"-Xpreprocessor", "options for a part of the compiler may name files"},
    {"-Xassembler", "options for a part of the compiler may name files"},
    {"-Xlinker", "options for a part of the compiler may name files"},
    {"-mllvm", "options for a part of the compiler may name files"},
    {"-fplugin", "a plugin of the compiler is a file that kiln does not follow"},
    {"-fprofile", "a profile is a file that kiln does not follow"},
    {"-fsanitize", "a sanitizer has libraries and lists that kiln does not follow"},
    {"-fmodule", "modules are files that kiln does not follow"},
    {"-fuse-ld", "another linker is not the one that kiln identified"},
    {"-fdump", "the compiler is asked to write more files"},
    {"-fstack-usage", "the compiler is asked to write more files"},
    {"-ftime-trace", "the compiler is asked to write more files"},
    {"-gsplit-dwarf", "the compiler is asked to write more files"},
    {"-save-temps", "the compiler is asked to write more files"},
    {"-frecord", "the command line, with its directories, would be in the object"},
    {"-grecord", "the command line, with its directories, would be in the object"},
    {"@", "a file of options is not followed"},
};

/* Lists of words, each with a blank before and after it. */

/* -fNAME and -fno-NAME. */
static const char f_names[] =
    " PIC PIE aggressive-loop-optimizations align-functions align-jumps align-labels"
    " align-loops allocation-dce allow-parameterless-variadic-functions"
    " allow-store-data-races approx-func asm associative-math asynchronous-unwind-tables"
    " auto-inc-dec bit-tests blocks borland-extensions bracket-depth branch-count-reg"
    " builtin caller-saves caret-diagnostics cf-protection char8_t code-hoisting"
    " color-diagnostics combine-stack-adjustments common compare-elim cond-mismatch"
    " conserve-stack constexpr-depth constexpr-steps cprop-registers crossjumping"
    " cse-follow-jumps cx-fortran-rules cx-limited-range data-sections dce defer-pop"
    " delayed-branch delete-dead-exceptions delete-null-pointer-checks denormal-fp-math"
    " denormal-fp-math-f32 devirtualize devirtualize-speculatively diagnostics-color"
    " diagnostics-column-unit diagnostics-plain-output diagnostics-show-caret"
    " diagnostics-show-option digraphs direct-access-external-data dollars-in-identifiers"
    " dse dwarf2-cfi-asm early-inlining eliminate-unused-debug-symbols"
    " eliminate-unused-debug-types emulated-tls error-limit escaping-block-tail-calls"
    " exceptions excess-precision expensive-optimizations extended-identifiers fast-math"
    " finite-loops finite-math-only float-store fold-simple-inlines force-enable-int128"
    " forward-propagate fp-contract fp-eval-method fp-exception-behavior"
    " fp-int-builtin-inexact fp-model freestanding function-cse function-sections"
    " gnu-keywords gnu89-inline graphite-identity guess-branch-probability harden-compares"
    " harden-conditional-branches hoist-adjacent-loads honor-infinities honor-nans hosted"
    " ident if-conversion if-conversion2 indirect-inlining inline inline-atomics"
    " inline-functions inline-functions-called-once inline-limit inline-small-functions"
    " integrated-as isolate-erroneous-paths-attribute isolate-erroneous-paths-dereference"
    " ivopts jump-tables keep-gc-roots-live keep-inline-functions keep-static-consts"
    " keep-static-functions lax-vector-conversions leading-underscore lifetime-dse"
    " limit-function-alignment live-range-shrinkage lra-remat math-errno matrix max-errors"
    " merge-all-constants merge-constants merge-debug-strings merge-functions message-length"
    " move-loop-invariants move-loop-stores ms-extensions non-call-exceptions"
    " omit-frame-pointer openmp-simd optimize-sibling-calls optimize-strlen pack-struct"
    " partial-inlining peel-loops permitted-flt-eval-methods pic pie plan9-extensions plt"
    " predictive-commoning prefetch-loop-arrays preserve-as-comments printf-return-value"
    " reciprocal-math ree reg-struct-return rename-registers reroll-loops rounding-math"
    " section-anchors semantic-interposition short-enums show-column signaling-nans"
    " signed-bitfields signed-char signed-zeros simd-cost-model single-precision-constant"
    " slp-vectorize spell-checking stack-check stack-clash-protection stack-protector"
    " stack-protector-all stack-protector-explicit stack-protector-strong stack-reuse"
    " stack-size-section stdarg-opt store-merging strict-aliasing strict-flex-arrays"
    " strict-float-cast-overflow strict-overflow strict-return strict-volatile-bitfields"
    " sync-libcalls tabstop thread-jumps tls-model toplevel-reorder tracer trampolines"
    " trapping-math trapv trivial-auto-var-init unconstrained-commons unique-section-names"
    " unit-at-a-time unsafe-math-optimizations unsigned-bitfields unsigned-char"
    " unwind-tables var-tracking var-tracking-assignments var-tracking-uninit verbose-asm"
    " visibility web wrapv wrapv-pointer zero-call-used-regs zero-initialized-in-bss ";

/* The same: passes of the optimiser. */
static const char f_passes[] =
    " gcse gcse-after-reload gcse-las gcse-lm gcse-sm ipa-bit-cp ipa-cp ipa-cp-clone ipa-icf"
    " ipa-icf-functions ipa-icf-variables ipa-modref ipa-pta ipa-pure-const ipa-ra"
    " ipa-reference ipa-reference-addressable ipa-sra ipa-stack-alignment"
    " ipa-strict-aliasing ipa-vrp ira-algorithm ira-hoist-pressure ira-loop-pressure"
    " ira-region ira-share-save-slots ira-share-spill-slots loop-interchange"
    " loop-nest-optimize loop-parallelize-all loop-unroll-and-jam modulo-sched"
    " modulo-sched-allow-regmoves peephole peephole2 reorder-blocks reorder-blocks-algorithm"
    " reorder-blocks-and-partition reorder-functions rerun-cse-after-loop"
    " reschedule-modulo-scheduled-loops sched-critical-path-heuristic"
    " sched-dep-count-heuristic sched-group-heuristic sched-interblock"
    " sched-last-insn-heuristic sched-pressure sched-rank-heuristic sched-spec"
    " sched-spec-insn-heuristic sched-spec-load sched-spec-load-dangerous"
    " sched-stalled-insns sched-stalled-insns-dep sched2-use-superblocks schedule-fusion"
    " schedule-insns schedule-insns2 sel-sched-pipelining sel-sched-pipelining-outer-loops"
    " sel-sched-reschedule-pipelined selective-scheduling selective-scheduling2 shrink-wrap"
    " shrink-wrap-separate split-ivs-in-unroller split-loops split-paths split-stack"
    " split-wide-types split-wide-types-early ssa-backprop ssa-phiopt tree-bit-ccp"
    " tree-builtin-call-dce tree-ccp tree-ch tree-coalesce-vars tree-copy-prop tree-cselim"
    " tree-dce tree-dominator-opts tree-dse tree-forwprop tree-fre"
    " tree-loop-distribute-patterns tree-loop-distribution tree-loop-if-convert tree-loop-im"
    " tree-loop-ivcanon tree-loop-optimize tree-loop-vectorize tree-lrs"
    " tree-partial-pre tree-phiprop tree-pre tree-pta tree-reassoc"
    " tree-scev-cprop tree-sink tree-slp-vectorize tree-slsr tree-sra tree-switch-conversion"
    " tree-tail-merge tree-ter tree-vectorize tree-vrp unroll-all-loops"
    " unroll-completely-grow-size unroll-loops unswitch-loops variable-expansion-in-unroller"
    " vect-cost-model vectorize version-loops-for-strides ";

/* -mNAME and -mno-NAME. */
static const char m_names[] =
    " 128bit-long-double 32 3dnow 3dnowa 64 80387 8bit-idiv 96bit-long-double abi abm"
    " accumulate-outgoing-args address-mode adx aes align-data align-double align-functions"
    " align-jumps align-loops align-stringops altivec amx-bf16 amx-complex amx-fp16 amx-int8"
    " amx-tile apxf arch arm asm avx avx10.1 avx2 avx256-split-unaligned-load"
    " avx256-split-unaligned-store avx5124fmaps avx5124vnniw avx512bf16 avx512bitalg avx512bw"
    " avx512cd avx512dq avx512er avx512f avx512fp16 avx512ifma avx512pf avx512vbmi avx512vbmi2"
    " avx512vl avx512vnni avx512vp2intersect avx512vpopcntdq avxifma avxneconvert avxvnni"
    " avxvnniint16 avxvnniint8 big-endian bmi bmi2 branch-cost branch-protection"
    " call-ms2sysv-xlogues cet-switch cld cldemote clflushopt clwb clzero cmodel cmpccxadd cpu"
    " crc32 cx16 direct-extern-access dispatch-scheduler enqcmd evex512 f16c fancy-math-387"
    " fentry fix-cortex-a53-835769 float-abi fma fma4 force-drap force-indirect-call"
    " fp-ret-in-387 fpmath fpu fsgsbase function-return fxsr general-regs-only gfni hard-float"
    " harden-sls hle hreset ieee-fp implicit-float incoming-stack-boundary indirect-branch"
    " indirect-branch-cs-prefix indirect-branch-register inline-all-stringops"
    " inline-stringops-dynamically instrument-return kl large-data-threshold little-endian"
    " long-double-128 long-double-64 long-double-80 low-precision-div low-precision-recip-sqrt"
    " low-precision-sqrt lvi-cfi lvi-hardening lwp lzcnt manual-endbr memcpy-strategy"
    " memset-strategy mitigate-rop mmx movbe movdir64b movdiri move-max ms-bitfields mwait"
    " mwaitx needed omit-leaf-frame-pointer outline-atomics pc32 pc64 pc80 pclmul pcommit"
    " pconfig pku popcnt power8-vector power9-vector prefer-avx128 prefer-vector-width"
    " preferred-stack-boundary prefetchi prefetchwt1 prfchw ptwrite push-args raoint rdpid"
    " rdrnd rdseed recip record-return red-zone regparm relax relax-cmpxchg-loop retpoline rtd"
    " rtm sahf serialize sgx sha sha512 shstk skip-rax-setup sm3 sm4 soft-float sse sse2"
    " sse2avx sse3 sse4 sse4.1 sse4.2 sse4a sse5 sseregparm ssse3 stack-alignment"
    " stack-arg-probe stack-protector-guard stack-protector-guard-offset"
    " stack-protector-guard-reg stack-protector-guard-symbol stackrealign store-max"
    " strict-align stringop-strategy stv sve-vector-bits tbm thumb tls-dialect"
    " tls-direct-seg-refs tsxldtrk tune uintr unaligned-access vaes veclibabi vect8-ret-in-mem"
    " vpclmulqdq vsx vzeroupper waitpkg wbnoinvd widekl x32 xop xsave xsavec xsaveopt xsaves"
    " ";

/* Options that stand for themselves. */
static const char whole[] =
    " -w -W -ansi -pedantic -lm -pthread -trigraphs -pedantic-errors -O -O0 -O1 -O2 -O3 -O4"
    " -Os -Oz -Og -Ofast -pipe -g0 -ggdb0"
    " ";

/* The same, and the object names files then. */
static const char debug[] =
    " -g -g1 -g2 -g3 -ggdb -ggdb1 -ggdb2 -ggdb3 -gdwarf -gdwarf-2 -gdwarf-3 -gdwarf-4"
    " -gdwarf-5 -gdwarf32 -gdwarf64 -gline-tables-only -gline-directives-only -gmlt"
    " -gcolumn-info -gno-column-info -gstrict-dwarf -gno-strict-dwarf -gno-record-gcc-switches"
    " -gvariable-location-views -gno-variable-location-views"
    " ";

static bool is_among(const char *words, const char *text, size_t length)
{
    const char *at = words;
    while (length > 0 && (at = strchr(at, ' ')) != NULL) {
        at++;
        if (strncmp(at, text, length) == 0 && at[length] == ' ') {
            return true;
        }
    }
    return false;
}

static bool is_plain_value(const char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c >= 0x80 || (!isalnum(c) && strchr("_.,+-", c) == NULL)) {
            return false;
        }
    }
    return true;
}

/* "NAME", "no-NAME", "NAME=VALUE" with NAME in a list. */
static bool is_switch(const char *names, const char *text)
{
    const size_t length = strcspn(text, "=");
    if (text[length] == '=' && !is_plain_value(text + length + 1)) {
        return false;
    }
    if (is_among(names, text, length)) {
        return true;
    }
    return text[length] == '\0' && kn_text_starts(text, "no-") &&
           is_among(names, text + 3, length - 3);
}

/* "-Wunused", "-Wno-error=shadow", "-Wframe-larger-than=100", not the options for other programs.
 */
static bool is_warning(const char *text)
{
    if (!kn_text_starts(text, "-W") || strchr(text, ',') != NULL) {
        return false;
    }
    const size_t length = strcspn(text, "=");
    for (size_t i = 2; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x80 || (!isalnum(c) && strchr("+-", c) == NULL)) {
            return false;
        }
    }
    return text[length] == '\0' || is_plain_value(text + length + 1);
}

static bool is_native(const char *option)
{
    return strcmp(option, "-march=native") == 0 || strcmp(option, "-mtune=native") == 0 ||
           strcmp(option, "-mcpu=native") == 0;
}

static bool is_known(const char *option)
{
    if (is_among(whole, option, strlen(option))) {
        return true;
    }
    if (kn_text_starts(option, "-std=")) {
        return is_plain_value(option + 5);
    }
    if (kn_text_starts(option, "-f")) {
        return is_switch(f_names, option + 2) || is_switch(f_passes, option + 2);
    }
    if (kn_text_starts(option, "-m")) {
        return is_switch(m_names, option + 2);
    }
    return is_warning(option);
}

/* Reads the option at *index, which moves on to the last element that belongs to it. */
static const char *read_option(const char *const *options, size_t count, size_t *index,
                               bool *out_names)
{
    const char *option = options[*index];
    if (strcmp(option, "-D") == 0 || strcmp(option, "-U") == 0) {
        if (*index + 1 == count) {
            return unknown_option; /* the next word would be one of kiln's own */
        }
        ++*index;
        return NULL;
    }
    if (kn_text_starts(option, "-D") || kn_text_starts(option, "-U")) {
        return NULL;
    }
    if (is_native(option)) {
        return native;
    }
    if (is_among(debug, option, strlen(option))) {
        *out_names = true;
        return NULL;
    }
    if (is_known(option)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (kn_text_starts(option, refused[i].prefix)) {
            return refused[i].why;
        }
    }
    return unknown_option;
}

void kn_cpu_options_read(const char *const *options, size_t count, kn_cpu_option_facts *out)
{
    *out = (kn_cpu_option_facts){NULL, false};
    for (size_t i = 0; i < count && out->reason == NULL; i++) {
        out->reason = read_option(options, count, &i, &out->names);
    }
}
