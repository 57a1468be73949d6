/* A device: its description, and the backend's handle, opened when it is first needed. */
#include "kiln/device.h"

#include "core/runtime/runtime.h"

const kiln_device_info *kiln_device_get_info(const kiln_device *device)
{
    return &device->info;
}

kiln_status kn_device_handle(kiln_device *device, void **out_handle, kiln_diag *diag)
{
    *out_handle = NULL;
    kiln_status status = kn_driver_wake(device->runtime, device->driver, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_mutex_lock(&device->mutex);
    if (device->handle == NULL) {
        void *handle = NULL;
        const kn_instance *in = &device->driver->in;
        kn_trace *trace = device->runtime->trace;
        const uint64_t start = kn_trace_begin(trace);
        status = kn_hal_device_open(in, in->handle, device->info.index, &handle, diag);
        device->handle = status == KILN_OK ? handle : NULL;
        kn_trace_end(trace, start, "open device", &(kn_trace_about){.device = device});
    }
    *out_handle = device->handle;
    kn_mutex_unlock(&device->mutex);
    return status;
}
