/* Launches with attributes, on the fake driver: what reaches cuLaunchKernelEx, and who refuses. */
#include "unit/backends/cuda/world.h"

#include <kiln/unstable/memory.h>

static const char text[] = "extern \"C\" __global__ void one(int *x)\n"
                           "{\n"
                           "    x[(blockIdx.x * blockDim.x + threadIdx.x) % 64] = 1;\n"
                           "}\n";

typedef world_run run;

static void start(run *r, const char *dir)
{
    const kiln_source source = world_source(text, NULL, 0);
    world_start(r, dir, &source);
}

static void cooperation_and_clusters_reach_the_driver(void **state)
{
    int values[64];
    char *log = kt_at((const char *)*state, "driver.log");
    run r;
    assert_int_equal(setenv("FAKECUDA_LOG", log, 1), 0);
    start(&r, (const char *)*state);
    r.launch.cooperative = true;
    r.launch.cluster[0] = 2;
    world_launch(&r, "one");
    world_read(&r, values);
    assert_int_equal(values[63], 1);
    char *told = kt_file_read(log, NULL);
    assert_non_null(told);
    assert_non_null(strstr(told, "cooperative 1\n"));
    assert_non_null(strstr(told, "cluster 2 1 1\n"));
    free(told);
    world_end(&r);
    (void)unsetenv("FAKECUDA_LOG");
}

/* What a launch gets without asking is 48 KiB, static and dynamic together. */
static void dynamic_shared_memory_is_asked_for_beside_static(void **state)
{
    static const char fixed[] = "40960";
    run r;
    assert_int_equal(setenv("FAKECUDA_STATIC_SHARED", fixed, 1), 0);
    start(&r, (const char *)*state);
    for (uint32_t bytes = 4096; bytes <= 65536; bytes *= 2) {
        r.launch.shared_bytes = bytes;
        world_launch(&r, "one");
    }
    r.launch.shared_bytes = 16384; /* less than was asked for: still allowed */
    world_launch(&r, "one");
    r.launch.shared_bytes = 227 << 10;
    world_refuse(&r, "one", KILN_E_INVALID, "");
    world_end(&r);
    (void)unsetenv("FAKECUDA_STATIC_SHARED");
}

static void a_binary_that_was_cut_off_is_refused(void **state)
{
    /* An ELF header that names sections past the end, and a fat binary of 1 MiB; neither is.
     */
    unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    unsigned char fat[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0, 0, 16};
    const void *const images[] = {elf, fat};
    const size_t sizes[] = {sizeof(elf), sizeof(fat)};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    run r;
    elf[41] = 16; /* e_shoff 4096 */
    elf[60] = 3;  /* e_shnum */
    start(&r, (const char *)*state);
    for (size_t i = 0; i < 2; i++) {
        kiln_source source = KILN_SOURCE_INIT;
        source.language = i == 0 ? KILN_LANG_CUBIN : KILN_LANG_FATBIN;
        source.name = "cut.cubin";
        source.text = images[i];
        source.length = sizes[i];
        assert_int_equal(kiln_program_build(r.w.device, &source, 1, NULL, &program, &diag),
                         KILN_E_INVALID);
        assert_non_null(strstr(diag.why, "truncated"));
    }
    kiln_diag_clear(&diag);
    world_end(&r);
}

/* The backend keeps no copy of a cached binary: the program holds what the cache has let go. */
static void a_cached_binary_stays_while_its_program_does(void **state)
{
    int values[64];
    run r;
    start(&r, (const char *)*state);
    const kiln_source source = world_source(text, NULL, 0);
    kiln_program_release(r.program);
    kiln_cache_trim(r.w.cache, 0);
    r.program = world_build(&r.w, &source);
    assert_int_equal(kiln_program_get_info(r.program)->origin, KILN_ORIGIN_DISK);
    kiln_cache_trim(r.w.cache, 0);
    world_launch(&r, "one");
    world_read(&r, values);
    assert_int_equal(values[63], 1);
    world_end(&r);
}

/* A grid has 65,535 blocks along y and z, and no more. */
static void a_long_second_dimension_is_launched(void **state)
{
    static const uint64_t shapes[][3] = {{1, 131072, 1},  {1, 1, 131072}, {2, 2, 131072},
                                         {512, 65536, 1}, {3, 5, 7},      {1024, 4, 1}};
    run r;
    start(&r, (const char *)*state);
    world_launch_grids(&r, shapes, sizeof(shapes) / sizeof(shapes[0]));
    world_end(&r);
}

/* What a kernel did comes out at the next wait; from then on the context is lost, whichever of its
 * faults it was. */
static void a_kernels_fault_loses_the_device(void **state)
{
    static const char *const faults[] = {"214", "220", "700", "702", "709", "710",
                                         "714", "715", "716", "717", "718", "719"};
    kiln_diag diag = KILN_DIAG_INIT;
    run r;
    start(&r, (const char *)*state);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        assert_int_equal(setenv("FAKECUDA_SYNCHRONIZE", faults[i], 1), 0);
        assert_int_equal(kiln_queue_finish(r.w.queue, &diag), KILN_E_DEVICE_LOST);
        assert_int_equal(diag.vendor_code, atoi(faults[i]));
    }
    assert_int_equal(setenv("FAKECUDA_SYNCHRONIZE", "720", 1), 0); /* the grid's fault, not its */
    assert_int_equal(kiln_queue_finish(r.w.queue, &diag), KILN_E_INVALID);
    (void)unsetenv("FAKECUDA_SYNCHRONIZE");
    kiln_diag_clear(&diag);
    world_end(&r);
}

/* A caller built against a struct that has more to say. */
static void a_launch_of_a_newer_program_is_taken_while_it_asks_for_nothing_new(void **state)
{
    struct {
        kiln_launch launch;
        uint64_t wish;
    } newer;
    kiln_diag diag = KILN_DIAG_INIT;
    run r;
    start(&r, (const char *)*state);
    newer.launch = r.launch;
    newer.launch.struct_size = sizeof(newer);
    newer.wish = 0;
    ok(kiln_queue_launch(r.w.queue, r.program, "one", &newer.launch, NULL, &diag), &diag);
    newer.wish = 1;
    assert_int_equal(kiln_queue_launch(r.w.queue, r.program, "one", &newer.launch, NULL, &diag),
                     KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "newer than this library"));
    r.launch.struct_size = sizeof(uint32_t);
    world_refuse(&r, "one", KILN_E_INVALID, "");
    kiln_diag_clear(&diag);
    world_end(&r);
}

static void other_backends_refuse(void **state)
{
    static const char c_text[] =
        "#include <kiln_kernel.h>\n"
        "KILN_KERNEL(one, KILN_OUT(int, x)) { KILN_ITEMS_X(i) { x[i] = 1; } }\n";
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    kiln_queue *queue = NULL;
    kiln_program *program = NULL;
    kiln_buffer *buffer = NULL;
    char *root = kt_at((const char *)*state, "cpu");
    assert_int_equal(setenv("KILN_CACHE_DIR", root, 1), 0);
    ok(kiln_runtime_options_init(&options, &diag), &diag);
    options.backend = "cpu";
    options.strict = true;
    ok(kiln_runtime_create(&options, &runtime, &diag), &diag);
    kiln_device *device = kiln_runtime_device(runtime, 0);
    kiln_source source = world_source(c_text, NULL, 0);
    source.language = KILN_LANG_C;
    source.name = "one.c";
    ok(kiln_program_build(device, &source, 1, NULL, &program, &diag), &diag);
    ok(kiln_queue_create(device, &queue, &diag), &diag);
    ok(kiln_buffer_create(device, 32, &buffer, &diag), &diag);
    const kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = buffer};
    kiln_launch launch = {.struct_size = sizeof(launch),
                          .dims = 1,
                          .global = {8},
                          .args = &arg,
                          .arg_count = 1,
                          .cooperative = true};
    assert_int_equal(kiln_queue_launch(queue, program, "one", &launch, NULL, &diag),
                     KILN_E_UNSUPPORTED);
    assert_non_null(strstr(diag.why, "cooperative"));
    launch.cooperative = false;
    launch.cluster[1] = 2;
    assert_int_equal(kiln_queue_launch(queue, program, "one", &launch, NULL, &diag),
                     KILN_E_UNSUPPORTED);
    kiln_diag_clear(&diag);
    kiln_buffer_destroy(buffer);
    kiln_program_release(program);
    kiln_queue_destroy(queue);
    kiln_runtime_destroy(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(cooperation_and_clusters_reach_the_driver),
        WORLD_TEST(dynamic_shared_memory_is_asked_for_beside_static),
        WORLD_TEST(a_cached_binary_stays_while_its_program_does),
        WORLD_TEST(a_binary_that_was_cut_off_is_refused),
        WORLD_TEST(a_long_second_dimension_is_launched),
        WORLD_TEST(a_kernels_fault_loses_the_device),
        WORLD_TEST(a_launch_of_a_newer_program_is_taken_while_it_asks_for_nothing_new),
        WORLD_TEST(other_backends_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
