/* Variables that list directories of headers, as a compiler reads them that runs here. */
#ifndef KILN_CPU_BACKEND_SEARCH_LIST_H
#define KILN_CPU_BACKEND_SEARCH_LIST_H

#include <stddef.h>

#include "kiln/status.h"

#define CPU_SEARCH_LISTS 2u

/* "CPATH=..." and its like with every directory absolute, an empty element being the current one;
 * NULL for a variable that is unset or has no other directories. For a compiler that is asked in
 * another directory than it compiles in. KILN_E_NOMEM; KILN_E_IO: there is no current directory. */
kiln_status kn_cpu_search_lists(char *out_lists[CPU_SEARCH_LISTS]);
void kn_cpu_search_lists_free(char *lists[CPU_SEARCH_LISTS]);

#endif
