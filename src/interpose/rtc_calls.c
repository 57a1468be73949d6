/* See rtc_calls.h. */
#include "interpose/rtc_calls.h"

#include <string.h>

#include "interpose/rtc_compile.h"
#include "interpose/session.h"
#include "sys/clock.h"

/* --- handing on ------------------------------------------------------------------------------- */

kn_rtc_program *kn_rtc_lock_program(void *handle)
{
    kn_rtc_program *program = kn_rtc_program_of(handle);
    if (program != NULL) {
        kn_mutex_lock(&program->lock);
    }
    return program;
}

void kn_rtc_unlock_program(kn_rtc_program *program)
{
    if (program != NULL) {
        kn_mutex_unlock(&program->lock);
    }
}

void *kn_rtc_real_of(const kn_rtc_library *library, kn_rtc_program *program, void *handle,
                     int *out_code)
{
    *out_code = 0;
    if (program == NULL) {
        *out_code = library->open() != NULL ? 0 : KN_RTC_INTERNAL_ERROR;
        return handle;
    }
    *out_code = kn_rtc_program_catch_up(program);
    return program->real;
}

/* --- programs --------------------------------------------------------------------------------- */

/* NVRTC refuses two headers of one name. */
static bool is_repeated(const char *const *names, int at)
{
    bool repeated = false;
    for (int i = 0; !repeated && i < at; i++) {
        repeated = strcmp(names[i], names[at]) == 0;
    }
    return repeated;
}

static bool is_ordinary(const kn_rtc_library *library, void *const *program, const char *source,
                        int header_count, const char *const *headers, const char *const *names)
{
    /* hipRTC refuses empty texts when it is given them. */
    const bool may_be_empty = library->kind->takes_empty;
    bool ordinary = program != NULL && source != NULL && (may_be_empty || source[0] != '\0') &&
                    header_count >= 0 && (header_count == 0 || (headers != NULL && names != NULL));
    for (int i = 0; ordinary && i < header_count; i++) {
        ordinary = headers[i] != NULL && names[i] != NULL && !is_repeated(names, i) &&
                   (may_be_empty || (headers[i][0] != '\0' && names[i][0] != '\0'));
    }
    return ordinary;
}

int kn_rtc_call_create(kn_rtc_library *library, void **program, const char *source,
                       const char *name, int header_count, const char *const *headers,
                       const char *const *header_names)
{
    kn_rtc_program *made =
        is_ordinary(library, program, source, header_count, headers, header_names)
            ? kn_rtc_program_create(library, source, name, header_count, headers, header_names)
            : NULL;
    if (made == NULL) {
        const kn_rtc_calls *real = library->open();
        return real != NULL
                   ? real->create(program, source, name, header_count, headers, header_names)
                   : KN_RTC_INTERNAL_ERROR;
    }
    *program = made;
    return 0;
}

int kn_rtc_call_destroy(kn_rtc_library *library, void **program)
{
    if (program == NULL || !kn_rtc_program_destroy(*program)) {
        const kn_rtc_calls *real = library->open();
        return real != NULL ? real->destroy(program) : KN_RTC_INTERNAL_ERROR;
    }
    if (library->kind->clears) {
        *program = NULL;
    }
    return 0;
}

int kn_rtc_call_add_expression(kn_rtc_library *library, void *handle, const char *expression)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    /* After a compile, and for what is not a text, the answer is the real library's. */
    if (program == NULL || program->plain || program->blob != NULL || program->real != NULL ||
        expression == NULL || (expression[0] == '\0' && !library->kind->takes_empty)) {
        KN_RTC_HAND_ON(library, program, handle, add_expression, real_, expression);
    }
    const bool added = kn_rtc_program_add_expression(program, expression);
    kn_mutex_unlock(&program->lock);
    return added ? 0 : KN_RTC_OUT_OF_MEMORY;
}

/* The real library compiles from now on. One that adds to what an earlier compile left must have
 * had that compile. */
static void leave_program(kn_rtc_program *program, bool *out_caught_up)
{
    *out_caught_up = program->library->kind->recompiles || kn_rtc_program_catch_up(program) == 0;
    program->plain = true;
    kn_rtc_program_forget(program);
}

/* A program that the real library created by itself: the source is encrypted. */
static int compile_foreign(const kn_rtc_library *library, void *handle, int option_count,
                           const char *const *options)
{
    const kn_rtc_calls *real = library->open();
    const uint64_t start = kn_clock_now();
    if (real == NULL) {
        return KN_RTC_INTERNAL_ERROR;
    }
    const int code = real->compile(handle, option_count, options);
    if (code != KN_RTC_INVALID_PROGRAM) {
        kn_session_bypass(library->kind->what, library->kind->unnamed,
                          "created by the compiler itself: the source is encrypted",
                          kn_clock_now() - start);
    }
    return code;
}

int kn_rtc_call_compile(kn_rtc_library *library, void *handle, int option_count,
                        const char *const *options)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    if (program == NULL) {
        return compile_foreign(library, handle, option_count, options);
    }
    bool ordinary = option_count >= 0 && (option_count == 0 || options != NULL) &&
                    (library->kind->recompiles || program->blob == NULL);
    for (int i = 0; ordinary && i < option_count; i++) {
        ordinary = options[i] != NULL;
    }
    if (!ordinary || program->plain) {
        bool caught_up = true;
        leave_program(program, &caught_up);
        if (!caught_up) {
            kn_rtc_unlock_program(program);
            return KN_RTC_INTERNAL_ERROR;
        }
        KN_RTC_HAND_ON(library, program, handle, compile, real_, option_count, options);
    }
    const int code = kn_rtc_program_set_options(program, option_count, options)
                         ? kn_rtc_program_compile(program)
                         : KN_RTC_OUT_OF_MEMORY;
    kn_mutex_unlock(&program->lock);
    return code;
}

int kn_rtc_call_lowered(kn_rtc_library *library, void *handle, const char *expression,
                        const char **lowered)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    for (size_t i = 0; program != NULL && program->blob != NULL && !program->plain &&
                       expression != NULL && lowered != NULL && i < program->expression_count;
         i++) {
        if (strcmp(program->expressions[i], expression) == 0) {
            *lowered = program->result.lowered[i].data;
            kn_mutex_unlock(&program->lock);
            return 0;
        }
    }
    KN_RTC_HAND_ON(library, program, handle, get_lowered, real_, expression, lowered);
}

/* --- outputs ---------------------------------------------------------------------------------- */

const kn_rtc_output *kn_rtc_find_output(const kn_rtc_program *program, kn_rtc_part part)
{
    const bool known = program != NULL && program->blob != NULL && !program->plain &&
                       program->result.parts[part].known;
    return known ? &program->result.parts[part] : NULL;
}

int kn_rtc_call_size(kn_rtc_library *library, void *handle, kn_rtc_part part, size_t *size)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    const kn_rtc_output *output = size != NULL ? kn_rtc_find_output(program, part) : NULL;
    if (output == NULL || (output->code != 0 && !library->kind->plain_outputs)) {
        KN_RTC_HAND_ON(library, program, handle, outputs[part].size, real_, size);
    }
    const int code = output->code;
    if (code == 0) {
        *size = output->bytes.length;
    }
    kn_mutex_unlock(&program->lock);
    return code;
}

int kn_rtc_call_bytes(kn_rtc_library *library, void *handle, kn_rtc_part part, char *bytes)
{
    kn_rtc_program *program = kn_rtc_lock_program(handle);
    const kn_rtc_output *output = bytes != NULL ? kn_rtc_find_output(program, part) : NULL;
    if (output == NULL ||
        (!library->kind->plain_outputs && (output->code != 0 || output->bytes.length == 0))) {
        KN_RTC_HAND_ON(library, program, handle, outputs[part].bytes, real_, bytes);
    }
    const int code = output->code;
    if (output->bytes.length > 0) {
        memcpy(bytes, output->bytes.data, output->bytes.length);
    }
    kn_mutex_unlock(&program->lock);
    return code;
}
