/* Whether a header list still describes what is there: one look a place, each directory walked down
 * to once. It decides nothing about what a header list is for; closure.c does. */
#ifndef KILN_HEADERS_HEADER_LIST_CHECK_H
#define KILN_HEADERS_HEADER_LIST_CHECK_H

#include <stdbool.h>

#include "headers/header_list.h"
#include "headers/include_path.h"

/* KILN_OK: every header is what it was, and nothing is where nothing was. KILN_MISS: no longer.
 * KILN_E_NOMEM. A header whose times are inconclusive is read; with `refresh` its stamp is renewed
 * then, and *out_pays is true if keeping the header list spares the next check the reading.
 * Without, the question is whether anything was touched since the headers were read: equal content
 * with other times is KILN_MISS, as a compile in between may have seen something else. */
kiln_status kn_header_list_check(kn_include_path *path, kn_header_list *list, bool refresh,
                                 bool *out_pays);

#endif
