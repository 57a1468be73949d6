/* Reading JSON values with errors that name the place.
 *
 * A reader is sticky: it keeps the first error, and every call after it is harmless. What a call
 * returns for a value that is wrong is NULL, 0 or empty, so that one look at `status` at the end is
 * enough. */
#ifndef KILN_PROGRAM_MANIFEST_READER_H
#define KILN_PROGRAM_MANIFEST_READER_H

#include <jansson.h>

#include "cli/where.h"
#include "kernel/kernel.h"

typedef struct cli_reader {
    const char *text; /* of the manifest */
    const char *path;
    const char *dir;
    cli_pool *pool;
    kiln_diag *diag;
    bool to_compile; /* arguments and launches may be missing */
    kiln_status status;
} cli_reader;

/* A value and its place. `json` is NULL where an optional value is absent. */
typedef struct json_node {
    json_t *json;
    where_path path;
} json_node;

json_node reader_get(const json_node *object, const char *key);
json_node reader_at(const json_node *array, size_t index);

/* KILN_E_INVALID at the node's place, unless there is an error already. */
void reader_refuse(cli_reader *reader, const json_node *node, const char *fix, const char *format,
                   ...) KILN_PRINTF(4, 5);
/* What the pool gave; KILN_E_NOMEM if it is NULL. */
void *reader_keep(cli_reader *reader, void *memory);

/* Each demands the type, and copies into the pool. */
const char *reader_text(cli_reader *reader, const json_node *node);
/* A path, made relative to where the command runs. */
const char *reader_path(cli_reader *reader, const json_node *node);
data_number reader_number(cli_reader *reader, const json_node *node);
/* A whole number from `least` to INT64_MAX. */
uint64_t reader_count(cli_reader *reader, const json_node *node, uint64_t least);
/* An array of text; absent: none. */
const char *const *reader_texts(cli_reader *reader, const json_node *node, bool paths,
                                size_t *out_count);
/* An array of 1 to `max` whole numbers, each at least 1. Returns how many; 0 if it is not that. */
size_t reader_extents(cli_reader *reader, const json_node *node, size_t max, uint64_t *extents);
/* An object of bounds; absent: zeros. */
data_tolerance reader_tolerance(cli_reader *reader, const json_node *node);
/* Refuses what is not an object or has other keys than `keys` (NULL at the end). */
bool reader_check_object(cli_reader *reader, const json_node *node, const char *const *keys);

/* One argument of a kernel: manifest_arg.c. */
void manifest_read_arg(cli_reader *reader, const json_node *node, kernel_arg *out_arg);
/* A number, or a product of numbers, values and extents of the kernel's arguments. */
double manifest_read_amount(cli_reader *reader, const json_node *node, const cli_kernel *kernel);

#endif
