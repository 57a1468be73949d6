/* An option of a compile, as each frontend of kiln reads it: the runtime, the drop-in calls, the
 * libraries of `kiln exec` and replays. The options themselves are in a table for each compiler. */
#ifndef KILN_COMPILERS_CALL_OPTION_H
#define KILN_COMPILERS_CALL_OPTION_H

#include <stddef.h>

typedef enum kn_option_use {
    KN_OPTION_OTHER,
    KN_OPTION_TARGET,    /* names the architecture */
    KN_OPTION_DIRECTORY, /* headers are searched there */
} kn_option_use;

typedef struct kn_call_option {
    kn_option_use use;
    size_t last; /* the last element that belongs to it */
    const char
        *value;    /* NULL, or a part of the last element; of a target or directory never NULL */
    size_t before; /* that element's bytes before the value */
} kn_call_option;

/* Reads the option at `index`. A value that the compiler would change (blanks around it) makes the
 * option another one. Threads: any. */
typedef void kn_call_option_fn(const char *const *options, size_t count, size_t index,
                               kn_call_option *out);

#endif
