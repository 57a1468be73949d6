#include "unit/dropin/opencl_rig.h"

#include <string.h>

#include "sys/thread.h"

enum { THREADS = 4 };

bool rig_open_driver(rig_client *c)
{
    kiln_probe_outcome outcome;
    char path[512];
    cl_platform_id platform = NULL;
    cl_int code = CL_SUCCESS;
    memset(c, 0, sizeof(*c));
    if (kn_opencl_library_open(&c->lib, &c->api, path, sizeof(path), &outcome, NULL) != KILN_OK ||
        c->api.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        c->api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, RIG_DEVICES, c->devices,
                              &c->device_count) != CL_SUCCESS) {
        return false;
    }
    c->context = c->api.clCreateContext(NULL, c->device_count, c->devices, NULL, NULL, &code);
    return c->context != NULL;
}

bool rig_open(rig_client *c)
{
    return rig_open_driver(c) && kiln_cache_create(NULL, &c->cache, NULL) == KILN_OK;
}

void rig_close(rig_client *c)
{
    (void)c->api.clReleaseContext(c->context);
    kiln_cache_destroy(c->cache);
    kn_dylib_retire(c->lib);
}

int rig_scale(const rig_client *c, cl_device_id device, cl_program program)
{
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = NULL;
    cl_int value = 10;
    const size_t global = 64, local = 16;
    cl_command_queue queue = c->api.clCreateCommandQueue(c->context, device, 0, &code);
    cl_mem buffer = c->api.clCreateBuffer(c->context, CL_MEM_READ_WRITE, 4 * global, NULL, &code);
    code = c->api.clCreateKernelsInProgram(program, 1, &kernel, NULL);
    code |= c->api.clEnqueueFillBuffer(queue, buffer, &value, sizeof(value), 0, 4 * global, 0, NULL,
                                       NULL);
    code |= c->api.clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer);
    code |= c->api.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    code |=
        c->api.clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL);
    (void)c->api.clReleaseKernel(kernel);
    (void)c->api.clReleaseMemObject(buffer);
    (void)c->api.clReleaseCommandQueue(queue);
    return code == CL_SUCCESS ? value : -1;
}

typedef struct builder {
    rig_client *c;
    rig_build_fn *build;
    const char *options;
    cl_program program;
    kiln_status status;
} builder;

static void build_in_thread(void *user)
{
    builder *b = (builder *)user;
    b->status = b->build(b->c, b->options, &b->program);
}

kiln_status rig_build_in_threads(rig_client *c, rig_build_fn *build, const char *options)
{
    builder builders[THREADS];
    kn_thread *threads[THREADS] = {NULL};
    kiln_status status = KILN_OK;
    for (int i = 0; i < THREADS; i++) {
        builders[i] = (builder){c, build, options, NULL, KILN_OK};
        if (kn_thread_start(build_in_thread, &builders[i], &threads[i], NULL) != KILN_OK) {
            return KILN_E_INTERNAL;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
        status = builders[i].status != KILN_OK ? builders[i].status : status;
        for (int k = 0; k < i; k++) {
            status = builders[i].program == builders[k].program ? KILN_E_INTERNAL : status;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)c->api.clReleaseProgram(builders[i].program);
    }
    return status;
}
