/* The computed includes that a walk has met, and every definition next to them. They are evaluated
 * when all that can be reached is known, and again while that grows. */
#ifndef KILN_HEADERS_COMPUTED_H
#define KILN_HEADERS_COMPUTED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "headers/macro_expand.h"
#include "headers/macro_table.h"

typedef struct kn_computed_include {
    struct kn_computed_include *following;
    const void *from; /* the caller's: the text that it stands in */
    size_t line;
    bool trusted;      /* in a header of the toolchain */
    bool next;         /* #include_next, __has_include_next */
    bool probe;        /* __has_include */
    bool found;        /* one of its names is a file */
    size_t generation; /* of the macros that it was evaluated with, plus 1 */
    kn_macro_doubt doubt;
    size_t length;
    char text[];
} kn_computed_include;

typedef struct kn_computed {
    kn_macros macros;
    kn_computed_include *first, **end;
} kn_computed;

void kn_computed_init(kn_computed *computed);
void kn_computed_deinit(kn_computed *computed);

/* Copies `what`, whose own text and list are of no interest, with the text. KILN_E_NOMEM. */
kiln_status kn_computed_add(kn_computed *computed, const kn_computed_include *what, kn_span text);

/* Says of one that has been evaluated what is unknown of it. False if all is known. */
bool kn_computed_explain(const kn_computed_include *include, char *why, size_t size);

#endif
