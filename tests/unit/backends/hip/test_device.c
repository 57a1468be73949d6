/* The device half on the fake runtime of HIP: what reaches it, what it refuses, and that a thread's
 * current device is what it was. It says nothing about hardware. */
#include <dlfcn.h>
#include <pthread.h>

#include <kiln/unstable/compile.h>
#include <kiln/unstable/native.h>

#include "apis/hip/backend/instance.h"

#define WORLD_BACKEND "hip"
#include "unit/backends/cuda/world.h"

static const char text[] = "extern \"C\" __global__ void one(int *x)\n"
                           "{\n"
                           "    x[(blockIdx.x * blockDim.x + threadIdx.x) % 64] = 1;\n"
                           "}\n"
                           "extern \"C\" __global__ void add(int *x, int a, double b)\n"
                           "{\n"
                           "    x[threadIdx.x] += a + (int)b;\n"
                           "}\n";

/* The runtime as another library in this process has it. */
static struct {
    void *library;
    int (*hipGetDevice)(int *device);
    int (*hipSetDevice)(int device);
    int (*hipMalloc)(uint64_t *pointer, size_t size);
    int (*hipFree)(uint64_t pointer);
} neighbour;

static void bind(const char *name, void *function)
{
    void *found = dlsym(neighbour.library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof(found));
}

static void open_neighbour(void)
{
    char path[600];
    const char *rocm = getenv("ROCM_PATH");
    assert_non_null(rocm);
    (void)snprintf(path, sizeof(path), "%s/lib/libamdhip64.so.7", rocm);
    neighbour.library = dlopen(path, RTLD_NOW);
    if (neighbour.library == NULL) {
        (void)snprintf(path, sizeof(path), "%s/lib/libamdhip64.so.5", rocm);
        neighbour.library = dlopen(path, RTLD_NOW);
    }
    assert_non_null(neighbour.library);
    bind("hipGetDevice", &neighbour.hipGetDevice);
    bind("hipSetDevice", &neighbour.hipSetDevice);
    bind("hipMalloc", &neighbour.hipMalloc);
    bind("hipFree", &neighbour.hipFree);
}

static int current_device(void)
{
    int device = -1;
    assert_int_equal(neighbour.hipGetDevice(&device), 0);
    return device;
}

typedef world_run run;

static const int seven = 7;
static const double half = 0.5;

static kiln_source make_source(void)
{
    kiln_source source = world_source(text, NULL, 0);
    source.language = KILN_LANG_HIP;
    return source;
}

/* The tests have one cache: what the first has compiled, the others load. */
static void start(run *r, const char *dir)
{
    const kiln_source source = make_source();
    open_neighbour();
    world_start(r, dir, &source);
    r->args[1] = (kiln_arg){.kind = KILN_ARG_VALUE, .value = &seven, .size = sizeof(seven)};
    r->args[2] = (kiln_arg){.kind = KILN_ARG_VALUE, .value = &half, .size = sizeof(half)};
}

static void end(run *r)
{
    world_end(r);
    (void)dlclose(neighbour.library);
}

/* hipModuleLaunchKernel reads as many pointers as the kernel has parameters, and so many bytes at
 * each: what the code object says is compared before. */
static void arguments_are_compared_with_the_code_object(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    int values[64];
    const int zero = 0;
    run r;
    start(&r, (const char *)*state);
    ok(kiln_queue_fill(r.w.queue, r.buffer, 0, &zero, sizeof(zero), sizeof(values), &diag), &diag);
    r.launch.arg_count = 3;
    r.launch.global[0] = 8;
    world_launch(&r, "add");
    world_read(&r, values);
    assert_int_equal(values[7], 7);
    assert_int_equal(values[8], 0);
    world_refuse(&r, "one", KILN_E_INVALID, "takes 1 arguments, 3 were given");
    r.launch.arg_count = 2;
    world_refuse(&r, "add", KILN_E_INVALID, "takes 3 arguments, 2 were given");
    r.launch.arg_count = 3;
    r.args[2].size = sizeof(float);
    world_refuse(&r, "add", KILN_E_INVALID, "argument 2 has 4 bytes, the kernel takes 8");
    world_refuse(&r, "subtract", KILN_E_INVALID, "has no \"subtract\"");
    end(&r);
}

/* A dimension has less than 2^32 work-items; a group 1,024. */
static void shapes_are_HIPs(void **state)
{
    static const uint64_t good[][3] = {{1, 131072, 1}, {1, 1, 131072}, {3, 5, 7}, {1024, 4, 1}};
    run r;
    start(&r, (const char *)*state);
    world_launch_grids(&r, good, sizeof(good) / sizeof(good[0]));
    r.launch.dims = 1;
    r.launch.local[0] = 256;
    r.launch.global[0] = UINT64_C(1) << 32;
    world_refuse(&r, "one", KILN_E_INVALID, "cannot be launched");
    r.launch.local[0] = r.launch.global[0] = 2048;
    world_refuse(&r, "one", KILN_E_INVALID, "local size exceeds");
    r.launch.local[0] = 8;
    r.launch.global[0] = 64;
    r.launch.offset[0] = 8;
    world_refuse(&r, "one", KILN_E_UNSUPPORTED, "HIP has no global offset");
    end(&r);
}

/* HIP fills bytes, halves and words; longer patterns are copied behind themselves. */
static void patterns_of_every_length_are_filled(void **state)
{
    unsigned char pattern[16];
    unsigned char bytes[64 * sizeof(int)];
    kiln_diag diag = KILN_DIAG_INIT;
    run r;
    start(&r, (const char *)*state);
    for (size_t i = 0; i < sizeof(pattern); i++) {
        pattern[i] = (unsigned char)(i + 1);
    }
    for (size_t size = 1; size <= sizeof(pattern); size *= 2) {
        for (size_t count = 1; count <= 7; count += 2) {
            static const int nothing = 0;
            ok(kiln_queue_fill(r.w.queue, r.buffer, 0, &nothing, 4, sizeof(bytes), &diag), &diag);
            ok(kiln_queue_fill(r.w.queue, r.buffer, 16, pattern, size, count * size, &diag), &diag);
            ok(kiln_queue_read(r.w.queue, r.buffer, 0, bytes, sizeof(bytes), &diag), &diag);
            for (size_t i = 0; i < count * size; i++) {
                assert_int_equal(bytes[16 + i], pattern[i % size]);
            }
            assert_int_equal(bytes[15], 0);
            assert_int_equal(bytes[16 + count * size], 0);
        }
    }
    end(&r);
}

static void the_threads_device_is_what_it_was(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    run r;
    start(&r, (const char *)*state);
    for (int device = 1; device >= 0; device--) {
        assert_int_equal(neighbour.hipSetDevice(device), 0);
        world_launch(&r, "one");
        assert_int_equal(current_device(), device);
        world_refuse(&r, "subtract", KILN_E_INVALID, "has no \"subtract\"");
        assert_int_equal(current_device(), device);
        ok(kiln_queue_finish(r.w.queue, &diag), &diag);
        assert_int_equal(current_device(), device);
    }
    end(&r);
}

static void memory_of_a_neighbour_is_taken(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    uint64_t mine = 0;
    uint64_t others = 0;
    int back[16];
    kiln_buffer *buffer = NULL;
    run r;
    start(&r, (const char *)*state);
    assert_int_equal(neighbour.hipMalloc(&mine, sizeof(back)), 0);
    assert_int_equal(neighbour.hipSetDevice(1), 0);
    assert_int_equal(neighbour.hipMalloc(&others, sizeof(back)), 0);
    ok(kiln_buffer_wrap(r.w.device, mine, sizeof(back), &buffer, &diag), &diag);
    ok(kiln_queue_fill(r.w.queue, buffer, 0, &seven, sizeof(seven), sizeof(back), &diag), &diag);
    ok(kiln_queue_read(r.w.queue, buffer, 0, back, sizeof(back), &diag), &diag);
    assert_int_equal(back[15], 7);
    kiln_buffer_destroy(buffer);
    assert_int_equal(kiln_buffer_wrap(r.w.device, others, sizeof(back), &buffer, &diag),
                     KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "lies on device 1, not on 0"));
    assert_int_equal(
        kiln_buffer_wrap(r.w.device, (uint64_t)(uintptr_t)&back, sizeof(back), &buffer, &diag),
        KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "knows no memory"));
    kiln_diag_clear(&diag);
    assert_int_equal(neighbour.hipFree(mine), 0);
    assert_int_equal(neighbour.hipFree(others), 0);
    assert_int_equal(neighbour.hipSetDevice(0), 0);
    end(&r);
}

/* What a kernel did comes out at the next wait; from then on the context is lost. */
static void a_kernels_fault_loses_the_device(void **state)
{
    static const struct {
        const char *result;
        kiln_status status;
    } rows[] = {{"700", KILN_E_DEVICE_LOST}, {"719", KILN_E_DEVICE_LOST},
                {"710", KILN_E_DEVICE_LOST}, {"720", KILN_E_INVALID},
                {"2", KILN_E_NOMEM},         {"801", KILN_E_UNSUPPORTED},
                {"1234", KILN_E_INTERNAL}};
    kiln_diag diag = KILN_DIAG_INIT;
    run r;
    start(&r, (const char *)*state);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(setenv("FAKECUDA_SYNCHRONIZE", rows[i].result, 1), 0);
        assert_int_equal(kiln_queue_finish(r.w.queue, &diag), rows[i].status);
        assert_int_equal(diag.vendor_code, atoi(rows[i].result));
        assert_non_null(strstr(diag.what, "hipStreamSynchronize"));
    }
    (void)unsetenv("FAKECUDA_SYNCHRONIZE");
    kiln_diag_clear(&diag);
    end(&r);
}

/* Only later releases have the call; the one of 5.2's shape says so. */
static void cooperative_launches_are_HIPs_or_refused(void **state)
{
    char *log = kt_at((const char *)*state, "hip.log");
    run r;
    assert_int_equal(setenv("FAKEHIP_LOG", log, 1), 0);
    start(&r, (const char *)*state);
    r.launch.cooperative = true;
    if (dlsym(neighbour.library, "hipModuleLaunchCooperativeKernel") != NULL) {
        world_launch(&r, "one");
        char *said = kt_file_read(log, NULL);
        assert_non_null(said);
        assert_non_null(strstr(said, "cooperative\n"));
        free(said);
    } else {
        world_refuse(&r, "one", KILN_E_UNSUPPORTED, "no cooperative launches");
    }
    r.launch.cooperative = false;
    r.launch.cluster[0] = 2;
    world_refuse(&r, "one", KILN_E_UNSUPPORTED, "cluster");
    (void)unsetenv("FAKEHIP_LOG");
    end(&r);
}

/* What a fresh process finds is loaded, and a driver that refuses it gets another. */
static void a_refused_code_object_is_made_again(void **state)
{
    kiln_program *program = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    run r;
    start(&r, (const char *)*state);
    end(&r);
    assert_int_equal(setenv("FAKECUDA_REFUSE", "1", 1), 0);
    char *root = kt_at((const char *)*state, "cache");
    world_open(&r.w, root);
    const kiln_source source = make_source();
    ok(kiln_program_build(r.w.device, &source, 1, NULL, &program, &diag), &diag);
    assert_int_equal(kiln_program_get_info(program)->compiles, 1);
    kiln_program_release(program);
    world_close(&r.w);
    (void)unsetenv("FAKECUDA_REFUSE");
}

/* kiln warm --target with the settings that the device has fills the device's cache. */
static void a_named_target_is_the_devices(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    kiln_program *program = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    run r;
    char *root = kt_at((const char *)*state, "named");
    world_open(&r.w, root);
    const kiln_source source = make_source();
    assert_string_equal(kiln_device_get_info(r.w.device)->target,
                        "hip-gfx90a-sramecc_on-xnack_off");
    ok(kiln_compile(r.w.runtime, "hip:gfx90a:xnack-:sramecc+", &source, &blob, &origin, &diag),
       &diag);
    assert_int_equal(origin, KILN_ORIGIN_COMPILED);
    kiln_blob_release(blob);
    ok(kiln_program_build(r.w.device, &source, 1, NULL, &program, &diag), &diag);
    assert_int_equal(kiln_program_get_info(program)->compiles, 0);
    kiln_program_release(program);
    world_close(&r.w);
}

static kiln_runtime *runtime_of_threads;

static void *compile_apart(void *define)
{
    kiln_source source = make_source();
    kiln_blob *blob = NULL;
    source.defines = (const kiln_define *)define;
    source.define_count = 1;
    const kiln_status status =
        kiln_compile(runtime_of_threads, "hip:gfx90a", &source, &blob, NULL, NULL);
    kiln_blob_release(blob);
    return status == KILN_OK ? define : NULL;
}

/* Up to ROCm 6 hipRTC may crash where two threads compile; later ones are not held up. */
static void threads_compile_at_once_where_they_may(void **state)
{
    static kiln_define defines[] = {{"THREAD", "1"}, {"THREAD", "2"}};
    world w;
    pthread_t threads[2];
    char *root = kt_at((const char *)*state, "threads");
    open_neighbour();
    const bool late = dlsym(neighbour.library, "hipModuleLaunchCooperativeKernel") != NULL;
    const char *variable = late ? "FAKEHIPRTC_MEETS" : "FAKEHIPRTC_TURNS";
    assert_int_equal(setenv(variable, "1", 1), 0);
    world_open(&w, root);
    runtime_of_threads = w.runtime;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, compile_apart, &defines[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        void *made = NULL;
        assert_int_equal(pthread_join(threads[i], &made), 0);
        assert_ptr_equal(made, &defines[i]);
    }
    (void)unsetenv(variable);
    world_close(&w);
    (void)dlclose(neighbour.library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_compared_with_the_code_object),
        cmocka_unit_test(shapes_are_HIPs),
        cmocka_unit_test(patterns_of_every_length_are_filled),
        cmocka_unit_test(the_threads_device_is_what_it_was),
        cmocka_unit_test(memory_of_a_neighbour_is_taken),
        cmocka_unit_test(a_kernels_fault_loses_the_device),
        cmocka_unit_test(cooperative_launches_are_HIPs_or_refused),
        cmocka_unit_test(a_refused_code_object_is_made_again),
        cmocka_unit_test(a_named_target_is_the_devices),
        cmocka_unit_test(threads_compile_at_once_where_they_may),
    };
    return cmocka_run_group_tests(tests, kt_tmpdir_setup, kt_tmpdir_teardown);
}
