/* The metadata note of a code object: MessagePack, of which the kernels' names and the target are
 * read (LLVM, "User Guide for AMDGPU Backend", Code Object Metadata). Pure: bytes only. */
#ifndef KILN_HIP_METADATA_H
#define KILN_HIP_METADATA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kn_metadata_text {
    const char *data; /* not terminated; NULL if there is none */
    size_t length;
} kn_metadata_text;

typedef void kn_metadata_visit(void *user, kn_metadata_text kernel);

/* Reads all of it; false if it is cut off or malformed. `visit`, which may be NULL, gets each
 * kernel's name; *out_target is the target's, of data NULL in code objects before version 4. */
bool kn_metadata_read(const void *data, size_t size, kn_metadata_visit *visit, void *user,
                      kn_metadata_text *out_target);

#endif
