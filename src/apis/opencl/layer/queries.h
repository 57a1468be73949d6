/* What an application asks of programs and kernels that the cache answers for. */
#ifndef KILN_OPENCL_LAYER_QUERIES_H
#define KILN_OPENCL_LAYER_QUERIES_H

#include "apis/opencl/layer/handles.h"

cl_int CL_API_CALL kn_layer_program_info(cl_program handle, cl_program_info name, size_t size,
                                         void *value, size_t *out_size);
cl_int CL_API_CALL kn_layer_build_info(cl_program handle, cl_device_id device,
                                       cl_program_build_info name, size_t size, void *value,
                                       size_t *out_size);
cl_int CL_API_CALL kn_layer_kernel_info(cl_kernel kernel, cl_kernel_info name, size_t size,
                                        void *value, size_t *out_size);
cl_int CL_API_CALL kn_layer_kernel_arg_info(cl_kernel kernel, cl_uint index,
                                            cl_kernel_arg_info name, size_t size, void *value,
                                            size_t *out_size);
cl_int CL_API_CALL kn_layer_kernel_group_info(cl_kernel kernel, cl_device_id device,
                                              cl_kernel_work_group_info name, size_t size,
                                              void *value, size_t *out_size);

/* Kernels of a pinned program. */
cl_kernel kn_layer_create_kernel(kn_layer_program *program, const char *name, cl_int *code);
cl_int kn_layer_create_kernels(kn_layer_program *program, cl_uint entries, cl_kernel *kernels,
                               cl_uint *count);

#endif
