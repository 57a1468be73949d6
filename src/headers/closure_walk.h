/* Follows every include of a source, breadth first, and writes down what it found as a header list.
 *
 * The last two are in closure_glance.c. */
#ifndef KILN_HEADERS_CLOSURE_WALK_H
#define KILN_HEADERS_CLOSURE_WALK_H

#include <stddef.h>

#include "headers/header_list.h"
#include "headers/include_path.h"

/* Fills an initialised header list (all but recorded_ns). If the source or a header cannot be
 * followed, `reason` gets the text that says why, and the header list is of no use. KILN_E_NOMEM.
 */
kiln_status kn_closure_walk(kn_include_path *path, kn_header_list *list, char *reason,
                            size_t reason_size);

/* Whether the language certainly has raw string literals. */
bool kn_closure_raw_strings(const kiln_source *source);

/* Scans the source alone: whether it names any file at all, whether it or an option mentions the
 * name of its own file, and `reason` as above. */
kiln_status kn_closure_glance(const kiln_source *source, bool *out_includes, bool *out_names,
                              char *reason, size_t reason_size);

#endif
