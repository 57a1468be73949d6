/* Links on the ways to headers, after a compile. A link that led elsewhere meanwhile, and leads
 * back now, is not seen in the stamps of the files behind it. */
#ifndef KILN_HEADERS_LINKS_H
#define KILN_HEADERS_LINKS_H

#include "headers/include_path.h"

/* Whether a directory in the path of a header of the list, or of a place where none was, is a link
 * that changed at `since_ns` or later (kn_clock_wall_roughly, which is the clock of files here).
 * Links that are headers are seen by a check of the list (links_since of include_path.h). Links
 * behind links are not looked at. Where memory is short it says that one did. */
bool kn_links_changed(const kn_include_path *path, const kn_header_list *list, int64_t since_ns);

#endif
