/* Which entries were dropped, in a table of rows. This file must not depend on who drops them. */
#include "store/disk/losses.h"

#include <string.h>

#include "store/disk/row_table.h"

#define ROW 16u
#define ROW_KEY 15u /* of the key; the last byte is the reason */

static const kn_row_table losses_table = {"losses", 4096, ROW};

kn_file *kn_losses_open(const char *root)
{
    return kn_rows_open(&losses_table, root, true);
}

void kn_losses_note(kn_file *losses, const kiln_key *key, kn_loss loss)
{
    unsigned char row[ROW];
    memcpy(row, key->bytes, ROW_KEY);
    row[ROW_KEY] = (unsigned char)loss;
    kn_rows_write(&losses_table, losses, kn_rows_of_key(&losses_table, key), row);
}

void kn_losses_close(kn_file *losses)
{
    kn_rows_close(losses);
}

void kn_losses_note_one(const char *root, const kiln_key *key, kn_loss loss)
{
    kn_file *losses = kn_losses_open(root);
    kn_losses_note(losses, key, loss);
    kn_losses_close(losses);
}

kn_loss kn_losses_find(const char *root, const kiln_key *key)
{
    unsigned char row[ROW];
    kn_file *losses = kn_rows_open(&losses_table, root, false);
    const bool is_known =
        kn_rows_read(&losses_table, losses, kn_rows_of_key(&losses_table, key), 1, row) &&
        memcmp(row, key->bytes, ROW_KEY) == 0 && row[ROW_KEY] <= KN_LOSS_CORRUPT;
    kn_losses_close(losses);
    return is_known ? (kn_loss)row[ROW_KEY] : KN_LOSS_NONE;
}
