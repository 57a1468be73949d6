/* One compile by a compiler of NVRTC's shape, NVRTC or hipRTC: what is given, and what comes back.
 * Lowered names are kept as facts, so that a hit gives them back as the compile did. */
#ifndef KILN_GPU_RTC_H
#define KILN_GPU_RTC_H

#include <stdbool.h>
#include <stddef.h>

#include "kiln/sys/backend.h"
#include "sys/thread.h"

#define X(row, name, parameters) int(*row) parameters;
typedef struct kn_gpu_rtc {
#include "gpu/rtc.def"
} kn_gpu_rtc;
#undef X

/* Results that both have, with the same numbers. */
enum {
    KN_GPU_RTC_OUT_OF_MEMORY = 1,
    KN_GPU_RTC_INVALID_OPTION = 5,
    KN_GPU_RTC_COMPILATION = 6,
    KN_GPU_RTC_BUILTINS_FAILED = 7,
    KN_GPU_RTC_NAME_NOT_VALID = 10,
};

/* A list of options that remembers whether memory ran out. All zero: empty. */
typedef struct kn_gpu_options {
    const char **items;
    char **owned; /* those of `items` that were made here */
    size_t count, owned_count, room;
    bool failed;
} kn_gpu_options;

void kn_gpu_options_add(kn_gpu_options *list, const char *text); /* borrows it */
void kn_gpu_options_join(kn_gpu_options *list, const char *a, const char *b, const char *c,
                         const char *d);
void kn_gpu_options_deinit(kn_gpu_options *list);

typedef struct kn_gpu_unit {
    const char *text;  /* NUL-terminated */
    const char *name;  /* for the compiler */
    const char *shown; /* in messages */
    kn_gpu_options options;
    const char *const *expressions;
    size_t expression_count;
    char kind;      /* of output, as the vendor names it */
    kn_mutex *turn; /* held while it compiles; NULL: none */
} kn_gpu_unit;

typedef struct kn_gpu_answer {
    int result;
    char *log; /* "" if there is none; part of `bytes` */
    size_t log_length;
    const void *output;
    size_t output_size;
    const char **lowered; /* one an expression */
    size_t lowered_count, lowered_room;
    char header; /* a helper's: 'u' if a precompiled one was used */
    char *bytes; /* what all of it lies in */
    size_t size;
} kn_gpu_answer;

/* The functions for the wanted output; NULL where the compiler lacks them. */
typedef struct kn_gpu_output {
    int (*size)(void *program, size_t *size);
    int (*bytes)(void *program, char *bytes);
} kn_gpu_output;

/* KILN_OK also when the compile failed (answer.result); KILN_E_NOMEM. `out_program` keeps the
 * lowered names alive: the caller destroys it, and deinits the answer, in either case. Blocks: the
 * compile. */
kiln_status kn_gpu_rtc_compile(const kn_gpu_rtc *rtc, const kn_gpu_unit *unit,
                               const kiln_source *source, kn_gpu_output output, void **out_program,
                               kn_gpu_answer *answer);
void kn_gpu_answer_deinit(kn_gpu_answer *answer);

/* A failed compile as status and diag, "COMPILER reports TEXT"; `fix` is for what is not the
 * kernel's fault and may be NULL. */
kiln_status kn_gpu_rtc_fail(const kn_gpu_unit *unit, const kn_gpu_answer *answer,
                            const char *compiler, const char *text, const char *fix,
                            kiln_diag *diag);

/* "lowered:N": the fact with the lowered name of an entry, by its place. A fact's name is short,
 * and a name expression may be a page long. src/dropin/rtc.c asks for the same. */
#define KN_GPU_LOWERED_FACT "lowered:"
/* Log and lowered names into the artifact. KILN_E_NOMEM. */
kiln_status kn_gpu_rtc_keep(const kn_gpu_unit *unit, const kn_gpu_answer *answer,
                            const kiln_host *host, kiln_artifact *artifact, kiln_diag *diag);

#endif
