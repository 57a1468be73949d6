/* A small table in a file. Must not know what a program is. */
#include "store/disk/use_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define ROWS 4096u
#define ROW 24u
#define ROW_KEY 16u /* of the key; then the count, then the time */

static uint64_t row_at(const kiln_key *key)
{
    /* The last bytes: a row holds the first ones. */
    return (uint64_t)((key->bytes[30] | (unsigned)key->bytes[31] << 8) % ROWS) * ROW;
}

kn_file *kn_uses_open(const char *root, bool writable)
{
    kn_file *file = NULL;
    char *path = root[0] != '\0' ? kn_path_join(root, "uses") : NULL;
    if (path != NULL && kn_file_open(path, writable, &file, NULL) != KILN_OK) {
        file = NULL;
    }
    free(path);
    return file;
}

void kn_uses_close(kn_file *uses)
{
    kn_file_close(uses);
}

void kn_uses_add(kn_file *uses, const kiln_key *key, uint32_t times, uint32_t now_s)
{
    unsigned char row[ROW];
    if (uses == NULL) {
        return;
    }
    if (kn_file_read_at(uses, row_at(key), row, sizeof row) != KILN_OK) {
        memset(row, 0, sizeof row); /* behind the file's end */
    }
    uint32_t count = kn_get_u32(row + ROW_KEY);
    if (memcmp(row, key->bytes, ROW_KEY) == 0) {
        count = count > UINT32_MAX - times ? UINT32_MAX : count + times;
    } else if (count > times) {
        kn_put_u32(row + ROW_KEY, count - times);
        kn_ignore(kn_file_write_at(uses, row_at(key), row, sizeof row)); /* then it stays longer */
        return;
    } else {
        count = times;
    }
    memcpy(row, key->bytes, ROW_KEY);
    kn_put_u32(row + ROW_KEY, count);
    kn_put_u32(row + ROW_KEY + 4, now_s);
    kn_ignore(kn_file_write_at(uses, row_at(key), row, sizeof row)); /* a use that is not counted */
}

kn_use kn_uses_find(kn_file *uses, const kiln_key *key)
{
    unsigned char row[ROW];
    kn_use use = {0, 0};
    if (uses != NULL && kn_file_read_at(uses, row_at(key), row, sizeof row) == KILN_OK &&
        memcmp(row, key->bytes, ROW_KEY) == 0) {
        use.count = kn_get_u32(row + ROW_KEY);
        use.last_s = kn_get_u32(row + ROW_KEY + 4);
    }
    return use;
}
