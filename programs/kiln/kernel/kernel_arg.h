/* Kernel arguments on the command line:
 *
 *     value:TYPE=NUMBER        value:f32=2.5
 *     in:TYPE:SHAPE[=INIT]     in:f32:1024x64=random:-1:1:7
 *     inout...                 as in
 *     out:TYPE:SHAPE           begins as zeros
 *     local:TYPE:COUNT         work-group memory
 *
 * INIT: fill:VALUE, random:FROM:TO[:SEED] or file:PATH; zeros without it. */
#ifndef KILN_PROGRAM_KERNEL_ARG_H
#define KILN_PROGRAM_KERNEL_ARG_H

#include "kernel/kernel.h"

/* Parses one --arg; `index` gives it a name and a seed. KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status kernel_arg_parse(const char *text, size_t index, cli_pool *pool, kernel_arg *out_arg,
                             kiln_diag *diag);

/* "1024x64", "1024,64" or "1024": 1 to `max` whole numbers, each at least 1. */
bool kernel_shape_parse(const char *text, size_t max, uint64_t *extents, size_t *out_rank);

/* "N=FILE" of --save and --expect: which argument, which file. False if it is not that. */
bool kernel_arg_parse_file(const char *text, size_t *out_index, const char **out_file);

#endif
