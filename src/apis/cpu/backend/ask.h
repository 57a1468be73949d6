/* Questions to short child processes: the compiler, and the system's loader; and the variables that
 * list directories of headers, as a compiler reads them that runs here (search_list.c). */
#ifndef KILN_CPU_BACKEND_ASK_H
#define KILN_CPU_BACKEND_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "kiln/status.h"

#include "sys/process.h"

typedef struct cpu_ask {
    const char *argv[10];     /* NULL-terminated */
    const char *variable;     /* one more for its environment, or NULL */
    kiln_diag *diag;          /* why it could not be asked; NULL: nobody wants to know */
    kiln_status status;       /* filled: KILN_OK if it answered, whatever it says */
    kn_process_result result; /* filled */
} cpu_ask;

/* Asks all of them at once, as far as threads can be started; in English, in `dir`. */
void kn_cpu_ask_together(const char *dir, cpu_ask *asks, size_t count);
/* NULL-safe. */
void kn_cpu_asks_deinit(cpu_ask *asks, size_t count);

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
