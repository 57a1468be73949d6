/* A compiler with NVRTC's calls, which a program knows nothing of kiln under: NVRTC, and hipRTC,
 * whose calls, codes and orders are NVRTC's under other names. What the two have apart is in a
 * kn_rtc_kind. */
#ifndef KILN_INTERPOSE_RTC_LIBRARY_H
#define KILN_INTERPOSE_RTC_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/strbuf.h"
#include "interpose/rtc_answer.h"
#include "kiln/cache.h"
#include "kiln/source.h"
#include "kiln/sys/backend.h"
#include "record/request.h"
#include "sys/thread.h"

/* Codes that both have, with the same numbers. */
enum { KN_RTC_OUT_OF_MEMORY = 1, KN_RTC_INVALID_PROGRAM = 4, KN_RTC_INTERNAL_ERROR = 11 };

typedef int kn_rtc_size_fn(void *program, size_t *size);
typedef int kn_rtc_bytes_fn(void *program, char *bytes);

/* The real library's calls; one that it lacks is NULL. */
typedef struct kn_rtc_calls {
    int (*version)(int *major, int *minor);
    int (*create)(void **program, const char *source, const char *name, int header_count,
                  const char *const *headers, const char *const *header_names);
    int (*destroy)(void **program);
    int (*compile)(void *program, int option_count, const char *const *options);
    int (*add_expression)(void *program, const char *expression);
    int (*get_lowered)(void *program, const char *expression, const char **lowered);
    int (*set_callback)(void *program, int (*callback)(void *, void *), void *payload);
    int (*pch_status)(void *program);
    struct {
        kn_rtc_size_fn *size;
        kn_rtc_bytes_fn *bytes;
    } outputs[KN_RTC_PARTS];
} kn_rtc_calls;

/* The compiler behind a program, by its files: what a hit depends on without opening it. Each field
 * is one of the key's. */
enum { KN_RTC_IDENTITY_FIELDS = 3, KN_RTC_IDENTITY_TEXT = 1024 };
typedef struct kn_rtc_identity {
    struct {
        const char *field; /* NULL: none */
        char text[KN_RTC_IDENTITY_TEXT];
    } fields[KN_RTC_IDENTITY_FIELDS];
} kn_rtc_identity;

typedef struct kn_rtc_kind kn_rtc_kind;

/* One real library of a process. */
typedef struct kn_rtc_library {
    const kn_rtc_kind *kind;
    const char *path;  /* of its file */
    void *state;       /* its kind's own */
    uint32_t recorded; /* flags of a program that is recorded */
    /* Opens it, once; NULL if it cannot be opened. Threads: any. */
    const kn_rtc_calls *(*open)(void);
    kn_mutex lock; /* below: the identity, once it is known */
    bool known;
    kn_rtc_identity identity;
} kn_rtc_library;

/* What the options of one compile say. The lists are the caller's options or parts of them. */
typedef struct kn_rtc_options {
    const char **rest; /* without those that name directories */
    size_t rest_count;
    const char **directories;
    size_t directory_count;
    char target[64];    /* where an entry is kept: by the architecture, so that one can be pruned */
    char arch[64];      /* that a recording names: the option's value; "": no option names one */
    const char *bypass; /* why the compile bypasses the cache; NULL if it need not */
    bool beside;        /* "x.h" is searched in the directory of the source's name */
    bool not_beside;    /* ... and of no header's either */
    bool names;         /* the code names files: debug information */
    bool whole_name;    /* an output has the source's name */
} kn_rtc_options;

struct kn_rtc_kind {
    const char *what;    /* in reports */
    const char *name;    /* in messages */
    const char *unnamed; /* what it calls a source without a name */
    const char *stage;
    uint32_t revision;
    kiln_language language;
    kn_recorded_frontend frontend;
    const char *record_prefix; /* of a recording's target: "cuda" */
    const kiln_include_rules *include_rules;
    bool recompiles;    /* a program may be compiled again */
    bool clears;        /* a program that is destroyed leaves NULL in its handle */
    bool takes_empty;   /* empty texts and names are ordinary */
    bool plain_outputs; /* an empty output is given, and an error repeated, without a compile */

    /* KILN_E_UNAVAILABLE where the library's files cannot be read. */
    kiln_status (*find_identity)(const kn_rtc_library *library, kn_rtc_identity *out,
                                 kiln_diag *diag);
    /* True if the library that is mapped, and opened, is the one that the keys name. */
    bool (*identity_holds)(const kn_rtc_library *library, const kn_rtc_identity *identity);
    /* `out` has room for all options and a NULL in both lists, which are all NULL. */
    void (*read_options)(const char *const *options, size_t count, kn_rtc_options *out);
    /* What else the key depends on: variables. May be NULL. */
    void (*add_surroundings)(kiln_recipe *recipe);
    /* Why what it made is not kept; NULL if it may be. May be NULL. */
    const char *(*refuse)(const kn_rtc_options *options, const kn_rtc_answer *answer);
    /* The option that keeps it from a cache of its own; NULL: none, or it has none. May be NULL. */
    const char *(*uncached_option)(const kn_rtc_calls *real);
    /* A log as the same compile gives it for a source of another name. False without memory. */
    bool (*rename_log)(kn_span log, kn_span from, const char *to, kn_strbuf *out);
};

/* rtc_program.c. Found at the first call, then remembered. Threads: any. Blocks: disk. */
kiln_status kn_rtc_library_identify(kn_rtc_library *library, kn_rtc_identity *out, kiln_diag *diag);

#endif
