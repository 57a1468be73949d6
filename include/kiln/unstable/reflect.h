/* What the kernels of a program take, and what their source says of them. */
#ifndef KILN_UNSTABLE_REFLECT_H
#define KILN_UNSTABLE_REFLECT_H

#include "kiln/launch.h"

KILN_BEGIN_DECLS

/* One parameter of a kernel. */
typedef struct kiln_param {
    size_t struct_size;
    char name[64];
    char type[64];
    kiln_arg_kind kind;
    size_t size; /* of a value; 0 if unknown */
} kiln_param;

/* The entries of a program and their parameters, a list of pointers; `out_count` 0 where the
 * backend cannot tell.
 * Threads: any.   Blocks: never.   Owns: borrowed from the program.
 * Fails: KILN_MISS for an unknown entry; the diag lists those there are. */
KILN_API size_t kiln_program_entry_count(const kiln_program *program);
KILN_API const char *kiln_program_entry(const kiln_program *program, size_t index);
KILN_API KILN_MUST_CHECK kiln_status kiln_program_get_params(kiln_program *program,
                                                             const char *entry,
                                                             const kiln_param *const **out_params,
                                                             size_t *out_count, kiln_diag *diag);

/* The attributes of an entry in the words of its language ("reqd_work_group_size(8,1,1)"), "" where
 * it has none or the backend does not list them. They are kept with the binary, for drivers forget
 * them (PoCL: CL_KERNEL_ATTRIBUTES): the same on a hit as on a compile.
 * Threads: any.   Blocks: never.   Owns: borrowed from the program.
 * Fails: NULL for an unknown entry, or where the backend keeps no list of its kernels. */
KILN_API const char *kiln_program_attributes(const kiln_program *program, const char *entry);

/* The qualifiers of a parameter in its language's words: the address space ("global", "private"),
 * an image's access ("read_only"), "const", "restrict", "volatile", "pipe", with blanks between.
 * They are kept with the binary, for drivers forget them (NVIDIA: clGetKernelArgInfo).
 * Threads: any.   Blocks: never.   Owns: borrowed from the program.
 * Fails: NULL for an unknown entry, an index past its parameters, or where the backend does not
 * tell. */
KILN_API const char *kiln_program_qualifiers(const kiln_program *program, const char *entry,
                                             size_t index);

KILN_END_DECLS

#endif
