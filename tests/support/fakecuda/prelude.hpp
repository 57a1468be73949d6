/* What fakenvrtc.c puts in front of a kernel's text: enough of CUDA C++ to run a grid on the host,
 * work-item by work-item, or with a thread each where the text has a barrier. */
#pragma once
/* C's own headers: those of C++ take two thirds of a compile, and the tests make some thousand. */
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

template <size_t...> struct kt_numbers {};
template <size_t N, size_t... I> struct kt_count : kt_count<N - 1, N - 1, I...> {};
template <size_t... I> struct kt_count<0, I...> {
    typedef kt_numbers<I...> type;
};
template <class A> constexpr bool kt_is_pointer = false;
template <class A> constexpr bool kt_is_pointer<A *> = true;

struct kt_index {
    unsigned x, y, z;
};
static thread_local kt_index threadIdx, blockIdx;
static kt_index blockDim, gridDim;
static char *kt_shared;
static pthread_barrier_t kt_barrier;

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __syncthreads() pthread_barrier_wait(&kt_barrier)

static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

template <class... A, size_t... I>
static void kt_apply(void (*f)(A...), void **a, kt_numbers<I...>)
{
    f(*static_cast<A *>(a[I])...);
}
template <class... A> static void kt_call(void (*f)(A...), void **a)
{
    kt_apply(f, a, typename kt_count<sizeof...(A)>::type{});
}
template <class... A>
static int kt_param(void (*)(A...), size_t index, size_t *offset, size_t *size)
{
    const size_t sizes[] = {sizeof(A)..., 0};
    const bool pointers[] = {kt_is_pointer<A>..., false};
    if (index >= sizeof...(A)) {
        return 0;
    }
    *offset = 8 * index;
    *size = sizes[index];
    return pointers[index] ? 2 : 1;
}
#define KT_KERNEL(symbol, ...)                                                                     \
    extern "C" void kt_call_##symbol(void **a)                                                     \
    {                                                                                              \
        kt_call(__VA_ARGS__, a);                                                                   \
    }                                                                                              \
    extern "C" int kt_param_##symbol(size_t i, size_t *offset, size_t *size)        \
    {                                                                                              \
        return kt_param(__VA_ARGS__, i, offset, size);                                             \
    }

typedef void kt_caller(void **args);
struct kt_item {
    kt_caller *call;
    void **args;
    kt_index thread, block;
};
static void *kt_item_run(void *opaque)
{
    const kt_item *item = static_cast<kt_item *>(opaque);
    threadIdx = item->thread;
    blockIdx = item->block;
    item->call(item->args);
    return nullptr;
}

static void kt_block(kt_caller *call, void **args, kt_index block, bool barrier)
{
    const unsigned count = blockDim.x * blockDim.y * blockDim.z;
    kt_item *items = static_cast<kt_item *>(calloc(count, sizeof(kt_item)));
    pthread_t *threads = static_cast<pthread_t *>(calloc(count, sizeof(pthread_t)));
    if (barrier) {
        pthread_barrier_init(&kt_barrier, nullptr, count);
    }
    for (unsigned i = 0; i < count; i++) {
        items[i] = {call, args,
                    {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)},
                    block};
        if (barrier) {
            pthread_create(&threads[i], nullptr, kt_item_run, &items[i]);
        } else {
            kt_item_run(&items[i]);
        }
    }
    for (unsigned i = 0; barrier && i < count; i++) {
        pthread_join(threads[i], nullptr);
    }
    if (barrier) {
        pthread_barrier_destroy(&kt_barrier);
    }
    free(threads);
    free(items);
}

extern "C" void kt_run(kt_caller *call, void **args, const unsigned *grid, const unsigned *block,
                       unsigned shared)
{
    blockDim = {block[0], block[1], block[2]};
    gridDim = {grid[0], grid[1], grid[2]};
    kt_shared = static_cast<char *>(calloc(1, shared + 1));
    for (unsigned z = 0; z < grid[2]; z++) {
        for (unsigned y = 0; y < grid[1]; y++) {
            for (unsigned x = 0; x < grid[0]; x++) {
                kt_block(call, args, {x, y, z}, KT_BARRIER && shared > 0);
            }
        }
    }
    free(kt_shared);
}
