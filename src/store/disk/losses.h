/* Which entries were dropped from disk, and why: so that a miss of something that was there once
 * can be distinguished from a miss of something new.
 *
 * `<root>/losses` is a table (row_table.h) of 4,096 rows of 16 bytes, found by the key. What it
 * does not have is "new". */
#ifndef KILN_STORE_LOSSES_H
#define KILN_STORE_LOSSES_H

#include "kiln/cache.h"

#include "sys/file.h"

typedef enum kn_loss {
    KN_LOSS_NONE = 0,    /* not known: new, or long ago */
    KN_LOSS_EVICTED = 1, /* for room, by age, or by hand */
    KN_LOSS_CORRUPT = 2,
} kn_loss;

/* NULL where the file cannot be opened; note and close take that. */
kn_file *kn_losses_open(const char *root);
void kn_losses_note(kn_file *losses, const kiln_key *key, kn_loss loss);
void kn_losses_close(kn_file *losses);
/* The three for one key. */
void kn_losses_note_one(const char *root, const kiln_key *key, kn_loss loss);

kn_loss kn_losses_find(const char *root, const kiln_key *key);

#endif
