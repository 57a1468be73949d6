/* Backends whose driver lies: each number that it returns is replaced, one at a time, by nothing,
 * one, odd, huge and negative ones, on the way from opening to reading the result of a launch. kiln
 * may fail, and says so; it damages no memory. One process a query, and a sanitizer where the build
 * has one. */
#ifndef KILN_TESTS_LIES_RIG_H
#define KILN_TESTS_LIES_RIG_H

#include <kiln/sys/backend.h>

typedef struct lies_case {
    const kiln_backend *backend;
    const char *name;           /* of the backend, for KILN_REQUIRE */
    const char *library;        /* that is stood in for: "libEGL.so.1" */
    const char *dir;            /* where the one that lies is */
    const char *const *queries; /* "QUERY KIND", as lies.h has them */
    size_t query_count;
    const char *const *builds; /* queries whose lies cost no build; ends with NULL */
    kiln_language language;
    const char *text;
    size_t text_size;
    size_t buffers; /* that the program takes, first of all */
    size_t values;  /* of four bytes each, after them */
    bool values_are_first;
} lies_case;

/* What main returns. */
int lies_run(const lies_case *what, int argc, char **argv);

#endif
