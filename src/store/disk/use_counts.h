/* How often programs were used, and when last: what warming goes by.
 *
 * `<root>/uses` is a table (row_table.h) of 4,096 rows of 24 bytes, found by the key. Two keys may
 * want one row: the resident gives way when the other came as often. */
#ifndef KILN_STORE_USE_COUNTS_H
#define KILN_STORE_USE_COUNTS_H

#include "kiln/cache.h"

#include "sys/file.h"

typedef struct kn_use {
    uint32_t count;
    uint32_t last_s; /* since 1970 */
} kn_use;

/* NULL where the file cannot be opened; all others take that. */
kn_file *kn_uses_open(const char *root, bool writable);
void kn_uses_add(kn_file *uses, const kiln_key *key, uint32_t times, uint32_t now_s);
/* Zeros if nothing is known. */
kn_use kn_uses_find(kn_file *uses, const kiln_key *key);
void kn_uses_close(kn_file *uses);

#endif
