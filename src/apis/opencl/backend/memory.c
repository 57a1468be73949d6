/* Devices, buffers, and copies between them and the host. */
#include <stdlib.h>

#include "apis/opencl/backend/opencl.h"
#include "apis/opencl/backend/queue.h"
#include "apis/opencl/backend/status.h"
#include "base/diag.h"

kiln_status kn_opencl_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                                  kiln_diag *diag)
{
    const kn_opencl *cl = (const kn_opencl *)instance;
    if (index >= cl->unit_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "describing an OpenCL device",
                             "there is no device %u", index);
    }
    *out_info = cl->units[index].info;
    return KILN_OK;
}

kiln_status kn_opencl_device_open(void *instance, uint32_t index, void **out_device,
                                  kiln_diag *diag)
{
    kn_opencl *cl = (kn_opencl *)instance;
    cl_int code = CL_SUCCESS;
    if (index >= cl->unit_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "opening an OpenCL device",
                             "there is no device %u", index);
    }
    kn_opencl_device *device = calloc(1, sizeof(*device));
    /* The first key will want them: better now, while the driver starts anyway, than then. */
    kiln_status status = kn_opencl_unit_modules(cl, &cl->units[index], diag);
    if (status != KILN_OK) {
        free(device);
        return status;
    }
    if (device == NULL) {
        return kn_no_memory(diag, "opening an OpenCL device");
    }
    device->cl = cl;
    device->unit = &cl->units[index];
    device->context = cl->api.clCreateContext(NULL, 1, &device->unit->device, NULL, NULL, &code);
    if (device->context == NULL) {
        free(device);
        return kn_opencl_fail(diag, "opening an OpenCL device", "clCreateContext", code);
    }
    *out_device = device;
    return KILN_OK;
}

void kn_opencl_device_close(void *device)
{
    kn_opencl_device *dev = (kn_opencl_device *)device;
    if (dev != NULL) {
        (void)dev->cl->api.clReleaseContext(dev->context);
        free(dev);
    }
}

kiln_status kn_opencl_buffer_create(void *device, size_t size, void **out_buffer, kiln_diag *diag)
{
    const kn_opencl_device *dev = (const kn_opencl_device *)device;
    cl_int code = CL_SUCCESS;
    kn_opencl_buffer *buffer = calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "creating an OpenCL buffer");
    }
    buffer->size = size;
    buffer->memory =
        dev->cl->api.clCreateBuffer(dev->context, CL_MEM_READ_WRITE, size, NULL, &code);
    if (buffer->memory == NULL) {
        free(buffer);
        return kn_opencl_fail(diag, "creating an OpenCL buffer", "clCreateBuffer", code);
    }
    *out_buffer = buffer;
    return KILN_OK;
}

void kn_opencl_buffer_destroy(void *device, void *buffer)
{
    kn_opencl_buffer *b = (kn_opencl_buffer *)buffer;
    if (b != NULL) {
        /* The driver keeps the memory until commands that use it are done. */
        (void)((kn_opencl_device *)device)->cl->api.clReleaseMemObject(b->memory);
        free(b);
    }
}

/* Starts what was put in when a caller will watch its event: a driver may batch otherwise. */
static kiln_status settle_event(const kn_opencl_queue *queue, cl_event event, void **out_event,
                                const char *what, const char *call, cl_int code, kiln_diag *diag)
{
    if (code != CL_SUCCESS) {
        return kn_opencl_fail_run(diag, what, call, code);
    }
    if (out_event != NULL) {
        (void)queue->device->cl->api.clFlush(queue->handle);
        *out_event = event;
    }
    return KILN_OK;
}

kiln_status kn_opencl_queue_write(void *queue, void *buffer, size_t offset, const void *data,
                                  size_t size, void **out_event, kiln_diag *diag)
{
    const kn_opencl_queue *q = (const kn_opencl_queue *)queue;
    cl_event event = NULL;
    cl_int code = q->device->cl->api.clEnqueueWriteBuffer(
        q->handle, ((kn_opencl_buffer *)buffer)->memory, out_event == NULL ? CL_TRUE : CL_FALSE,
        offset, size, data, 0, NULL, out_event != NULL ? &event : NULL);
    return settle_event(q, event, out_event, "writing an OpenCL buffer", "clEnqueueWriteBuffer",
                        code, diag);
}

kiln_status kn_opencl_queue_read(void *queue, void *buffer, size_t offset, void *data, size_t size,
                                 void **out_event, kiln_diag *diag)
{
    const kn_opencl_queue *q = (const kn_opencl_queue *)queue;
    cl_event event = NULL;
    cl_int code = q->device->cl->api.clEnqueueReadBuffer(
        q->handle, ((kn_opencl_buffer *)buffer)->memory, out_event == NULL ? CL_TRUE : CL_FALSE,
        offset, size, data, 0, NULL, out_event != NULL ? &event : NULL);
    return settle_event(q, event, out_event, "reading an OpenCL buffer", "clEnqueueReadBuffer",
                        code, diag);
}

kiln_status kn_opencl_queue_fill(void *queue, void *buffer, size_t offset, const void *pattern,
                                 size_t pattern_size, size_t size, kiln_diag *diag)
{
    const kn_opencl_queue *q = (const kn_opencl_queue *)queue;
    cl_int code =
        q->device->cl->api.clEnqueueFillBuffer(q->handle, ((kn_opencl_buffer *)buffer)->memory,
                                               pattern, pattern_size, offset, size, 0, NULL, NULL);
    return settle_event(q, NULL, NULL, "filling an OpenCL buffer", "clEnqueueFillBuffer", code,
                        diag);
}

kiln_status kn_opencl_queue_copy(void *queue, void *from, size_t from_offset, void *to,
                                 size_t to_offset, size_t size, kiln_diag *diag)
{
    const kn_opencl_queue *q = (const kn_opencl_queue *)queue;
    cl_int code = q->device->cl->api.clEnqueueCopyBuffer(
        q->handle, ((kn_opencl_buffer *)from)->memory, ((kn_opencl_buffer *)to)->memory,
        from_offset, to_offset, size, 0, NULL, NULL);
    return settle_event(q, NULL, NULL, "copying an OpenCL buffer", "clEnqueueCopyBuffer", code,
                        diag);
}
