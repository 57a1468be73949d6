/* The functions of libOpenCL as a table, and the one place that includes its headers. */
#ifndef KILN_OPENCL_BACKEND_SYMBOLS_H
#define KILN_OPENCL_BACKEND_SYMBOLS_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "kiln/unstable/probe.h"

#include "sys/dylib.h"

/* The version that everything required belongs to, as 100 * major + 10 * minor. */
#define KN_OPENCL_NEEDED 120u

typedef struct kn_opencl_api {
#define X(since, need, result, name, args) result(CL_API_CALL *name) args;
#include "apis/opencl/backend/opencl.def"
#undef X
} kn_opencl_api;

/* Opens the ICD loader (the one that the program has loaded already, if it has) and fills `api`. On
 * failure *out_outcome distinguishes missing, unusable, too old and broken. `path` is where it is,
 * or the name that was looked for. */
kiln_status kn_opencl_library_open(kn_dylib **out_lib, kn_opencl_api *api, char *path,
                                   size_t path_size, kiln_probe_outcome *out_outcome,
                                   kiln_diag *diag);

#endif
