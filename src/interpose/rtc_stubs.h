/* The functions that a table of NVRTC's calls and one of hipRTC's have alike, for a file that has
 * one kn_rtc_library: KN_RTC_STUBS(nvrtc, &library) makes call_nvrtcCreateProgram and others, which
 * the file names by the rows of its nvrtc_calls.def. */
#ifndef KILN_INTERPOSE_RTC_STUBS_H
#define KILN_INTERPOSE_RTC_STUBS_H

#include "interpose/rtc_calls.h"

#define KN_RTC_STUBS(prefix, of)                                                                   \
    static int call_##prefix##CreateProgram(void **program, const char *source, const char *name,  \
                                            int header_count, const char *const *headers,          \
                                            const char *const *header_names)                       \
    {                                                                                              \
        return kn_rtc_call_create(of, program, source, name, header_count, headers, header_names); \
    }                                                                                              \
    static int call_##prefix##DestroyProgram(void **program)                                       \
    {                                                                                              \
        return kn_rtc_call_destroy(of, program);                                                   \
    }                                                                                              \
    static int call_##prefix##CompileProgram(void *program, int count, const char *const *options) \
    {                                                                                              \
        return kn_rtc_call_compile(of, program, count, options);                                   \
    }                                                                                              \
    static int call_##prefix##AddNameExpression(void *program, const char *expression)             \
    {                                                                                              \
        return kn_rtc_call_add_expression(of, program, expression);                                \
    }                                                                                              \
    static int call_##prefix##GetLoweredName(void *program, const char *expression,                \
                                             const char **lowered)                                 \
    {                                                                                              \
        return kn_rtc_call_lowered(of, program, expression, lowered);                              \
    }                                                                                              \
    KN_RTC_OUTPUT(prefix, ProgramLog, of, KN_RTC_LOG)

/* What a program gives by its size and its bytes. */
#define KN_RTC_OUTPUT(prefix, name, of, part)                                                      \
    static int call_##prefix##Get##name##Size(void *program, size_t *size)                         \
    {                                                                                              \
        return kn_rtc_call_size(of, program, part, size);                                          \
    }                                                                                              \
    static int call_##prefix##Get##name(void *program, char *bytes)                                \
    {                                                                                              \
        return kn_rtc_call_bytes(of, program, part, bytes);                                        \
    }

/* The real library's own answer; `of` has `open`, which gives its table. */
#define KN_RTC_ASK(of, name, arguments)                                                            \
    ((of)->open() != NULL && (of)->open()->name != NULL ? (of)->open()->name arguments             \
                                                        : KN_RTC_INTERNAL_ERROR)
/* A function that only asks it. */
#define KN_RTC_OWN(of, name, parameters, arguments)                                                \
    static int call_##name parameters                                                              \
    {                                                                                              \
        return KN_RTC_ASK(of, name, arguments);                                                    \
    }

/* The texts for the codes that every version has; the others are the real library's to give. */
#define KN_RTC_ERROR_STRING(prefix, PREFIX, of)                                                    \
    static const char *call_##prefix##GetErrorString(int code)                                     \
    {                                                                                              \
        static const char *const texts[] = {PREFIX "_SUCCESS",                                     \
                                            PREFIX "_ERROR_OUT_OF_MEMORY",                         \
                                            PREFIX "_ERROR_PROGRAM_CREATION_FAILURE",              \
                                            PREFIX "_ERROR_INVALID_INPUT",                         \
                                            PREFIX "_ERROR_INVALID_PROGRAM",                       \
                                            PREFIX "_ERROR_INVALID_OPTION",                        \
                                            PREFIX "_ERROR_COMPILATION"};                          \
        if (code >= 0 && code < (int)(sizeof(texts) / sizeof(texts[0]))) {                         \
            return texts[code];                                                                    \
        }                                                                                          \
        return (of)->open() != NULL ? (of)->open()->prefix##GetErrorString(code)                   \
                                    : PREFIX "_ERROR_INTERNAL_ERROR";                              \
    }

#endif
