/* Code objects for AMD's GPUs (LLVM, "User Guide for AMDGPU Backend", Code Object): what a compile
 * gave is looked over before it is stored. Pure: bytes only, which may be any. */
#ifndef KILN_HIP_BACKEND_CODE_OBJECT_H
#define KILN_HIP_BACKEND_CODE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "apis/hip/backend/instance.h"
#include "apis/hip/backend/metadata.h"

enum { KN_CODE_OBJECT_WHY = 256 };

/* True if the bytes are a whole ELF file for this very target and its metadata can be read; else
 * `why` says what they are. */
bool kn_code_object_check(const void *data, size_t size, const kn_hip_target *target,
                          char why[KN_CODE_OBJECT_WHY]);

/* Visits what a kernel of a checked code object takes, hidden arguments too. False if there is no
 * such kernel, or its arguments cannot be read: then some may have been visited. */
bool kn_code_object_params(const void *data, size_t size, const char *name,
                           kn_metadata_arg_visit *visit, void *user);

/* Whether a checked code object has a kernel, or another symbol, of that name. */
bool kn_code_object_has(const void *data, size_t size, const char *name);

#endif
