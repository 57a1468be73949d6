/* A kernel to run: what a manifest describes, and what `kiln run FILE --entry … --arg …` describes.
 * Strings live in the pool that the kernel was made with. */
#ifndef KILN_PROGRAM_KERNEL_H
#define KILN_PROGRAM_KERNEL_H

#include <kiln/source.h>

#include "cli/pool.h"
#include "kernel/data.h"
#include "kernel/npy.h"

typedef enum kernel_access {
    KERNEL_VALUE, /* a number */
    KERNEL_IN,    /* a buffer that is read */
    KERNEL_OUT,   /* written: begins as zeros */
    KERNEL_INOUT,
    KERNEL_LOCAL, /* work-group memory of `count` elements */
} kernel_access;

typedef struct kernel_arg {
    const char *name;
    kernel_access access;
    data_type type;
    size_t rank;
    uint64_t shape[NPY_MAX_RANK];
    size_t count; /* elements; known after kernel_data_load where the type comes from a file */
    bool shape_from_file;
    data_number value; /* KERNEL_VALUE */
    data_init init;    /* KERNEL_IN, KERNEL_INOUT */
    bool has_tolerance;
    data_tolerance tolerance;
    const char *expect; /* .npy file that the result must equal; NULL for none */
    const char *save;   /* .npy file to write the result to; NULL for none */
} kernel_arg;

typedef struct kernel_shape {
    uint32_t dims;
    uint64_t global[3];
    uint64_t local[3]; /* zeros: the backend chooses */
} kernel_shape;

/* Another way to run the kernel in one language, which kiln tune measures. What a manifest does not
 * say of it is as its form has it; everything is filled in. */
typedef struct kernel_variant {
    const char *name;
    const char *path; /* NULL for KILN_LANG_BUILTIN */
    const char *entry;
    kernel_shape shape;
    const char *const *options;
    size_t option_count;
    const kiln_define *defines; /* the kernel's, and its own */
    size_t define_count;
} kernel_variant;

/* The kernel in one language: its form there. */
typedef struct kernel_form {
    kiln_language language;
    const char *path; /* NULL for KILN_LANG_BUILTIN */
    const char *entry;
    kernel_shape shape;
    const char *const *options;
    size_t option_count;
    const kernel_variant *variants;
    size_t variant_count;
} kernel_form;

enum { KERNEL_MAX_FORMS = 8, KERNEL_MAX_ARGS = 64, KERNEL_MAX_SIZES = 8 };

typedef struct cli_kernel {
    const char *name;
    kernel_form forms[KERNEL_MAX_FORMS]; /* in the order in which they are tried */
    size_t form_count;
    const kiln_define *defines;
    size_t define_count;
    const char *const *include_dirs;
    size_t include_dir_count;
    kernel_arg args[KERNEL_MAX_ARGS];
    size_t arg_count;
    data_tolerance tolerance;
    const char *reference;      /* kernel in double: a built-in one's name, or the file's entry */
    const char *reference_path; /* NULL: built in */
    kernel_shape reference_shape;
    const char
        *sizes[KERNEL_MAX_SIZES]; /* of the problem, expressions; none: the launch's global */
    size_t size_count;
    const char *flops, *bytes; /* of a launch, expressions; NULL: not said */
} cli_kernel;

#endif
