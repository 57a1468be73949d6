/* Buffers: the host's memory, aligned for the widest vectors. */
#include <stdlib.h>

#include "apis/cpu/backend/device.h"
#include "base/diag.h"
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

kiln_status kn_cpu_buffer_wrap(void *device, uint64_t address, size_t size, void **out_buffer,
                               kiln_diag *diag)
{
    (void)device;
    if (address > UINTPTR_MAX) {
        return kiln_diag_set(
            diag, KILN_E_INVALID, "pass a pointer of this process", "wrapping memory in a buffer",
            "0x%llx is not an address of this process", (unsigned long long)address);
    }
    cpu_buffer *buffer = (cpu_buffer *)calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "wrapping memory in a buffer");
    }
    atomic_init(&buffer->references, 1u);
    buffer->size = size;
    buffer->data = (unsigned char *)(uintptr_t)address;
    buffer->borrowed = true;
    *out_buffer = buffer;
    return KILN_OK;
}

uint64_t kn_cpu_buffer_address(void *device, void *buffer)
{
    (void)device;
    return (uint64_t)(uintptr_t)((const cpu_buffer *)buffer)->data;
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
        if (!buffer->borrowed) {
            kn_cpu_memory_release(buffer->data);
        }
        free(buffer);
    }
}
