/* The dictionary of a pack: what small entries have in common, learnt once. */
#ifndef KILN_STORE_PACK_TRAIN_H
#define KILN_STORE_PACK_TRAIN_H

#include <stddef.h>

#include "base/span.h"

/* Trains a dictionary of `count` bodies that lie one after the other in `samples`.
 * `*out_dictionary` is malloc'ed, or NULL where there are too few bodies, where it does not pay (it
 * is larger than what it saves on these bodies at `level`), or where memory ran out. */
void kn_pack_train(const char *samples, const size_t *sizes, size_t count, int level,
                   void **out_dictionary, size_t *out_size);

#endif
