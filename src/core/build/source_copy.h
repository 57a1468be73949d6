/* A source that outlives its caller's: everything it points to, in one block. */
#ifndef KILN_CORE_SOURCE_COPY_H
#define KILN_CORE_SOURCE_COPY_H

#include "kiln/source.h"

typedef struct kn_source_copy {
    kiln_source source;
    char *block;
} kn_source_copy;

/* Copies all lists, and the text if `with_text` (else it is absent). Of kernels built into the
 * program the list is copied, they are the program's. A list that is missing stays so. False when
 * out of memory; deinit is fine in every case. */
bool kn_source_copy_init(kn_source_copy *copy, const kiln_source *source, bool with_text);
void kn_source_copy_deinit(kn_source_copy *copy);

#endif
