/* The metadata note of a code object: MessagePack, of which the kernels' names and the target are
 * read (LLVM, "User Guide for AMDGPU Backend", Code Object Metadata). Pure: bytes only. */
#ifndef KILN_HIP_BACKEND_METADATA_H
#define KILN_HIP_BACKEND_METADATA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kn_metadata_text {
    const char *data; /* not terminated; NULL if there is none */
    size_t length;
} kn_metadata_text;

/* A kernel: its name, and the bytes of its list of arguments, of data NULL if it has none. */
typedef struct kn_metadata_kernel {
    kn_metadata_text name, args;
} kn_metadata_kernel;

typedef void kn_metadata_visit(void *user, const kn_metadata_kernel *kernel);

/* Reads all of it; false if it is cut off or malformed. `visit`, which may be NULL, gets each
 * kernel; *out_target is the target's, of data NULL in code objects before version 4. */
bool kn_metadata_read(const void *data, size_t size, kn_metadata_visit *visit, void *user,
                      kn_metadata_text *out_target);

/* An argument: its size in bytes, and its kind ("global_buffer", "by_value", "hidden_..."), of data
 * NULL if it does not say. */
typedef struct kn_metadata_arg {
    size_t size;
    kn_metadata_text kind;
} kn_metadata_arg;

typedef void kn_metadata_arg_visit(void *user, kn_metadata_arg arg);

/* Reads the arguments of a kernel that kn_metadata_read gave, in their order; false if they are
 * malformed. */
bool kn_metadata_read_args(kn_metadata_text args, kn_metadata_arg_visit *visit, void *user);

#endif
