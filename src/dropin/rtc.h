/* What the drop-ins of NVRTC and hipRTC share: a request whose options name the target, the build
 * of core/build/build.c without its load, and what it gave. */
#ifndef KILN_DROPIN_RTC_H
#define KILN_DROPIN_RTC_H

#include "kiln/cache.h"
#include "kiln/source.h"

#include "compilers/call_option.h"

/* Which of the two it is. */
typedef struct kn_rtc_kind {
    const char *call;    /* the public function, for messages */
    const char *backend; /* its name */
    const char *name;    /* of a source that has none */
    kiln_language language;
    kn_call_option_fn *read_option;
    bool one_target;                   /* the compiler refuses a second one; else the last counts */
    const char *no_arch, *no_arch_fix; /* said where no option names a target */
} kn_rtc_kind;

/* The members that both public requests have. */
typedef struct kn_rtc_request {
    const char *text, *name;
    const char *const *options;
    size_t option_count;
    const kiln_header *headers;
    size_t header_count;
    const char *const *expressions;
    size_t expression_count;
} kn_rtc_request;

/* What was compiled or found; all of it lives as long as the result. */
typedef struct kn_rtc_result {
    kiln_blob *blob; /* keeps the binary, the log and the names */
    const char *binary;
    size_t size;
    kiln_language language;
    const char *log; /* "" if there is none */
    const char **lowered;
    kiln_origin origin;
} kn_rtc_result;

/* Fills *out_result, which is the caller's to deinit; it is zero after a failure. `cache` NULL: the
 * default cache, opened for the call. */
kiln_status kn_rtc_compile(const kn_rtc_kind *kind, kiln_cache *cache,
                           const kn_rtc_request *request, kn_rtc_result *out_result,
                           kiln_diag *diag);
void kn_rtc_result_deinit(kn_rtc_result *result);

#endif
