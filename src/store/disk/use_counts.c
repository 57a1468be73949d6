/* How often programs were used, in a table of rows. This file must not depend on what a program
 * is. */
#include "store/disk/use_counts.h"

#include <string.h>

#include "base/checked.h"
#include "store/disk/row_table.h"

#define ROW 24u
#define ROW_KEY 16u /* of the key; then the count, then the time */

static const kn_row_table uses_table = {"uses", 4096, ROW};

kn_file *kn_uses_open(const char *root, bool writable)
{
    return kn_rows_open(&uses_table, root, writable);
}

void kn_uses_close(kn_file *uses)
{
    kn_rows_close(uses);
}

void kn_uses_add(kn_file *uses, const kiln_key *key, uint32_t times, uint32_t now_s)
{
    unsigned char row[ROW];
    const uint64_t at = kn_rows_of_key(&uses_table, key);
    (void)kn_rows_read(&uses_table, uses, at, 1, row);
    uint32_t count = kn_get_u32(row + ROW_KEY);
    if (memcmp(row, key->bytes, ROW_KEY) == 0) {
        count = count > UINT32_MAX - times ? UINT32_MAX : count + times;
    } else if (count > times) {
        kn_put_u32(row + ROW_KEY, count - times);
        kn_rows_write(&uses_table, uses, at, row);
        return;
    } else {
        count = times;
    }
    memcpy(row, key->bytes, ROW_KEY);
    kn_put_u32(row + ROW_KEY, count);
    kn_put_u32(row + ROW_KEY + 4, now_s);
    kn_rows_write(&uses_table, uses, at, row);
}

kn_use kn_uses_find(kn_file *uses, const kiln_key *key)
{
    unsigned char row[ROW];
    kn_use use = {0, 0};
    if (kn_rows_read(&uses_table, uses, kn_rows_of_key(&uses_table, key), 1, row) &&
        memcmp(row, key->bytes, ROW_KEY) == 0) {
        use.count = kn_get_u32(row + ROW_KEY);
        use.last_s = kn_get_u32(row + ROW_KEY + 4);
    }
    return use;
}
