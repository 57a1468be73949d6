/* What reading the binary of a program of PoCL takes. PoCL loads a library for each kernel that it
 * launches, the process shows its libraries, and their sizes say how long PoCL takes to compile
 * such a kernel. Knows no times: budget.h. */
#ifndef KILN_OPENCL_DROPIN_WORTH_H
#define KILN_OPENCL_DROPIN_WORTH_H

#include "apis/opencl/backend/opencl.h"

/* What a kernel is taken to cost of which nothing is known. */
#define KN_OPENCL_WORTH_GUESS_NS (250ull * 1000000ull)

/* How long reading a program of `kernels` kernels is expected to take; 0 when none of them has been
 * launched in this process. Another program's kernel of the same name counts as its own. */
uint64_t kn_opencl_worth_cost(const kn_opencl_api *api, cl_program program, size_t kernels);

#endif
