/* An in-order queue of one device. */
#ifndef KILN_OPENCL_BACKEND_QUEUE_H
#define KILN_OPENCL_BACKEND_QUEUE_H

#include "apis/opencl/backend/opencl.h"

typedef struct kn_opencl_queue {
    const kn_opencl_device *device;
    cl_command_queue handle;
} kn_opencl_queue;

#endif
