/* An OpenCL program that is compiled in units and linked, as hashcat and others do, and what
 * replaces the calls for it: clCreateProgramWithSource and clCompileProgram for each unit,
 * clLinkProgram. It opens one cache and destroys it at the end of main: with PoCL, binaries are
 * read then. cc opencl_units.c $(pkg-config --cflags --libs kiln) -lOpenCL && ./a.out */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

#include <kiln/opencl.h>

#define N 64

static const char *const factor[] = {"int times(int x);\n",
                                     "int times(int x) { return x * FACTOR; }\n"};
static const char *const scale[] = {
    "#include \"times.h\"\n"
    "__kernel void scale(__global int *data)\n"
    "{ data[get_global_id(0)] = times(data[get_global_id(0)]); }\n"};
static const kiln_header times_h = {"times.h", "int times(int x);\n", 18};

static int run(cl_context context, cl_device_id device, cl_program program)
{
    cl_int data[N];
    const size_t global = N;
    for (int i = 0; i < N; i++) {
        data[i] = i;
    }
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    cl_kernel kernel = clCreateKernel(program, "scale", NULL);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(data), data, NULL);
    clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer);
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(queue);
    return data[7];
}

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_program program;
    kiln_cache *cache = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
        (void)fprintf(stderr, "no OpenCL device\n");
        return 77;
    }
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);

    const kiln_opencl_unit units[] = {
        {.struct_size = sizeof(units[0]),
         .strings = factor,
         .string_count = 2,
         .options = "-DFACTOR=3"},
        {.struct_size = sizeof(units[0]),
         .strings = scale,
         .string_count = 1,
         .headers = &times_h,
         .header_count = 1},
    };
    const kiln_opencl_request request = {
        .struct_size = sizeof(request),
        .context = context,
        .devices = &device,
        .device_count = 1,
        .units = units,
        .unit_count = 2,
    };
    if (kiln_cache_create(NULL, &cache, &diag) ||
        kiln_opencl_build(cache, &request, &program, &diag)) {
        (void)fprintf(stderr, "%s: %s\n%s", diag.what, diag.why, diag.log ? diag.log : "");
        return 1;
    }

    const int result = run(context, device, program);
    (void)printf("data[7] = %d\n", result);
    clReleaseProgram(program);
    clReleaseContext(context);
    kiln_cache_destroy(cache);
    return result == 21 ? 0 : 1;
}
