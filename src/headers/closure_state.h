/* What closure.c and closure_key.c have of a closure besides what others see. */
#ifndef KILN_HEADERS_CLOSURE_STATE_H
#define KILN_HEADERS_CLOSURE_STATE_H

#include "base/text.h"
#include "headers/closure.h"
#include "headers/include_path.h"
#include "key/recipe.h"
#include "sys/thread.h"

#define KN_FOLLOWING "following includes" /* what fails without memory */

typedef struct closure {
    kn_closure view; /* first */
    kn_closure_request request;
    int64_t began_ns;         /* by the clock of files */
    const char **system_dirs; /* request.system_dirs: the caller's list may be short-lived */
    kn_include_path path;
    bool has_path;
    bool has_includes;
    bool has_names; /* the source or an option mentions the name of its file */
    kn_header_list list;
    kiln_blob *blob;     /* whose bytes the header list borrows; NULL: it was found again */
    bool is_kept;        /* the header list is, under these two: */
    kiln_recipe *recipe; /* the header list's; NULL: it has not been asked for */
    kiln_recipe *shared; /* that of the list which other machines can use; NULL likewise */
    kiln_key first;      /* what both are made of: of request.first, while that lasts */
    char target[KN_NAME_SIZE];
    bool packed;        /* the header list came from a pack, and may again at the next start */
    bool anew;          /* the headers were found by a walk: the shared list is new as well */
    kn_thread *looker;  /* checks the header list while the caller goes on; NULL: nobody does */
    kiln_status looked; /* what it found */
} closure;

#endif
