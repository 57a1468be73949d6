/* Which recipes were stored before, as fingerprints: so that the reason of a miss can be counted
 * without reading other entries. kiln_cache_explain, which does, reports more.
 *
 * `<root>/kin` is a table (row_table.h). Its rows are found by a recipe's family, which is its
 * stage and its source (with all that is not an option, header, driver ...). A row holds a
 * fingerprint of each of the other groups of fields. Four rows share a place; a new recipe takes
 * that of the oldest. What the table does not have is "new". */
#ifndef KILN_STORE_KIN_H
#define KILN_STORE_KIN_H

#include "kiln/unstable/explain.h"

#include "base/span.h"

/* Remembers a recipe that was stored. */
void kn_kin_note(const char *root, kn_span recipe);
/* What differs from the nearest one of its family: the first reason in the order of KILN_WHY_MAP
 * from KILN_WHY_OPTIONS on; KILN_WHY_NEW when none is known. */
kiln_why kn_kin_find(const char *root, kn_span recipe);

#endif
