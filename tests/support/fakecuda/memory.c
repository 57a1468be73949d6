/* The fake libcuda's memory: the host's, and what its owners ask about it. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/fakecuda/fakecuda.h"

enum { ALLOCATIONS = 4096 };

/* What is allocated, for those who ask about a pointer; more than there is room for is not known.
 */
static struct {
    pthread_mutex_t lock;
    CUdeviceptr at[ALLOCATIONS];
    size_t size[ALLOCATIONS];
    int device[ALLOCATIONS];
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void remember(CUdeviceptr from, CUdeviceptr to, size_t size)
{
    (void)pthread_mutex_lock(&memory.lock);
    for (int i = 0; i < ALLOCATIONS; i++) {
        if (memory.at[i] == from) {
            memory.at[i] = to;
            memory.size[i] = size;
            memory.device[i] = fakecuda_device();
            break;
        }
    }
    (void)pthread_mutex_unlock(&memory.lock);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
    IN_CONTEXT();
    void *made = size <= (size_t)1 << 30 ? malloc(size) : NULL;
    *pointer = (CUdeviceptr)(uintptr_t)made;
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    remember(0, *pointer, size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    IN_CONTEXT();
    if (pointer != 0) {
        remember(pointer, 0, 0);
    }
    free((void *)(uintptr_t)pointer);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer)
{
    int device = -1;
    (void)pthread_mutex_lock(&memory.lock);
    for (int i = 0; i < ALLOCATIONS; i++) {
        if (memory.at[i] != 0 && pointer >= memory.at[i] &&
            pointer - memory.at[i] < memory.size[i]) {
            device = memory.device[i];
        }
    }
    (void)pthread_mutex_unlock(&memory.lock);
    if (device < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED) {
        *(bool *)value = false;
    } else {
        *(int *)value =
            attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? device : CU_MEMORYTYPE_DEVICE;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    (void)stream;
    IN_CONTEXT();
    if (size > 0) {
        memcpy((void *)(uintptr_t)to, from, size);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    (void)stream;
    IN_CONTEXT();
    if (size > 0) {
        memcpy(to, (void *)(uintptr_t)from, size);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    (void)stream;
    IN_CONTEXT();
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    (void)stream;
    IN_CONTEXT();
    memset((void *)(uintptr_t)to, value, count);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                                 CUstream stream)
{
    (void)stream;
    IN_CONTEXT();
    for (size_t i = 0; i < count; i++) {
        memcpy((char *)(uintptr_t)to + 2 * i, &value, 2);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                   size_t height, CUstream stream)
{
    (void)stream;
    IN_CONTEXT();
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            memcpy((char *)(uintptr_t)to + y * pitch + 4 * x, &value, 4);
        }
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    return cuMemsetD2D32Async(to, 4 * count, value, count, 1, stream);
}
