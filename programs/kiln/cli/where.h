/* Where in a JSON text a value stands: jansson forgets positions once it has parsed a document, and
 * an error that does not say where is only half an error. */
#ifndef KILN_PROGRAM_WHERE_H
#define KILN_PROGRAM_WHERE_H

#include <stdbool.h>
#include <stddef.h>

/* One step of a path such as kernels[2].args[1].shape: a key, or an index where `key` is NULL. */
typedef struct where_step {
    const char *key;
    size_t index;
} where_step;

enum { WHERE_DEPTH = 12 };

typedef struct where_path {
    where_step steps[WHERE_DEPTH];
    size_t count;
} where_path;

where_path where_key(where_path path, const char *key);
where_path where_index(where_path path, size_t index);
/* "kernels[2].args[1].shape" */
void where_format(const where_path *path, char *text, size_t size);

/* Line and column (from 1, in bytes) of the value at `path`, or of the deepest value on the way
 * that is there. `text` has been accepted by jansson. */
void where_find(const char *text, const where_path *path, size_t *out_line, size_t *out_column);

#endif
