/* Buffers: the host's memory, aligned for the widest vectors. */
#include <stdlib.h>

#include "backends/cpu/device.h"
#include "sys/memory.h"

void *kn_cpu_memory_create(size_t size)
{
    if (size > SIZE_MAX - CPU_ALIGNMENT) {
        return NULL;
    }
    const size_t rounded = (size + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
    return kn_memory_create(CPU_ALIGNMENT, rounded > 0 ? rounded : CPU_ALIGNMENT);
}

void kn_cpu_memory_release(void *memory)
{
    kn_memory_destroy(memory);
}

kiln_status kn_cpu_buffer_create(void *device, size_t size, void **out_buffer, kiln_diag *diag)
{
    const cpu_instance *cpu = ((const cpu_device *)device)->cpu;
    const uint64_t most = cpu->processor.memory_bytes;
    cpu_buffer *buffer = NULL;
    /* More than the machine has would be promised all the same, and end the process later. */
    if (most == 0 || size <= most) {
        buffer = (cpu_buffer *)calloc(1, sizeof(*buffer));
    }
    if (buffer != NULL) {
        buffer->data = (unsigned char *)kn_cpu_memory_create(size);
    }
    if (buffer == NULL || buffer->data == NULL) {
        free(buffer);
        return kiln_diag_set(diag, KILN_E_NOMEM, "use smaller buffers", "creating a buffer",
                             "cannot allocate %zu bytes", size);
    }
    atomic_init(&buffer->references, 1u);
    buffer->size = size;
    *out_buffer = buffer;
    return KILN_OK;
}

void kn_cpu_buffer_destroy(void *device, void *buffer)
{
    (void)device;
    kn_cpu_buffer_release((cpu_buffer *)buffer);
}

cpu_buffer *kn_cpu_buffer_retain(cpu_buffer *buffer)
{
    (void)atomic_fetch_add(&buffer->references, 1u);
    return buffer;
}

void kn_cpu_buffer_release(cpu_buffer *buffer)
{
    if (buffer != NULL && atomic_fetch_sub(&buffer->references, 1u) == 1u) {
        kn_cpu_memory_release(buffer->data);
        free(buffer);
    }
}
