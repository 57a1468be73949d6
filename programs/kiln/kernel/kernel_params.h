/* Compares what a kernel takes, as far as the backend can tell, with what it is given: a wrong
 * element type would not fail but compute nonsense. */
#ifndef KILN_PROGRAM_KERNEL_PARAMS_H
#define KILN_PROGRAM_KERNEL_PARAMS_H

#include <kiln/program.h>

#include "kernel/kernel.h"

/* KILN_E_INVALID names the argument, or says how many there should be. */
kiln_status kernel_params_check(kiln_program *program, const char *entry, const cli_kernel *kernel,
                                kiln_diag *diag);

/* Whether an argument of `type` may be given for a parameter declared as `declared` ("const
 * __global float4 *", "int32_t"). True where the declaration says nothing that is known. */
bool kernel_params_type_fits(const char *declared, data_type type);

#endif
