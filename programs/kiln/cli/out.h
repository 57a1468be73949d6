/* Standard output: tables for people, JSON for programs, and the units of both. Text that came from
 * drivers and files is made printable on the way. */
#ifndef KILN_PROGRAM_OUT_H
#define KILN_PROGRAM_OUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "cli/pool.h"

/* --- color ------------------------------------------------------------------------------------ */

typedef enum out_style { OUT_PLAIN, OUT_BOLD, OUT_GOOD, OUT_BAD, OUT_WARN } out_style;

/* "auto" (on a terminal, unless NO_COLOR is set), "always" or "never". False: another word. */
bool out_color_choose(const char *when);
/* From here on what is written to `file` looks so; OUT_PLAIN ends it. Nothing without color. */
void out_paint(FILE *file, out_style style);

/* --- tables ----------------------------------------------------------------------------------- */

typedef struct out_column {
    const char *title;
    bool right; /* numbers */
} out_column;

enum { OUT_COLUMNS_MAX = 12 };

typedef struct out_table {
    cli_pool *pool;
    out_column columns[OUT_COLUMNS_MAX];
    size_t column_count;
    struct out_row *first, *last;
    bool failed; /* out of memory somewhere: out_table_print says so */
} out_table;

/* "name|>size|state": the titles, a '>' before those of numbers. */
out_table out_table_make(cli_pool *pool, const char *titles);
/* Adds a row of column_count cells, which are copied. A NULL cell marks the table as failed, so
 * that cells can be made on the spot with pool_format. */
void out_table_add(out_table *table, const char *const *cells);
/* Prints a table that fits the terminal's width, or COLUMNS: long texts end in "..", and if that is
 * not enough, each row becomes a paragraph. False, and nothing is printed, when memory ran out. */
bool out_table_print(const out_table *table, FILE *file);

/* "name   value" pairs, one a line. */
void out_pair(FILE *file, const char *name, const char *format, ...) KILN_PRINTF(3, 4);

/* --- units ------------------------------------------------------------------------------------ */

/* "12.3 KiB"; "1.234" for a column of milliseconds; "3 h ago" of a wall-clock time; "812 ms". */
char *out_bytes(cli_pool *pool, uint64_t bytes);
char *out_ms(cli_pool *pool, uint64_t ns);
char *out_ago(cli_pool *pool, int64_t then_ns);
char *out_time(cli_pool *pool, uint64_t ns);
/* A copy with control characters and broken UTF-8 replaced. */
char *out_clean(cli_pool *pool, const char *text);

/* --- text that came from elsewhere ------------------------------------------------------------ */

/* Drivers, compilers, files and the environment may put anything into their text, also what a
 * terminal obeys. All of it is printed through these; tables and JSON do it by themselves. */

/* Writes text, without control characters but line breaks and tabs, and as UTF-8. */
void out_write(FILE *file, const char *text);
/* As fprintf, with out_write; line breaks are the format's alone, those of the values are blanks.
 */
void out_print(FILE *file, const char *format, ...) KILN_PRINTF(2, 3);
void out_vprint(FILE *file, const char *format, va_list args) KILN_PRINTF(2, 0);

/* --- JSON ------------------------------------------------------------------------------------- */

/* Keys come out in the order in which they are put in. Values made by these functions may be NULL
 * (no memory); putting one makes the object NULL too, and out_json reports that in the end. */

json_t *out_json_text(const char *text);
json_t *out_json_u64(uint64_t value);
json_t *out_json_ms(uint64_t ns);
json_t *out_json_real(double value); /* null if it is not finite */
/* Puts `value` (taken over) into *object, or clears *object and frees it. */
void out_json_set(json_t **object, const char *key, json_t *value);
void out_json_append(json_t **array, json_t *value);
/* Prints and frees. False when memory ran out. */
bool out_json(FILE *file, json_t *root);

#endif
