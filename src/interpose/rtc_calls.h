/* The calls that NVRTC and hipRTC have alike, with kiln in between. Each answers from what is known
 * where the arguments are ordinary; everything else is put to the real library, so that its answer
 * is the real one. A handle is kiln's program, or one of the real library's. Threads: any. */
#ifndef KILN_INTERPOSE_RTC_CALLS_H
#define KILN_INTERPOSE_RTC_CALLS_H

#include "interpose/rtc_program.h"

int kn_rtc_call_create(kn_rtc_library *library, void **program, const char *source,
                       const char *name, int header_count, const char *const *headers,
                       const char *const *header_names);
int kn_rtc_call_destroy(kn_rtc_library *library, void **program);
int kn_rtc_call_add_expression(kn_rtc_library *library, void *handle, const char *expression);
int kn_rtc_call_compile(kn_rtc_library *library, void *handle, int option_count,
                        const char *const *options);
int kn_rtc_call_lowered(kn_rtc_library *library, void *handle, const char *expression,
                        const char **lowered);
int kn_rtc_call_size(kn_rtc_library *library, void *handle, kn_rtc_part part, size_t *size);
int kn_rtc_call_bytes(kn_rtc_library *library, void *handle, kn_rtc_part part, char *bytes);

/* The program with its lock held; NULL if the handle is not of this library. */
kn_rtc_program *kn_rtc_lock_program(void *handle);
void kn_rtc_unlock_program(kn_rtc_program *program); /* NULL is fine */
/* The output of a program that was found in the cache or compiled for it; NULL: ask the real one.
 */
const kn_rtc_output *kn_rtc_find_output(const kn_rtc_program *program, kn_rtc_part part);
/* The real program behind a handle, as far as the caller has come; a handle that is not of this
 * library is handed on as it is. */
void *kn_rtc_real_of(const kn_rtc_library *library, kn_rtc_program *program, void *handle,
                     int *out_code);

/* Ends the call with what the real library's `function` gives for the program, which is `real_`
 * among the arguments. Unlocks. */
#define KN_RTC_HAND_ON(library, program, handle, function, ...)                                    \
    do {                                                                                           \
        int code_ = 0;                                                                             \
        void *const real_ = kn_rtc_real_of(library, program, handle, &code_);                      \
        if (code_ == 0) {                                                                          \
            const kn_rtc_calls *calls_ = (library)->open();                                        \
            code_ =                                                                                \
                calls_->function != NULL ? calls_->function(__VA_ARGS__) : KN_RTC_INTERNAL_ERROR;  \
        }                                                                                          \
        kn_rtc_unlock_program(program);                                                            \
        return code_;                                                                              \
    } while (0)

#endif
