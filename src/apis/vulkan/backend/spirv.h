/* Reflection of a compute SPIR-V module: entry points, buffer bindings, push constants, work-group
 * size. Reads bytes that may come from anywhere: every length is checked.
 * Specification: SPIR-V 1.6, sections 2.3 (physical layout) and 3 (binary form). */
#ifndef KILN_VULKAN_BACKEND_SPIRV_H
#define KILN_VULKAN_BACKEND_SPIRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

enum {
    KN_SPIRV_MAX_ENTRIES = 64,
    KN_SPIRV_MAX_BINDINGS = 32,
    KN_SPIRV_MAX_MEMBERS = 32,
    KN_SPIRV_NAME = 64,
    KN_SPIRV_ENTRY_NAME = 256, /* given to the driver whole: a longer one is refused */
};

typedef struct kn_spirv_binding {
    uint32_t binding;
    bool uniform; /* a uniform block instead of a storage buffer */
    char name[KN_SPIRV_NAME];
} kn_spirv_binding;

typedef struct kn_spirv_member {
    uint32_t offset, size;
    char name[KN_SPIRV_NAME];
    char type[16];
} kn_spirv_member;

typedef struct kn_spirv_entry {
    char name[KN_SPIRV_ENTRY_NAME];
    uint32_t id;
    uint32_t local[3];
    /* Specialisation constants that make up the work-group size (local_size_x_id = ...). */
    bool specialised[3];
    uint32_t spec_id[3];
} kn_spirv_entry;

typedef struct kn_spirv {
    kn_spirv_entry entries[KN_SPIRV_MAX_ENTRIES];
    size_t entry_count;
    /* Of set 0, by binding number, each once: variables that share a binding are one buffer. */
    kn_spirv_binding bindings[KN_SPIRV_MAX_BINDINGS];
    size_t binding_count;
    kn_spirv_member members[KN_SPIRV_MAX_MEMBERS]; /* of the push constant block, by offset */
    size_t member_count;
    uint32_t push_size;
} kn_spirv;

/* KILN_E_INVALID with the reason: not SPIR-V, no compute entry, descriptor sets other than 0,
 * arrays of buffers, images. `name` is used in messages. */
kiln_status kn_spirv_reflect(const void *data, size_t size, const char *name, kn_spirv *out_module,
                             kiln_diag *diag);

#endif
