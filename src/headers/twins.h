/* Twins: headers with equal content at several paths. #pragma once and #import skip the second one
 * if both paths are the same file, and a content digest can't tell a link from a copy. */
#ifndef KILN_HEADERS_TWINS_H
#define KILN_HEADERS_TWINS_H

#include "headers/include_path.h"

/* After a scan: sets list->twins_seen if twins use #pragma once or #import. Two spellings of one
 * path are not twins. KILN_E_NOMEM. */
kiln_status kn_twins_find(kn_header_list *list);

/* Adds to a key which twins are the same file now. For C also which have the same mtime: gcc treats
 * files of equal content and mtime as one file. */
void kn_twins_add_to(const kn_include_path *path, const kn_header_list *list, kiln_recipe *recipe);

#endif
