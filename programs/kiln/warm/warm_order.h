/* The order of kiln warm --used, and what an item's file holds. */
#ifndef KILN_PROGRAM_WARM_ORDER_H
#define KILN_PROGRAM_WARM_ORDER_H

#include "kernel/kernel_source.h"
#include "warm/warm.h"

/* How many forms an item may be made of, and one of them. KILN_E_UNSUPPORTED for one that is built
 * into the program. kernel_source_deinit in every case. */
size_t warm_form_count(const warm_item *item);
kiln_status warm_source_read(const warm_item *item, size_t index, kernel_source *out_source,
                             kiln_diag *diag);

/* Fills item->uses from the cache's records. One that cannot be planned has none. */
void warm_find_uses(kiln_runtime *runtime, const char *target, kiln_cache *cache, warm_item *item);

/* Used most first, then used last, then as it was. */
void warm_order(warm_item *items, size_t count);

#endif
