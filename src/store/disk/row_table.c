/* Tables of rows in a file. This file must not depend on what a row says. */
#include "store/disk/row_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

kn_file *kn_rows_open(const kn_row_table *table, const char *root, bool writable)
{
    kn_file *file = NULL;
    char *path = root[0] != '\0' ? kn_path_join(root, table->name) : NULL;
    if (path != NULL && kn_file_open(path, writable, &file, NULL) != KILN_OK) {
        file = NULL;
    }
    free(path);
    return file;
}

void kn_rows_close(kn_file *file)
{
    kn_file_close(file);
}

uint64_t kn_rows_of_key(const kn_row_table *table, const kiln_key *key)
{
    return (key->bytes[30] | (unsigned)key->bytes[31] << 8) % table->rows;
}

bool kn_rows_read(const kn_row_table *table, kn_file *file, uint64_t first, size_t count,
                  void *out_rows)
{
    const size_t size = count * table->row_size;
    memset(out_rows, 0, size);
    if (file == NULL) {
        return false;
    }
    if (kn_file_read_at(file, first * table->row_size, out_rows, size) == KILN_E_IO) {
        memset(out_rows, 0, size);
        return false;
    }
    return true;
}

void kn_rows_write(const kn_row_table *table, kn_file *file, uint64_t at, const void *row)
{
    if (file != NULL) {
        kn_ignore(kn_file_write_at(file, at * table->row_size, row, table->row_size)); /* no row */
    }
}
