/* The code object manager as far as kiln asks it: three processors, of which one has settings. */
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const char *const names[] = {
    "amdgcn-amd-amdhsa--gfx90a",
    "amdgcn-amd-amdhsa--gfx1030",
    "amdgcn-amd-amdhsa--gfx1100",
};

typedef struct node {
    uint64_t handle;
} node;

EXPORT int amd_comgr_get_isa_count(size_t *count)
{
    *count = sizeof(names) / sizeof(names[0]);
    return 0;
}

EXPORT int amd_comgr_get_isa_name(size_t index, const char **name)
{
    *name = names[index];
    return 0;
}

EXPORT int amd_comgr_get_isa_metadata(const char *isa, node *out_node)
{
    const size_t length = strcspn(isa, ":");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == length && strncmp(isa, names[i], length) == 0 &&
            (isa[length] == '\0' || i == 0)) {
            out_node->handle = i + 1;
            return 0;
        }
    }
    return 2;
}

EXPORT int amd_comgr_destroy_metadata(node which)
{
    return which.handle != 0 ? 0 : 2;
}
