/* Memory and streams that another library of the same driver made, on the fake driver: what reaches
 * it, and in which order. */
#include <dlfcn.h>

#include <kiln/unstable/native.h>

#include "apis/cuda/backend/types.h"
#include "unit/backends/cuda/world.h"

/* The driver as another library in this process has it. */
typedef struct neighbour {
    void *library;
    CUresult (*retain)(CUcontext *context, CUdevice device);
    CUresult (*push)(CUcontext context);
    CUresult (*pop)(CUcontext *context);
    CUresult (*allocate)(CUdeviceptr *pointer, size_t size);
    CUresult (*release)(CUdeviceptr pointer);
} neighbour;

static void bind(neighbour *n, const char *name, void *function)
{
    void *found = dlsym(n->library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof(found));
}

static void open_neighbour(neighbour *n)
{
    n->library = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(n->library);
    bind(n, "cuDevicePrimaryCtxRetain", &n->retain);
    bind(n, "cuCtxPushCurrent_v2", &n->push);
    bind(n, "cuCtxPopCurrent_v2", &n->pop);
    bind(n, "cuMemAlloc_v2", &n->allocate);
    bind(n, "cuMemFree_v2", &n->release);
}

static CUdeviceptr allocate_on(const neighbour *n, CUdevice device, size_t size)
{
    CUcontext context = NULL;
    CUdeviceptr pointer = 0;
    assert_int_equal(n->retain(&context, device), CUDA_SUCCESS);
    assert_int_equal(n->push(context), CUDA_SUCCESS);
    assert_int_equal(n->allocate(&pointer, size), CUDA_SUCCESS);
    assert_int_equal(n->pop(&context), CUDA_SUCCESS);
    return pointer;
}

static void release_all(const neighbour *n, const CUdeviceptr *pointers, size_t count)
{
    CUcontext context = NULL;
    assert_int_equal(n->retain(&context, 0), CUDA_SUCCESS);
    assert_int_equal(n->push(context), CUDA_SUCCESS);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(n->release(pointers[i]), CUDA_SUCCESS);
    }
    assert_int_equal(n->pop(&context), CUDA_SUCCESS);
}

static void memory_of_a_neighbour_is_taken(void **state)
{
    neighbour n;
    world w;
    int back[16];
    const int seven = 7;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_buffer *buffer = NULL;
    char *root = kt_at((const char *)*state, "cache");
    world_open(&w, root);
    open_neighbour(&n);
    const CUdeviceptr mine = allocate_on(&n, 0, sizeof(back));
    const CUdeviceptr others = allocate_on(&n, 1, sizeof(back));
    ok(kiln_buffer_wrap(w.device, mine, sizeof(back), &buffer, &diag), &diag);
    ok(kiln_queue_fill(w.queue, buffer, 0, &seven, sizeof(seven), sizeof(back), &diag), &diag);
    ok(kiln_queue_read(w.queue, buffer, 0, back, sizeof(back), &diag), &diag);
    assert_int_equal(back[15], 7);
    kiln_buffer_destroy(buffer);
    /* Inside an allocation is in it, too. */
    ok(kiln_buffer_wrap(w.device, mine + 8, sizeof(int), &buffer, &diag), &diag);
    kiln_buffer_destroy(buffer);

    assert_int_equal(kiln_buffer_wrap(w.device, others, sizeof(back), &buffer, &diag),
                     KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "lies on device 1, not on 0"));
    assert_int_equal(
        kiln_buffer_wrap(w.device, (uint64_t)(uintptr_t)&seven, sizeof(seven), &buffer, &diag),
        KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "knows no memory"));
    assert_null(buffer);
    kiln_diag_clear(&diag);
    release_all(&n, (const CUdeviceptr[]){mine, others}, 2);
    world_close(&w);
    (void)dlclose(n.library);
}

/* The first word after `what` in the last line of the log that begins so. */
static unsigned long last_of(const char *log, const char *what, int word)
{
    unsigned long words[2] = {0};
    const size_t length = strlen(what);
    for (const char *line = log; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, what, length) == 0) {
            char *end = NULL;
            words[0] = strtoul(line + length, &end, 16);
            words[1] = strtoul(end, NULL, 16);
        }
    }
    return words[word];
}

static void streams_are_ordered_by_events(void **state)
{
    world w;
    uint64_t own = 0;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_queue *legacy = NULL;
    char *root = kt_at((const char *)*state, "cache");
    char *path = kt_at((const char *)*state, "order.log");
    assert_int_equal(setenv("FAKECUDA_ORDER", path, 1), 0);
    world_open(&w, root);
    ok(kiln_queue_native(w.queue, &own, &diag), &diag);
    ok(kiln_queue_wrap(w.device, 1, &legacy, &diag), &diag);
    ok(kiln_queue_wait_queue(legacy, w.queue, &diag), &diag);
    char *log = kt_file_read(path, NULL);
    assert_non_null(log);
    assert_true(last_of(log, "record ", 1) == own);
    assert_true(last_of(log, "wait ", 0) == 1);
    assert_true(last_of(log, "record ", 0) == last_of(log, "wait ", 1));
    free(log);
    ok(kiln_queue_wait_queue(w.queue, legacy, &diag), &diag);
    log = kt_file_read(path, NULL);
    assert_non_null(log);
    assert_true(last_of(log, "record ", 1) == 1);
    assert_true(last_of(log, "wait ", 0) == own);
    free(log);
    kiln_queue_destroy(legacy); /* a stream that the driver never made is not destroyed */
    world_close(&w);
    (void)unsetenv("FAKECUDA_ORDER");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(memory_of_a_neighbour_is_taken),
        WORLD_TEST(streams_are_ordered_by_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
