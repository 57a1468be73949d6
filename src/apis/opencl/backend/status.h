/* OpenCL's error codes: their names, and the kiln status each stands for. */
#ifndef KILN_OPENCL_BACKEND_STATUS_H
#define KILN_OPENCL_BACKEND_STATUS_H

#include "apis/opencl/backend/symbols.h"
#include "kiln/status.h"

/* "CL_INVALID_BINARY"; "unknown error" for a code that no specification names. */
const char *kn_opencl_error_name(cl_int code);
kiln_status kn_opencl_error_status(cl_int code);

/* Fills the diag: `what` failed because `call` returned `code`. Returns the status. */
kiln_status kn_opencl_fail(kiln_diag *diag, const char *what, const char *call, cl_int code);

/* The same for a failure of work that was running: what means "no memory" elsewhere usually is a
 * kernel that went wild there. */
kiln_status kn_opencl_fail_run(kiln_diag *diag, const char *what, const char *call, cl_int code);

/* The same for a binary: whatever a driver says of one, but that it is out of memory or its device
 * is gone, is KILN_E_REJECTED, which another compile may cure. */
kiln_status kn_opencl_fail_load(kiln_diag *diag, const char *call, cl_int code);

#endif
