/* What people call an entry: the file or the kernels that it was compiled from. It is not in
 * the key, so it lies among the entry's facts, framed as a stage frames them: the text, its length
 * (u32, little-endian), and KN_LABEL_MARK. What reads the facts for their own sake passes it over.
 * An entry need not have one; what is read is any program's text, and is printed escaped. */
#ifndef KILN_BASE_LABEL_H
#define KILN_BASE_LABEL_H

#include <stdbool.h>

#include "base/span.h"
#include "base/strbuf.h"

#define KN_LABEL_SIZE 200 /* with its NUL */
#define KN_LABEL_MARK "kilnname"

/* "FILE: KERNELS" of a file's path (NULL: none), whose directory is left out, and of a source in
 * CUDA C++, OpenCL C or PTX, whose kernels are guessed at: a comment may be taken for one. Either
 * may be lacking, and so may both: "". */
void kn_label_make(char out[KN_LABEL_SIZE], const char *file, kn_span source);
/* Appends the text of a label with what it ends with; nothing for "". */
void kn_label_append(kn_strbuf *facts, const char *label);
/* The last label in facts; false: they have none. */
bool kn_label_find(kn_span facts, kn_span *out_label);

#endif
