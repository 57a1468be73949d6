/* Variables that list directories of headers, as a compiler reads them that runs here. */
#ifndef KILN_CPU_BACKEND_SEARCH_LIST_H
#define KILN_CPU_BACKEND_SEARCH_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "kiln/status.h"

#define CPU_SEARCH_LISTS 2u

/* Takes the next element off a list of directories in an environment variable (`*at` NULL: unset,
 * or at the end); false after the last one. A separator at the end is followed by an empty element,
 * and an empty list has one. `*out_absolute`: it is an absolute path. */
bool kn_cpu_next_dir(const char **at, const char **out_dir, size_t *out_length, bool *out_absolute);

/* "CPATH=..." and its like with every directory absolute, an empty element being the current one;
 * NULL for a variable that is unset or has no other directories. For a compiler that is asked in
 * another directory than it compiles in. KILN_E_NOMEM; KILN_E_IO: there is no current directory. */
kiln_status kn_cpu_search_lists(char *out_lists[CPU_SEARCH_LISTS]);
void kn_cpu_search_lists_free(char *lists[CPU_SEARCH_LISTS]);

#endif
