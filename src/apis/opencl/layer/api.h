/* What the OpenCL layer that a loader opens (programs/kiln-layers/opencl.c) and its core agree
 * on; they are built and installed together. This file must not include anything of kiln's library:
 * the layer links libc alone. */
#ifndef KILN_OPENCL_LAYER_API_H
#define KILN_OPENCL_LAYER_API_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_layer.h>

typedef void(CL_CALLBACK kn_cl_notify)(cl_program program, void *user);

typedef struct kn_cl_calls {
#define X(result, name, parameters, arguments) result(CL_API_CALL *name) parameters;
#include "apis/opencl/layer/calls.def"
#undef X
    void (*leave)(void); /* the loader ends in this process: nothing of `target` is called again */
} kn_cl_calls;

/* The one function that the core exports: the calls that answer from the cache, on top of `target`,
 * which stays valid, and in which what a loader lacks is NULL; NULL if the cache cannot be used:
 * the program then goes on with the driver. Threads: one; again after `leave`. */
#define KN_INTERPOSE_OPENCL "kn_interpose_opencl"
typedef const kn_cl_calls *kn_interpose_opencl_fn(const cl_icd_dispatch *target);

#endif
