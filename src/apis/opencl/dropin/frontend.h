/* What the frontends of OpenCL programs share: the drop-in's, the layer's, and what compiles for
 * either ahead of time. */
#ifndef KILN_OPENCL_DROPIN_FRONTEND_H
#define KILN_OPENCL_DROPIN_FRONTEND_H

#include "apis/opencl/dropin/request.h"
#include "engine/job.h"
#include "record/request.h"

/* The first member of a frontend's call. */
typedef struct kn_opencl_call {
    kn_opencl_request *request;
    uint32_t recorded; /* KN_RECORDED_LAYER, and what goes with it */
    cl_program loaded; /* by kn_opencl_load_call; the caller's */
} kn_opencl_call;

/* A frontend's `load`. */
kn_loaded kn_opencl_load_call(void *call, kiln_blob *blob, kiln_diag *diag);
/* kn_job_run for a request: what it includes is checked, kept and recorded. A program for several
 * devices at once, whose key has all of them, is not recorded: it has no single target. */
kn_outcome kn_opencl_run(kn_job *job, const kn_frontend *own, kn_opencl_call *call,
                         const char *name);

#endif
