/* Follows every include of a source, breadth first, and writes down what it found as a header list.
 *
 * The last four are in closure_glance.c. */
#ifndef KILN_HEADERS_CLOSURE_WALK_H
#define KILN_HEADERS_CLOSURE_WALK_H

#include <stddef.h>

#include "headers/header_list.h"
#include "headers/include_path.h"
#include "headers/pieces.h"
#include "headers/walk_shape.h"

/* Fills an initialised header list (all but recorded_ns). If the source or a header cannot be
 * followed, `reason` gets the text that says why, and the header list is of no use. KILN_E_NOMEM.
 */
kiln_status kn_closure_walk(kn_include_path *path, kn_header_list *list, kn_walk_facts *out_facts,
                            char *reason, size_t reason_size);

/* What the text of a language is (base/languages.def). */
typedef enum kn_source_form { KN_FORM_C, KN_FORM_CXX, KN_FORM_CODE } kn_source_form;
kn_source_form kn_closure_form(kiln_language language);
static inline bool kn_closure_raw_strings(const kiln_source *source)
{
    return kn_closure_form(source->language) == KN_FORM_CXX;
}

/* Scans the text of the source alone: whether it names any file at all, whether it mentions the
 * name of its own file, and `reason` as above. */
kiln_status kn_closure_glance(const kiln_source *source, bool *out_includes, bool *out_names,
                              char *reason, size_t reason_size);
/* The same of what stands next to the text, its definitions and options. */
void kn_closure_glance_options(const kiln_source *source, bool *out_names, char *reason,
                               size_t reason_size);
/* Of all texts of a source, with its definitions and options: why what they hold in pieces cannot
 * be followed, or NULL. Sets *out_names where they may mention the name of a file. */
const char *kn_closure_settle_pieces(const kiln_source *source, kn_pieces *pieces, bool *out_names);
/* Whether the text may name a file, by a search for the word: it is not read. */
bool kn_closure_may_include(const kiln_source *source);

#endif
