/* Symbolic links that changed during a compile. A link that was redirected and then restored leaves
 * no trace in the stamps of the files it leads to, so the links themselves are checked. */
#ifndef KILN_HEADERS_LINKS_H
#define KILN_HEADERS_LINKS_H

#include "headers/include_path.h"

/* Whether a directory link changed at `since_ns` or later (kn_clock_wall_roughly, the clock of file
 * stamps). Checks the paths of the list's headers, and of the places where a header was looked for
 * and not found. Headers that are links themselves are checked with the list (links_since of
 * include_path.h). Doesn't follow links behind links. Returns true when out of memory. */
bool kn_links_changed(const kn_include_path *path, const kn_header_list *list, int64_t since_ns);

#endif
