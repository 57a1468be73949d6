/* The table behind kernels.h. */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/list.h"
#include "kiln/cpu.h"

#define DECLARE(name)                                                                              \
    KILN_KERNEL_DECLARE(name);                                                                     \
    KILN_KERNEL_DECLARE(name##_reference);
KERNELS(DECLARE)
#undef DECLARE

#define KERNEL(name) KILN_KERNEL_REF(name),
#define REFERENCE(name) KILN_KERNEL_REF(name##_reference),
static const struct kiln_cpu_kernel *const kernels[] = {KERNELS(KERNEL) KERNELS(REFERENCE)};
#undef KERNEL
#undef REFERENCE

const struct kiln_cpu_kernel *kiln_example_kernel_at(size_t index)
{
    return index < sizeof(kernels) / sizeof(kernels[0]) ? kernels[index] : NULL;
}

const struct kiln_cpu_kernel *kiln_example_kernel(const char *name)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        if (strcmp(kernels[i]->name, name) == 0) {
            return kernels[i];
        }
    }
    return NULL;
}
