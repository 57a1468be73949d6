/* Reading JSON values with errors that name the place: shared by manifest.c and manifest_arg.c. */
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
} cli_reader;

/* A value and its place. `json` is NULL where an optional value is absent. */
typedef struct json_node {
    json_t *json;
    where_path path;
} json_node;

json_node reader_get(const json_node *object, const char *key);
json_node reader_at(const json_node *array, size_t index);

/* Fails with KILN_E_INVALID at the node's place. */
kiln_status reader_refuse(const cli_reader *reader, const json_node *node, const char *fix,
                          const char *format, ...) KILN_PRINTF(4, 5);
kiln_status reader_no_memory(const cli_reader *reader);

/* Each demands the type, and copies into the pool. */
kiln_status reader_text(const cli_reader *reader, const json_node *node, const char **out_text);
/* A path, made relative to where the command runs. */
kiln_status reader_path(const cli_reader *reader, const json_node *node, const char **out_path);
kiln_status reader_number(const cli_reader *reader, const json_node *node, data_number *out_number);
/* A whole number from `least` to INT64_MAX. */
kiln_status reader_count(const cli_reader *reader, const json_node *node, uint64_t least,
                         uint64_t *out_count);
/* An array of text. */
kiln_status reader_texts(const cli_reader *reader, const json_node *node, bool paths,
                         const char *const **out_texts, size_t *out_count);
kiln_status reader_tolerance(const cli_reader *reader, const json_node *node,
                             data_tolerance *out_tolerance);
/* Refuses what is not an object or has other keys than `keys` (NULL at the end). */
kiln_status reader_check_object(const cli_reader *reader, const json_node *node,
                                const char *const *keys);

/* --- parts of a kernel (manifest.c) ----------------------------------------------------------- */

/* The value for a language in {"c": ..., "*": ...}; the object itself is not checked here. */
json_node manifest_for_language(const json_node *object, kiln_language language);
/* Keys of a by-language object must be languages: a typing error must not be "not this one". */
kiln_status manifest_check_languages(const cli_reader *reader, const json_node *object);
/* [x, y, z] of at least `least` each. */
kiln_status manifest_read_extents(const cli_reader *reader, const json_node *array, uint64_t least,
                                  uint64_t *extents, uint32_t *out_dims);
/* An object of macros (absent: none), with room for `more`. */
kiln_status manifest_read_defines(const cli_reader *reader, const json_node *defines, size_t more,
                                  kiln_define **out_defines, size_t *out_count);

/* "variants", "size", "flops" and "bytes" of a kernel whose forms and arguments are read:
 * manifest_variant.c. */
kiln_status manifest_read_tuning(const cli_reader *reader, const json_node *kernel_node,
                                 cli_kernel *kernel);

/* One argument of a kernel: manifest_arg.c. */
kiln_status manifest_read_arg(const cli_reader *reader, const json_node *node, kernel_arg *out_arg);

#endif
