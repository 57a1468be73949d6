/* A table of rows of one size in a file below the root: what processes remember together besides
 * the entries (losses, use counts, kin, bypasses; docs/reference/formats.md has their rows).
 *
 * A row lies where a hash says, and the table never grows: a new row takes the place of an old one.
 * Rows are written without a lock, so two processes at once may lose a row, and a reader may find
 * one torn. Nothing may depend on a row but what is counted, reported or tried first. What the file
 * does not have yet reads as zeros. */
#ifndef KILN_STORE_ROW_TABLE_H
#define KILN_STORE_ROW_TABLE_H

#include "kiln/cache.h"

#include "sys/file.h"

typedef struct kn_row_table {
    const char *name; /* of the file */
    uint32_t rows;
    uint32_t row_size;
} kn_row_table;

/* NULL where the file cannot be opened, or the root is ""; all others take that. */
kn_file *kn_rows_open(const kn_row_table *table, const char *root, bool writable);
void kn_rows_close(kn_file *file);

/* The row of a key. Rows that hold a key hold its first bytes; this comes from the last ones. */
uint64_t kn_rows_of_key(const kn_row_table *table, const kiln_key *key);

/* Reads `count` rows from row `first` on. False if they cannot be read; they are then zeros. */
bool kn_rows_read(const kn_row_table *table, kn_file *file, uint64_t first, size_t count,
                  void *out_rows);
/* A row that cannot be written is as if it had been overwritten at once. */
void kn_rows_write(const kn_row_table *table, kn_file *file, uint64_t at, const void *row);

#endif
