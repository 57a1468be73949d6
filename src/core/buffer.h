/* Buffers, queues and events inside core. */
#ifndef KILN_CORE_BUFFER_H
#define KILN_CORE_BUFFER_H

#include "core/runtime.h"

struct kiln_buffer {
    kiln_device *device;
    void *handle;
    size_t size;
};

struct kiln_queue {
    kiln_device *device;
    void *handle;
};

#endif
