/* A start on OpenCL by hand: what a program would write itself, with its binary in a file, or from
 * source. */
#include "bench/warm_opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/warm.h"

const char warm_opencl_text[] =
    "__kernel void matmul(__global const float *a, __global const float *b, __global float *c,\n"
    "                     int n)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    float sum = 0.0f;\n"
    "    for (int i = 0; i < n; i++) { sum += a[y * n + i] * b[i * n + x]; }\n"
    "    c[y * n + x] = sum;\n"
    "}\n";

/* The few entry points this needs, looked up in the library that kiln would open. */
#define CALLS(X)                                                                                   \
    X(clGetPlatformIDs)                                                                            \
    X(clGetDeviceIDs)                                                                              \
    X(clCreateContext)                                                                             \
    X(clCreateCommandQueue)                                                                        \
    X(clCreateProgramWithBinary)                                                                   \
    X(clCreateProgramWithSource)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clCreateKernel)                                                                              \
    X(clSetKernelArg)                                                                              \
    X(clCreateBuffer)                                                                              \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueReadBuffer)                                                                         \
    X(clReleaseMemObject)                                                                          \
    X(clReleaseKernel)                                                                             \
    X(clReleaseProgram)                                                                            \
    X(clReleaseCommandQueue)                                                                       \
    X(clReleaseContext)

static struct {
#define X(name) __typeof__(&name) name;
    CALLS(X)
#undef X
} cl;

static bool open_library(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return false;
    }
    void *symbol = NULL;
    bool whole = true;
#define X(name)                                                                                    \
    symbol = dlsym(library, #name);                                                                \
    whole = whole && symbol != NULL;                                                               \
    memcpy(&cl.name, &symbol, sizeof(symbol));
    CALLS(X)
#undef X
    return whole;
}

/* What warm_opencl_destroy releases. */
static struct {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_mem x, y, z;
    cl_kernel kernel;
} made;

void warm_opencl_destroy(void)
{
    if (made.kernel != NULL) {
        (void)cl.clReleaseKernel(made.kernel);
        (void)cl.clReleaseMemObject(made.x);
        (void)cl.clReleaseMemObject(made.y);
        (void)cl.clReleaseMemObject(made.z);
        (void)cl.clReleaseProgram(made.program);
        (void)cl.clReleaseCommandQueue(made.queue);
        (void)cl.clReleaseContext(made.context);
    }
}

/* The launch and the copy back; true if the result came. */
static bool first_result(cl_context context, cl_command_queue queue, cl_program program)
{
    static float a[WARM_SIZE * WARM_SIZE];
    static float c[WARM_SIZE * WARM_SIZE];
    cl_int error = CL_SUCCESS;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    made.context = context;
    made.queue = queue;
    made.program = program;
    made.x = cl.clCreateBuffer(context, flags, sizeof(a), a, &error);
    made.y = cl.clCreateBuffer(context, flags, sizeof(a), a, &error);
    made.z = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(c), NULL, &error);
    made.kernel = cl.clCreateKernel(program, "matmul", &error);
    const cl_int n = WARM_SIZE;
    const size_t global[2] = {WARM_SIZE, WARM_SIZE};
    const size_t local[2] = {WARM_GROUP, WARM_GROUP};
    return error == CL_SUCCESS &&
           cl.clSetKernelArg(made.kernel, 0, sizeof(made.x), &made.x) == CL_SUCCESS &&
           cl.clSetKernelArg(made.kernel, 1, sizeof(made.y), &made.y) == CL_SUCCESS &&
           cl.clSetKernelArg(made.kernel, 2, sizeof(made.z), &made.z) == CL_SUCCESS &&
           cl.clSetKernelArg(made.kernel, 3, sizeof(n), &n) == CL_SUCCESS &&
           cl.clEnqueueNDRangeKernel(queue, made.kernel, 2, NULL, global, local, 0, NULL, NULL) ==
               CL_SUCCESS &&
           cl.clEnqueueReadBuffer(queue, made.z, CL_TRUE, 0, sizeof(c), c, 0, NULL, NULL) ==
               CL_SUCCESS;
}

typedef struct ready {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
} ready;

/* The first device of the first platform, as kiln numbers them. */
static bool make_ready(ready *r)
{
    cl_platform_id platform = NULL;
    cl_int error = CL_SUCCESS;
    if (!open_library() || cl.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &r->device, NULL) != CL_SUCCESS) {
        return false;
    }
    r->context = cl.clCreateContext(NULL, 1, &r->device, NULL, NULL, &error);
    r->queue =
        error == CL_SUCCESS ? cl.clCreateCommandQueue(r->context, r->device, 0, &error) : NULL;
    return error == CL_SUCCESS;
}

/* Prints "load first", the program being there since `loaded`. */
static bool tell(const ready *r, cl_program program, double start)
{
    const double loaded = bench_now();
    if (!first_result(r->context, r->queue, program)) {
        return false;
    }
    printf("%.3f %.3f\n", (loaded - start) * 1e6, (bench_now() - start) * 1e6);
    return true;
}

bool warm_opencl_by_hand(const char *path)
{
    ready r = {0};
    cl_int error = CL_SUCCESS;
    cl_int binary_error = CL_SUCCESS;
    if (!make_ready(&r)) {
        return false;
    }
    const double start = bench_now();
    size_t size = 0;
    unsigned char *binary = bench_read(path, &size);
    const unsigned char *parts[] = {binary};
    if (binary == NULL) {
        return false;
    }
    cl_program program =
        cl.clCreateProgramWithBinary(r.context, 1, &r.device, &size, parts, &binary_error, &error);
    error = error == CL_SUCCESS ? cl.clBuildProgram(program, 1, &r.device, "", NULL, NULL) : error;
    const bool told = error == CL_SUCCESS && tell(&r, program, start);
    free(binary);
    return told;
}

static cl_int build_from_text(cl_context context, cl_device_id device, cl_program *out_program)
{
    cl_int error = CL_SUCCESS;
    const char *parts[] = {warm_opencl_text};
    *out_program = cl.clCreateProgramWithSource(context, 1, parts, NULL, &error);
    return error == CL_SUCCESS ? cl.clBuildProgram(*out_program, 1, &device, "", NULL, NULL)
                               : error;
}

bool warm_opencl_from(warm_opencl_build *build, warm_opencl_end *end)
{
    ready r = {0};
    cl_program program = NULL;
    if (!make_ready(&r)) {
        return false;
    }
    const double start = bench_now();
    const bool told =
        build(r.context, r.device, &program) == CL_SUCCESS && tell(&r, program, start);
    if (end != NULL) {
        end(r.context, r.device);
    }
    return told;
}

bool warm_opencl_plain(void)
{
    return warm_opencl_from(build_from_text, NULL);
}
