/* What `#include TOKENS` may name. The tokens are expanded as a preprocessor does it, once for each
 * combination of the definitions that the macros on the way may have; so the names are all that any
 * branch of any condition can lead to, and maybe more. Where that cannot be known, it says so. */
#ifndef KILN_HEADERS_MACRO_EXPAND_H
#define KILN_HEADERS_MACRO_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "headers/macro_table.h"
#include "kiln/status.h"

/* One name, which lives for the call and has a NUL after it. */
typedef kiln_status kn_macro_name_fn(void *user, kn_span name, bool quoted);

typedef struct kn_macro_doubt {
    char why[160]; /* "" if the names are all that there can be */
} kn_macro_doubt;

/* Calls `emit` for each name; some may come twice. `trusted`: the text is a toolchain's own, whose
 * reserved names are what its texts say. Changes notes in the macros, never what they are.
 * KILN_OK, with the doubt filled or not; KILN_E_NOMEM; or what `emit` returns. */
kiln_status kn_macros_names(kn_macros *macros, kn_span text, bool trusted, kn_macro_name_fn *emit,
                            void *user, kn_macro_doubt *out_doubt);

#endif
