/* A driver and a compiler that lie: each count, size and text that they return is replaced, one at
 * a time, by nothing, one, odd, huge and negative numbers, on the way from opening to a launch.
 * kiln may fail, and says so; it damages no memory. One process a query, and a sanitizer where the
 * build has one. */
#ifndef KILN_TESTS_COMPILED_LIES_H
#define KILN_TESTS_COMPILED_LIES_H

#include <kiln/source.h>

typedef struct compiled_lies {
    const char *backend;
    kiln_language language; /* of what CUDA C++ is compiled as */
    const char *compiler;   /* what its queries begin with: "nvrtc" */
    const struct {
        const char *query, *kind;
    } lies[16]; /* ends with NULL */
} compiled_lies;

/* What main returns. */
int compiled_lies_run(const compiled_lies *what, int argc, char **argv);

#endif
