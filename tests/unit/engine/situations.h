/* What can happen to a cached compile, and what each situation counts: one table for every
 * frontend.
 *
 * A frontend's test fills kt_frontend and calls kt_check_situations. It compiles as a program does;
 * the table opens the caches, runs the situations and compares counters. */
#ifndef KILN_TESTS_ENGINE_SITUATIONS_H
#define KILN_TESTS_ENGINE_SITUATIONS_H

#include "unit/engine/counts.h"

/* What a frontend's compiler or driver is told to do. */
typedef enum kt_event {
    KT_REFUSES,     /* the driver refuses the next load */
    KT_LOAD_FAILS,  /* the caller cannot take what is loaded next */
    KT_HEADER,      /* a header changes during the next compile */
    KT_COMPILER,    /* the compiler is replaced during the next compile */
    KT_PRIVATE,     /* the next result must not be stored */
    KT_FAILS,       /* the next compile fails */
    KT_BYPASSES,    /* the next compile has no key */
    KT_DEFERS,      /* the bytes of the next compile come later, and never do */
    KT_UNSOUND,     /* the entry is whole and no result of the compiler */
    KT_QUARANTINED, /* loads of the entry did not end */
    KT_RECORDS,     /* a program is recorded with its sources */
    KT_FORKS,       /* the process may fork during a compile */
    KT_NESTS,       /* a compile may call the frontend again */
    KT_THREADS,     /* two threads may compile at once */
    KT_EVENTS
} kt_event;

typedef struct kt_frontend {
    const char *name, *target; /* the directory of its entries */
    /* The state of a fresh process, whose files are in `dir`; the cache that it uses from now on.
     */
    void (*begin)(const char *dir);
    void (*end)(void);
    void (*use)(kiln_cache *cache);
    /* Compiles one program, or another one, and checks what the program gets. */
    void (*compile)(bool other);
    unsigned (*compiles)(void);
    /* To be called in the next compile, once. */
    void (*during)(void (*call)(void));
    /* How to cause an event: set a flag, or call a function. Neither: only the reason below is
     * needed, or nothing is to do. */
    _Atomic bool *flags[KT_EVENTS];
    void (*events[KT_EVENTS])(void);
    const char
        *impossible[KT_EVENTS];  /* why an event cannot happen to this frontend; NULL: it can */
    const char *(*origin)(void); /* in the last report; NULL: it reports to nobody */
} kt_frontend;

void kt_check_situations(const kt_frontend *frontend);

#endif
