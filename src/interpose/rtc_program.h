/* One nvrtcProgram or hiprtcProgram of a caller: what it was made of, the result that stands for
 * it, and the real program behind it, which is made only when something is asked that the result
 * cannot answer.
 *
 *     new ──compile──► found: `result` answers, no real program
 *      │      └──────► compiled: a real program, and `result` of what it gave
 *      └─anything the cache does not know──► plain: every call goes to the real program
 *
 * Callers hold the program's lock; the functions below do not take it. */
#ifndef KILN_INTERPOSE_RTC_PROGRAM_H
#define KILN_INTERPOSE_RTC_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/rtc_library.h"
#include "kiln/cache.h"
#include "kiln/source.h"
#include "sys/thread.h"

typedef struct kn_rtc_program {
    kn_mutex lock;
    kn_rtc_library *library;
    char *text;
    char *name; /* NULL: none was given */
    kiln_header *headers;
    size_t header_count;
    char **expressions;
    size_t expression_count;
    char **options; /* of the last compile */
    size_t option_count;
    char **earlier; /* of the compile before, if the cache answered it; NULL: the real one knows */
    size_t earlier_count;
    int (*callback)(void *, void *);
    void *callback_payload;
    bool plain;         /* the real program has the last word */
    bool real_compiled; /* the real program was compiled with `options` */
    void *real;         /* NULL: not made yet */
    kiln_blob *blob;    /* of `result`; NULL: there is none */
    kn_rtc_answer result;
    char *log; /* made for this program's name; NULL: the result's own */
} kn_rtc_program;

/* The name that the library gives it where the caller has given none. */
const char *kn_rtc_program_name(const kn_rtc_program *program);

/* Copies what it is given. NULL when out of memory. */
kn_rtc_program *kn_rtc_program_create(kn_rtc_library *library, const char *text, const char *name,
                                      int header_count, const char *const *headers,
                                      const char *const *header_names);
/* Destroys the program, the real one behind it, too. False if the handle is not that of a program
 * which is alive. */
bool kn_rtc_program_destroy(void *handle);

/* The program behind a handle; NULL if the handle is not that of one which is alive: it is the real
 * library's. It is not read. Threads: any. */
kn_rtc_program *kn_rtc_program_of(void *handle);

bool kn_rtc_program_add_expression(kn_rtc_program *program, const char *expression);
bool kn_rtc_program_set_options(kn_rtc_program *program, int count, const char *const *options);
/* Forgets the result of an earlier compile. */
void kn_rtc_program_forget(kn_rtc_program *program);
/* Takes `blob` over. False if it is not a result of this program. */
bool kn_rtc_program_take(kn_rtc_program *program, kiln_blob *blob);

/* Makes the real program with everything that this one was given, without compiling it. The code is
 * the real library's. */
int kn_rtc_program_make_real(kn_rtc_program *program);
/* Makes it, and compiles it if this one has been: from now on it answers like this one. */
int kn_rtc_program_catch_up(kn_rtc_program *program);

/* Compiles the real program with the options; made before. After a compile that fails NVRTC still
 * has outputs of the compile before: if the cache answered that one, both are compiled. `uncached`
 * keeps the library from its own cache where it has one. */
int kn_rtc_program_compile_real(kn_rtc_program *program, bool uncached);

/* Everything that the compiled real program gives, as the payload of an entry. */
kiln_status kn_rtc_program_gather(kn_rtc_program *program, kiln_blob **out_blob, kiln_diag *diag);

#endif
