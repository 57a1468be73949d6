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

#include "base/span.h"
#include "headers/pieces.h"
#include "kiln/status.h"

/* One file that the text names. `name` lives for the call and has a NUL after it. */
typedef struct kn_include {
    kn_span name;
    bool quoted; /* "x", not <x> */
    bool next;   /* #include_next, __has_include_next */
    bool probe;  /* __has_include: may be absent without harm */
} kn_include;

/* Any status but KILN_OK ends the scan and is returned by it. */
typedef kiln_status kn_include_fn(void *user, const kn_include *include);

/* Why the text cannot be followed; `why` is NULL if it can, else static text. */
typedef struct kn_scan_stop {
    const char *why;
    size_t line;
    bool names;   /* the text mentions its own file's name: __FILE__ and its like */
    bool once;    /* #pragma once: whether another header is this file matters; */
    bool imports; /* #import, which says it of another */
} kn_scan_stop;

/* What is reported besides, to one who evaluates computed includes; any of them may be NULL. Spans
 * live for the call. Without `computed`, an include of a macro stops the scan. */
typedef struct kn_scan_macros {
    /* #define: what follows the name, as in "(x) #x", " 4", "", with comments taken out; its data
     * is NULL where that is long. */
    kiln_status (*define)(void *user, kn_span name, kn_span rest);
    kiln_status (*undefine)(void *user, kn_span name);
    /* #include TEXT, or __has_include(TEXT), neither of which is a name as it stands. */
    kiln_status (*computed)(void *user, kn_span text, size_t line, bool next, bool probe);
    kn_pieces *pieces; /* gets what is there in pieces */
} kn_scan_macros;

/* Calls `visit` for each include, in order. `raw_strings`: the language certainly has them (C++);
 * where it may not, text that reads differently with and without them stops the scan. */
kiln_status kn_include_scan(kn_span text, bool raw_strings, kn_include_fn *visit, void *user,
                            kn_scan_stop *out_stop);
/* The same; `macros` may be NULL. */
kiln_status kn_include_scan_macros(kn_span text, bool raw_strings, kn_include_fn *visit,
                                   const kn_scan_macros *macros, void *user,
                                   kn_scan_stop *out_stop);

/* Whether a text outside the source (the value of a -D, an option) mentions a file's name. */
bool kn_include_scan_names(kn_span text);

/* Why a text outside the source (the value of a -D, an option) makes the output change with time;
 * NULL if it does not. */
const char *kn_include_scan_words(kn_span text);

#endif
