/* One call of each of CLBlast's routines that programs use most: it builds a program for each. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <clblast_c.h>
#include <stdio.h>
#include <string.h>

enum { N = 64 };

static cl_mem make_buffer(cl_context context)
{
    static double zeros[N * N];
    cl_int error = CL_SUCCESS;
    return clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros,
                          &error);
}

static int report(const char *name, CLBlastStatusCode code)
{
    if (code != CLBlastSuccess) {
        (void)fprintf(stderr, "%s: CLBlast's status %d\n", name, (int)code);
    }
    return code == CLBlastSuccess ? 0 : 1;
}

int main(void)
{
    cl_platform_id platform = NULL;
    cl_device_id device = NULL;
    cl_int error = CL_SUCCESS;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
        (void)fputs("no OpenCL device\n", stderr);
        return 1;
    }
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cl_command_queue q = clCreateCommandQueue(context, device, 0, &error);
    cl_mem a = make_buffer(context);
    cl_mem b = make_buffer(context);
    cl_mem c = make_buffer(context);
    const CLBlastLayout row = CLBlastLayoutRowMajor;
    const CLBlastTranspose no = CLBlastTransposeNo;
    int failed = 0;
    failed += report("sgemm", CLBlastSgemm(row, no, no, N, N, N, 1.0f, a, 0, N, b, 0, N, 0.0f, c, 0,
                                           N, &q, NULL));
    failed += report(
        "dgemm", CLBlastDgemm(row, no, no, N, N, N, 1.0, a, 0, N, b, 0, N, 0.0, c, 0, N, &q, NULL));
    failed += report("sgemv",
                     CLBlastSgemv(row, no, N, N, 1.0f, a, 0, N, b, 0, 1, 0.0f, c, 0, 1, &q, NULL));
    failed +=
        report("dgemv", CLBlastDgemv(row, no, N, N, 1.0, a, 0, N, b, 0, 1, 0.0, c, 0, 1, &q, NULL));
    failed += report("saxpy", CLBlastSaxpy(N, 2.0f, a, 0, 1, b, 0, 1, &q, NULL));
    failed += report("daxpy", CLBlastDaxpy(N, 2.0, a, 0, 1, b, 0, 1, &q, NULL));
    failed += report("sscal", CLBlastSscal(N, 2.0f, a, 0, 1, &q, NULL));
    failed += report("scopy", CLBlastScopy(N, a, 0, 1, b, 0, 1, &q, NULL));
    failed += report("sswap", CLBlastSswap(N, a, 0, 1, b, 0, 1, &q, NULL));
    failed += report("sdot", CLBlastSdot(N, c, 0, a, 0, 1, b, 0, 1, &q, NULL));
    failed += report("snrm2", CLBlastSnrm2(N, c, 0, a, 0, 1, &q, NULL));
    failed += report("sasum", CLBlastSasum(N, c, 0, a, 0, 1, &q, NULL));
    failed += report("isamax", CLBlastiSamax(N, c, 0, a, 0, 1, &q, NULL));
    failed += report("sger", CLBlastSger(row, N, N, 1.0f, a, 0, 1, b, 0, 1, c, 0, N, &q, NULL));
    (void)clFinish(q);
    (void)CLBlastClearCache();
    return failed == 0 ? 0 : 1;
}
