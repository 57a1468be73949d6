/* A small table in a file. Must not know who drops entries. */
#include "store/disk/losses.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define ROWS 4096u
#define ROW 16u
#define ROW_KEY 15u /* of the key; the last byte is the reason */

static char *path_of(const char *root)
{
    return root[0] != '\0' ? kn_path_join(root, "losses") : NULL;
}

static uint64_t row_at(const kiln_key *key)
{
    /* The last bytes: a row holds the first ones. */
    return (uint64_t)((key->bytes[30] | (unsigned)key->bytes[31] << 8) % ROWS) * ROW;
}

kn_file *kn_losses_open(const char *root)
{
    kn_file *file = NULL;
    char *path = path_of(root);
    if (path != NULL && kn_file_open(path, true, &file, NULL) != KILN_OK) {
        file = NULL;
    }
    free(path);
    return file;
}

void kn_losses_note(kn_file *losses, const kiln_key *key, kn_loss loss)
{
    unsigned char row[ROW];
    if (losses != NULL) {
        memcpy(row, key->bytes, ROW_KEY);
        row[ROW_KEY] = (unsigned char)loss;
        kn_ignore(kn_file_write_at(losses, row_at(key), row, sizeof row)); /* then it is "new" */
    }
}

void kn_losses_close(kn_file *losses)
{
    kn_file_close(losses);
}

void kn_losses_note_one(const char *root, const kiln_key *key, kn_loss loss)
{
    kn_file *losses = kn_losses_open(root);
    kn_losses_note(losses, key, loss);
    kn_losses_close(losses);
}

kn_loss kn_losses_find(const char *root, const kiln_key *key)
{
    kn_file *file = NULL;
    unsigned char row[ROW] = {0};
    kn_loss loss = KN_LOSS_NONE;
    char *path = path_of(root);
    if (path != NULL && kn_file_open(path, false, &file, NULL) == KILN_OK &&
        kn_file_read_at(file, row_at(key), row, sizeof row) == KILN_OK &&
        memcmp(row, key->bytes, ROW_KEY) == 0 && row[ROW_KEY] <= KN_LOSS_CORRUPT) {
        loss = (kn_loss)row[ROW_KEY];
    }
    kn_file_close(file);
    free(path);
    return loss;
}
