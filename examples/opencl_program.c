/* An OpenCL program of the ordinary kind, except for its cache and one line: where it said
 *     program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
 *     code = clBuildProgram(program, 1, &device, "-DFACTOR=3", NULL, NULL);
 *
 * it now asks kiln. The second start finds the program in the cache and compiles nothing. The cache
 * is destroyed at the end of main: with PoCL, KILN_CAPTURE=1 stores it there, once.
 *
 *     cc opencl_program.c $(pkg-config --cflags --libs kiln) -lOpenCL && ./a.out */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

#include <kiln/opencl.h>

#define N 1024

static const char text[] = "__kernel void scale(__global int *data)\n"
                           "{ data[get_global_id(0)] *= FACTOR; }\n";

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    cl_int data[N];
    const size_t global = N;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
        (void)fprintf(stderr, "no OpenCL device\n");
        return 77;
    }
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);

    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    if (kiln_cache_create(NULL, &cache, &diag) ||
        kiln_opencl_build_program(cache, context, device, text, "-DFACTOR=3", &program, &diag)) {
        (void)fprintf(stderr, "%s: %s\n%s", diag.what, diag.why, diag.log ? diag.log : "");
        return 1;
    }

    for (int i = 0; i < N; i++) {
        data[i] = i;
    }
    cl_kernel kernel = clCreateKernel(program, "scale", NULL);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(data), data, NULL);
    clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer);
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL);
    (void)printf("data[7] = %d\n", (int)data[7]);

    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    kiln_cache_destroy(cache);
    return data[7] == 21 ? 0 : 1;
}
