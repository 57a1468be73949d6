/* NumPy's .npy files, versions 1 to 3, C order, little-endian: one array, with its type and shape.
 * Strict: what does not fit exactly is refused with the reason. Every byte of a file is distrusted.
 */
#ifndef KILN_PROGRAM_NPY_H
#define KILN_PROGRAM_NPY_H

#include "kernel/data.h"

#define NPY_MAX_RANK 8

typedef struct npy_array {
    data_type type;
    size_t rank; /* 0 is a single number */
    uint64_t shape[NPY_MAX_RANK];
    size_t count; /* elements */
    size_t size;  /* bytes of data */
    const void *data;
    char *owned; /* what `data` points into after npy_read; NULL after npy_parse */
} npy_array;

/* Looks at a file's bytes; `out_array->data` points into them. `name` is used in messages.
 * KILN_E_INVALID with the reason. */
kiln_status npy_parse(const void *bytes, size_t size, const char *name, npy_array *out_array,
                      kiln_diag *diag);
/* Reads a file; npy_deinit afterwards. KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status npy_read(const char *path, npy_array *out_array, kiln_diag *diag);
void npy_deinit(npy_array *array);
/* Type, shape and size alone, from the beginning of a file: `data` is NULL. Whether as much follows
 * is not looked at. KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status npy_read_head(const char *path, npy_array *out_array, kiln_diag *diag);

/* Writes version 1.0. KILN_E_IO, KILN_E_NOMEM. */
kiln_status npy_write(const char *path, const npy_array *array, kiln_diag *diag);

/* Elements of a shape. False if there are more than SIZE_MAX bytes' worth. */
bool npy_count(const uint64_t *shape, size_t rank, size_t element_size, size_t *out_count);

#endif
