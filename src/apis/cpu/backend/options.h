/* What the options of a C compiler mean for a key: a closed list, for gcc and clang. Pure text
 * work: opens nothing and calls nobody. */
#ifndef KILN_CPU_BACKEND_OPTIONS_H
#define KILN_CPU_BACKEND_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kn_cpu_option_facts {
    const char *reason; /* why the compile bypasses the cache, static; NULL if it need not */
    bool names;         /* the object holds the names of files: debug information */
} kn_cpu_option_facts;

/* Reads options one by one, as the compiler's command line has them. */
void kn_cpu_options_read(const char *const *options, size_t count, kn_cpu_option_facts *out);

#endif
