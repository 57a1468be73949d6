/* What the macros of a source and its headers may stand for, in any branch: enough to follow a
 * computed #include in a toolkit's header to every file it could name (Thrust picks its systems
 * so). It expands object-like macros only, and says when that is not enough. */
#ifndef KILN_CORE_MACROS_H
#define KILN_CORE_MACROS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "base/span.h"
#include "kiln/status.h"

typedef struct kn_macros {
    kn_map map;        /* name -> macro */
    size_t generation; /* grows with each definition that was not known yet */
} kn_macros;

void kn_macros_init(kn_macros *macros);
void kn_macros_deinit(kn_macros *macros);

/* Adds one definition; `body` NULL: it takes parameters, or is too long to be part of a name. */
kiln_status kn_macros_define(kn_macros *macros, const char *name, const char *body);
/* Adds what an option such as -DNAME=VALUE or NAME=VALUE defines; others are ignored. */
kiln_status kn_macros_define_option(kn_macros *macros, const char *option);

/* Calls `emit` for each text that `name` may expand to. KILN_E_UNSUPPORTED if that cannot be told
 * (no definition, one with parameters, too many); KILN_E_NOMEM; or what `emit` returns. */
typedef kiln_status kn_macro_text_fn(void *user, const char *text);
kiln_status kn_macros_expand(const kn_macros *macros, const char *name, kn_macro_text_fn *emit,
                             void *user);

#endif
