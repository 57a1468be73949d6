/* The module's one function: shaderc's functions by name. The static library's symbols are hidden,
 * so that they cannot be exported themselves. */
#include <shaderc/shaderc.h>
#include <stddef.h>
#include <string.h>

typedef void any_function(void);

__attribute__((visibility("default"))) any_function *kiln_shaderc_symbol(const char *name);

static const struct {
    const char *name;
    any_function *function;
} rows[] = {
#define X(since, need, ret, name, args) {#name, (any_function *)name},
#include "apis/vulkan/backend/shaderc.def"
};

any_function *kiln_shaderc_symbol(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].function;
        }
    }
    return NULL;
}
