/* A kernel to run: what a manifest describes, and what `kiln run FILE --entry … --arg …` describes.
 * Strings live in the pool that the kernel was made with. */
#ifndef KILN_PROGRAM_KERNEL_H
#define KILN_PROGRAM_KERNEL_H

#include <kiln/source.h>

#include "cli/pool.h"
#include "kernel/data.h"

typedef enum kernel_access {
    KERNEL_VALUE, /* a number */
    KERNEL_IN,    /* a buffer that is read */
    KERNEL_OUT,   /* written: begins as zeros */
    KERNEL_INOUT,
    KERNEL_LOCAL, /* work-group memory of `count` elements */
    KERNEL_ACCESS_COUNT
} kernel_access;

typedef struct kernel_arg {
    const char *name;
    kernel_access access;
    data_type type;
    size_t rank;
    uint64_t shape[DATA_MAX_RANK];
    size_t count;      /* elements */
    data_number value; /* KERNEL_VALUE */
    data_init init;    /* KERNEL_IN, KERNEL_INOUT */
    bool has_tolerance;
    data_tolerance tolerance;
    const char *expect; /* file that the result must equal; NULL for none */
    const char *save;   /* file to write the result to; NULL for none */
} kernel_arg;

typedef struct kernel_shape {
    uint32_t dims;
    uint64_t global[3];
    uint64_t local[3]; /* zeros: the backend chooses */
} kernel_shape;

/* The kernel in one language, or another way to run it there, which kiln tune measures: a variant.
 * Everything is filled in. */
typedef struct kernel_form {
    const char *name; /* "opencl-c", of a variant "opencl-c/tile8" */
    kiln_language language;
    const char *path; /* NULL for KILN_LANG_BUILTIN */
    const char *entry;
    kernel_shape shape;
    const char *const *options;
    size_t option_count;
    const kiln_define *defines;
    size_t define_count;
} kernel_form;

enum { KERNEL_MAX_ARGS = 64, KERNEL_MAX_SIZES = 8 };

typedef struct cli_kernel {
    const char *name;
    kernel_form *forms;   /* in the order in which they are tried, and after them the variants */
    size_t form_count;    /* without the variants; each has a language of its own */
    size_t variant_count; /* with form_count at most KILN_VARIANTS_MAX */
    const char *const *include_dirs;
    size_t include_dir_count;
    kernel_arg args[KERNEL_MAX_ARGS];
    size_t arg_count;
    data_tolerance tolerance;
    const char *reference;      /* kernel in double: a built-in one's name, or the file's entry */
    const char *reference_path; /* NULL: built in */
    kernel_shape reference_shape;
    uint64_t sizes[KERNEL_MAX_SIZES]; /* of the problem; none: the launch's global */
    size_t size_count;
    double flops; /* of a launch; 0: not said */
} cli_kernel;

/* "value", "in", "out", "inout", "local". KERNEL_ACCESS_COUNT: it is none of them. */
kernel_access kernel_access_parse(const char *text);
bool kernel_is_buffer(const kernel_arg *arg);
bool kernel_is_written(const kernel_arg *arg);

#endif
