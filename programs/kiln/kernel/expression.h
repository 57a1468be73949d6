/* Amounts in a manifest that follow from the kernel's arguments: "2 * n * n * k", "8 * x[0]".
 *
 * Numbers, + - * / and parentheses; the name of a value argument is its value, that of a buffer its
 * number of elements, and buffer[i] its i-th extent (from 0). */
#ifndef KILN_PROGRAM_EXPRESSION_H
#define KILN_PROGRAM_EXPRESSION_H

#include "kernel/kernel.h"

typedef struct expression_error {
    size_t at; /* byte, from 0 */
    char why[96];
} expression_error;

/* False with what is wrong; also where the result is not finite or less than 0. Shapes that a file
 * gives are known after kernel_data_load: until then they count as 1. */
bool expression_evaluate(const char *text, const cli_kernel *kernel, double *out_value,
                         expression_error *out_error);

#endif
