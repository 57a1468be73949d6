/* The order of kiln warm --used, and what a kernel's file holds. */
#ifndef KILN_PROGRAM_WARM_ORDER_H
#define KILN_PROGRAM_WARM_ORDER_H

#include "warm.h"

/* A form of a kernel as a source: what out_source points to is in `*out_text` (free()) and `name`.
 * KILN_E_UNSUPPORTED for one that is built into the program. */
kiln_status warm_form_read(const cli_kernel *kernel, const kernel_form *form,
                           kiln_source *out_source, char **out_text, char *name, size_t name_size,
                           kiln_diag *diag);

/* Fills item->uses from the cache's records. One that cannot be planned has none. */
void warm_find_uses(kiln_runtime *runtime, const char *target, kiln_cache *cache, warm_item *item);

/* Used most first, then used last, then as it was. */
void warm_order(warm_item *items, size_t count);

#endif
