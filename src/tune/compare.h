/* Whether two results are the same, element by element, and where they are not. */
#ifndef KILN_TUNE_COMPARE_H
#define KILN_TUNE_COMPARE_H

#include <stdbool.h>

#include "kiln/unstable/tune.h"

/* Bytes of an element; 0 for what is none. */
size_t kn_element_size(kiln_element element);

typedef struct kn_difference {
    size_t wrong; /* elements out of tolerance */
    size_t first; /* of them; got and wanted are its values */
    double got, wanted;
    double largest; /* absolute difference of all elements; infinite where a NaN or an infinity
                       stands against something else */
} kn_difference;

/* `wanted` is what the tolerance is of. Equal NaNs and infinities are equal. */
kn_difference kn_compare(const kiln_tune_output *output, const void *got, const void *wanted,
                         size_t count);

#endif
