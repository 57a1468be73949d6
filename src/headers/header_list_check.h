/* Whether a header list still describes what is there: one look a place, each directory walked down
 * to once. It decides nothing about what a header list is for; closure.c does. */
#ifndef KILN_HEADERS_HEADER_LIST_CHECK_H
#define KILN_HEADERS_HEADER_LIST_CHECK_H

#include <stdbool.h>

#include "headers/header_list.h"
#include "headers/include_path.h"

typedef enum kn_list_look {
    KN_LOOK_UNTOUCHED, /* has anything been touched since the headers were read? */
    KN_LOOK_CONTENT,   /* is the content the same? A header whose times are inconclusive is read */
    KN_LOOK_KNOWN,     /* likewise, by what request->memo knows of the files: none is read */
} kn_list_look;

/* KILN_OK: every header is what it was, and nothing is where nothing was. KILN_MISS: no longer.
 * KILN_E_NOMEM. A header whose times are inconclusive is read; its stamp is renewed then, and
 * *out_pays is true if keeping the header list spares the next check the reading. Not so with
 * KN_LOOK_UNTOUCHED: equal content with other times is KILN_MISS, as a compile in between may have
 * seen something else. With KN_LOOK_KNOWN a header that the memo does not know is KILN_MISS. */
kiln_status kn_header_list_check(kn_include_path *path, kn_header_list *list, kn_list_look look,
                                 bool *out_pays);

#endif
