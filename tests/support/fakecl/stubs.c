/* Every symbol of the OpenCL backend's table, each a weak function that does nothing, so that a
 * fake library has them all. Made from the same table, against Khronos' own prototypes: a row that
 * does not agree with them does not compile. */
#include "apis/opencl/backend/symbols.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifdef FAKE_WITHOUT_BINARY
#define clCreateProgramWithBinary fake_has_no_clCreateProgramWithBinary
CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithBinary(cl_context context, cl_uint count,
                                                              const cl_device_id *devices,
                                                              const size_t *lengths,
                                                              const unsigned char **binaries,
                                                              cl_int *statuses, cl_int *code);
#endif

#define DEFINE(result, name, args)                                                                 \
    CL_API_ENTRY __attribute__((weak, visibility("default"))) result CL_API_CALL name args         \
    {                                                                                              \
        return (result)0;                                                                          \
    }
#define ROW_100(result, name, args) DEFINE(result, name, args)
#ifdef FAKE_ONLY_1_0
#define ROW_110(result, name, args)
#define ROW_120(result, name, args)
#define ROW_210(result, name, args)
#else
#define ROW_110(result, name, args) DEFINE(result, name, args)
#define ROW_120(result, name, args) DEFINE(result, name, args)
#define ROW_210(result, name, args) DEFINE(result, name, args)
#endif
#define X(since, need, result, name, args) ROW_##since(result, name, args)
#include "apis/opencl/backend/opencl.def"
