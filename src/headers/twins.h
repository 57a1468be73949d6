/* Headers of equal content at several places. Whether they are one file decides what #pragma once
 * and #import do with the second, and no digest says it: links, hard links and copies look alike.
 */
#ifndef KILN_HEADERS_TWINS_H
#define KILN_HEADERS_TWINS_H

#include "headers/include_path.h"

/* After a walk: sets list->twins_seen where such headers say that they are to be read once. The
 * same file by another spelling of its path is not a twin. KILN_E_NOMEM. */
kiln_status kn_twins_find(kn_header_list *list);

/* Adds to a key which of the twins are one file now, and for C, whose compilers (gcc) take files
 * of equal content and time for one, which have the same time. */
kiln_status kn_twins_add_to(const kn_include_path *path, const kn_header_list *list,
                            kiln_recipe *recipe, kiln_diag *diag);

#endif
