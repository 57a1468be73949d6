/* The example kernels that are compiled into the program, and their references in double, by name
 * ("saxpy", "saxpy_reference"). The same kernels in every language, and how to launch them, are in
 * manifest.json. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stddef.h>

struct kiln_cpu_kernel;

/* The kernel of that name, or NULL. */
const struct kiln_cpu_kernel *kiln_example_kernel(const char *name);

/* The index-th kernel, references after kernels; NULL past the end. */
const struct kiln_cpu_kernel *kiln_example_kernel_at(size_t index);

#endif
