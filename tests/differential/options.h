/* Options of each compiler: from its own list where it prints one, else from its documentation;
 * drawn with values that may name a header of the tree. */
#ifndef KILN_TESTS_DIFFERENTIAL_OPTIONS_H
#define KILN_TESTS_DIFFERENTIAL_OPTIONS_H

#include <stddef.h>

#include "differential/tree.h"

#define OPTIONS_MOST 12

typedef struct option_set {
    char text[OPTIONS_MOST][512];
    const char *list[OPTIONS_MOST];
    size_t count;
} option_set;

/* Names of a compiler's options, as `command` prints them (NULL: the list in options.c). */
typedef struct option_names {
    char **names;
    size_t count;
} option_names;
void option_names_read(option_names *out, const char *compiler);
void option_names_free(option_names *names);

/* Some of them, some that are known to matter. */
void option_set_draw(option_set *out, const char *compiler, const option_names *names,
                     const tree *t, tree_random *random);

#endif
