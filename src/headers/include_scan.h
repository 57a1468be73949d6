/* Reads the text of a source or header as a preprocessor would and reports every file it names:
 * #include, #include_next, #import, __has_include. It evaluates no condition and expands no macro:
 * branches not taken are reported too. It opens nothing and knows no directory; closure.c does.
 *
 * Comments, line splices, string and character literals, raw strings, digraphs and digit separators
 * are understood. What a preprocessor could turn into an include that is not readable here stops
 * the scan with a reason.
 *
 * What looks at texts outside the source is in closure_glance.c. */
#ifndef KILN_HEADERS_INCLUDE_SCAN_H
#define KILN_HEADERS_INCLUDE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "headers/pieces.h"
#include "kiln/status.h"

typedef enum kn_scan_kind {
    KN_SCAN_INCLUDE,  /* `text` is the name of a file, with a NUL after it */
    KN_SCAN_COMPUTED, /* `text` is what follows #include, or is in __has_include(): not a name */
    KN_SCAN_DEFINE,   /* `text` is the macro's name, `rest` what follows it */
    KN_SCAN_UNDEFINE,
} kn_scan_kind;

/* What the text asks for or defines. The spans live for the call. */
typedef struct kn_scan_event {
    kn_scan_kind kind;
    kn_span text;
    kn_span rest;  /* "(x) #x", " 4", "", with comments taken out; data NULL: it is long */
    bool quoted;   /* "x", not <x> */
    bool next;     /* #include_next, __has_include_next */
    bool probe;    /* __has_include: may be absent without harm */
    uint32_t line; /* of a computed include */
} kn_scan_event;

typedef struct kn_scan_reader {
    /* Any status but KILN_OK ends the scan and is returned by it. */
    kiln_status (*report)(void *user, const kn_scan_event *event);
    void *user;
    bool computed;     /* report them; else an include of a macro stops the scan */
    bool definitions;  /* report them, too */
    kn_pieces *pieces; /* gets what is there in pieces; may be NULL */
} kn_scan_reader;

/* Why the text cannot be followed; `why` is NULL if it can, else static text. */
typedef struct kn_scan_stop {
    const char *why;
    size_t line;
    bool names;   /* the text mentions its own file's name: __FILE__ and its like */
    bool once;    /* #pragma once: whether another header is this file matters; */
    bool imports; /* #import, which says it of another */
} kn_scan_stop;

/* Reports each include, in order. `raw_strings`: the language certainly has them (C++); where it
 * may not, text that reads differently with and without them stops the scan. */
kiln_status kn_include_scan(kn_span text, bool raw_strings, const kn_scan_reader *reader,
                            kn_scan_stop *out_stop);

/* Why a text outside the source (the value of a -D, an option) makes the output change with time;
 * NULL if it does not. */
const char *kn_include_scan_words(kn_span text);

#endif
