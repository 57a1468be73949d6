/* Every definition of every macro that a source, its headers and its options hold, in any branch
 * and in any order. At an #include a macro is one of its definitions or, where that can be, none;
 * which one is decided by conditions that nobody here evaluates, so macro_expand.c tries each. */
#ifndef KILN_HEADERS_MACRO_TABLE_H
#define KILN_HEADERS_MACRO_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "base/span.h"
#include "kiln/source.h"
#include "kiln/status.h"

/* One definition: what stands after the name, with comments taken out: "(x) #x", " 4", "". */
typedef struct kn_macro_body {
    struct kn_macro_body *next;
    size_t length;
    char text[];
} kn_macro_body;

typedef struct kn_macro {
    kn_macro_body *bodies;
    size_t count;   /* of bodies */
    bool given;     /* by an option, so that it is defined from the first line on */
    bool from_text; /* by a text */
    bool undefined; /* by an option or an #undef */
    bool opaque;    /* one of its definitions is too long to be kept */
    unsigned trial; /* macro_expand.c's: the trial that `chosen` belongs to */
    size_t chosen;  /* number of a body, or `count` for none */
} kn_macro;

typedef struct kn_macros {
    kn_map map;        /* name -> kn_macro */
    size_t generation; /* grows with each definition that was not known yet */
    bool doubtful;     /* the options may define more than was understood */
    unsigned trials;   /* macro_expand.c's: made so far */
} kn_macros;

void kn_macros_init(kn_macros *macros);
void kn_macros_deinit(kn_macros *macros);

/* What a text says. `rest` as kn_macro_body's text; its data is NULL where it is too long to be
 * kept. KILN_E_NOMEM. */
kiln_status kn_macros_define(kn_macros *macros, kn_span name, kn_span rest);
kiln_status kn_macros_undefine(kn_macros *macros, kn_span name);

/* Adds what the definitions and options of a source define. KILN_E_NOMEM. */
kiln_status kn_macros_give(kn_macros *macros, const kiln_source *source);

/* NULL where no text and no option names it in a definition. */
kn_macro *kn_macros_find(const kn_macros *macros, kn_span name);

#endif
