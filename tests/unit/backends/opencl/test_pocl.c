/* The OpenCL backend on a real driver: PoCL. Compiles once, loads from the binary, launches, and
 * captures again what the launches added. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apis/opencl/backend/opencl.h"
#include "apis/opencl/backend/program.h"
#include "support/cmocka.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/thread.h"
#include "unit/backends/opencl/rig.h"

#define ITEMS 4096u

static rig shared;

static const kiln_device_ops *device(void)
{
    return kn_backend_opencl.device;
}

static void lists_a_software_device_with_its_limits(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_device_info info = {0};
    rig_ok(device()->device_info(shared.instance, shared.target.device_index, &info, &diag), &diag);
    assert_int_equal(shared.report.outcome, KILN_PROBE_READY);
    assert_int_equal(info.device_class, KILN_DEVICE_SOFTWARE);
    assert_string_equal(info.backend, "opencl");
    assert_true(info.max_group_size >= 64);
    assert_true(info.compute_units >= 1);
    assert_true(info.memory_bytes > 0 && info.max_buffer_bytes > 0);
    assert_true(strncmp(info.target, "opencl-pocl-", 12) == 0);
    assert_string_equal(info.target, shared.target.name);
    assert_int_equal(strspn(info.target, "abcdefghijklmnopqrstuvwxyz0123456789-"),
                     strlen(info.target));
    assert_int_equal(device()->device_info(shared.instance, 1000, &info, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
}

static void K7_K8_identity_names_the_device_and_the_libraries_in_memory(void **state)
{
    char *first = rig_identity(&shared);
    char *second = rig_identity(&shared);
    assert_string_equal(first, second);
    assert_non_null(strstr(first, "opencl.platform=Portable Computing Language\n"));
    assert_non_null(strstr(first, "opencl.device="));
    assert_non_null(strstr(first, "opencl.driver="));
    assert_non_null(strstr(first, "opencl.address_bits=64\n"));
    /* The driver, not the loader, and the compiler that the driver needs, each with a build id. */
    assert_non_null(strstr(first, "opencl.module=libpocl.so"));
    assert_non_null(strstr(first, "opencl.module=libLLVM"));
    assert_non_null(strstr(first, "POCL_WORK_GROUP_METHOD"));
    assert_null(strstr(first, "POCL_CACHE_DIR")); /* where a cache lies changes no code */
    for (const char *at = first; (at = strstr(at, "opencl.module=")) != NULL; at++) {
        assert_int_not_equal(at[14], '/'); /* names, never paths */
    }
    free(first);
    free(second);
}

static void compiles_launches_and_loads_from_the_binary(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *cold = NULL, *warm = NULL;
    kiln_source source = rig_source(rig_two_kernels);
    rig_ok(rig_compile(&shared, &source, &artifact, &cold, &diag), &diag);
    assert_non_null(cold);
    assert_true(artifact.base.size > 1000);
    rig_ok(rig_load(&shared, &source, &artifact, &warm, &diag), &diag);
    void *buffer = rig_buffer(&shared, ITEMS);
    (void)rig_launch(&shared, cold, "add", buffer, 3.0F, ITEMS, 64);
    (void)rig_launch(&shared, warm, "scale", buffer, 2.0F, ITEMS, 0);
    assert_true(rig_item(&shared, buffer, 0) == 6.0F &&
                rig_item(&shared, buffer, ITEMS - 1) == 6.0F);
    device()->buffer_destroy(shared.device, buffer);
    device()->program_unload(shared.device, warm);
    device()->program_unload(shared.device, cold);
    kn_artifact_deinit(&artifact);
}

static void D1_damaged_binaries_are_refused_and_never_reach_the_driver(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact, damaged;
    void *program = NULL;
    kiln_source source = rig_source(rig_two_kernels);
    rig_ok(rig_compile(&shared, &source, &artifact, NULL, &diag), &diag);
    const size_t cuts[] = {0, 1, 20, 77, 200, artifact.base.size / 2, artifact.base.size - 1};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        kn_artifact_init(&damaged);
        kn_artifact_borrow(&damaged, KILN_LANG_NONE, kn_span_of(artifact.base.data, cuts[i]), NULL,
                           artifact.facts);
        assert_int_equal(rig_load(&shared, &source, &damaged, &program, &diag), KILN_E_REJECTED);
        assert_null(program);
        kiln_diag_clear(&diag);
        kn_artifact_deinit(&damaged);
    }
    kn_artifact_deinit(&artifact);
}

static void D4_a_binary_for_another_device_is_rejected(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact, other;
    void *program = NULL;
    kiln_source source = rig_source(rig_two_kernels);
    rig_ok(rig_compile(&shared, &source, &artifact, NULL, &diag), &diag);
    unsigned char *bytes = malloc(artifact.base.size);
    assert_non_null(bytes);
    memcpy(bytes, artifact.base.data, artifact.base.size);
    bytes[8] ^= 1; /* the device that it was made for */
    kn_artifact_init(&other);
    kn_artifact_borrow(&other, KILN_LANG_NONE, kn_span_of(bytes, artifact.base.size), NULL,
                       artifact.facts);
    assert_int_equal(rig_load(&shared, &source, &other, &program, &diag), KILN_E_REJECTED);
    assert_int_not_equal(diag.vendor_code, 0);
    kiln_diag_clear(&diag);
    kn_artifact_deinit(&other);
    kn_artifact_deinit(&artifact);
    free(bytes);
}

static void D4_a_binary_whose_kernels_do_not_fit_its_facts_is_rejected(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *program = NULL;
    kiln_source source = rig_source(rig_two_kernels);
    rig_ok(rig_compile(&shared, &source, &artifact, NULL, &diag), &diag);
    assert_int_equal(
        kn_host.artifact_set_fact(&artifact.base, KN_OPENCL_FACT_PARAMS, "other\t0\n", 8), KILN_OK);
    assert_int_equal(rig_load(&shared, &source, &artifact, &program, &diag), KILN_E_REJECTED);
    kiln_diag_clear(&diag);
    kn_artifact_deinit(&artifact);
}

static void capture_after_a_launch_holds_the_new_shape(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact early, late, later;
    void *cold = NULL, *warm = NULL;
    kiln_source source = rig_source(
        "/* a program of its own */\n"
        "__kernel void add(__global float *a, float v) { a[get_global_id(0)] += v; }\n"
        "__kernel void scale(__global float *a, float v) { a[get_global_id(0)] *= v; }\n");
    rig_ok(rig_compile(&shared, &source, &early, &cold, &diag), &diag);
    void *buffer = rig_buffer(&shared, ITEMS);
    assert_false(device()->program_grew(shared.device, cold));
    (void)rig_launch(&shared, cold, "add", buffer, 1.0F, ITEMS, 32);
    assert_true(device()->program_grew(shared.device, cold));
    kn_artifact_init(&late);
    rig_ok(device()->program_capture(shared.device, cold, &late.base, &diag), &diag);
    assert_false(device()->program_grew(shared.device, cold));
    assert_true(late.base.size > early.base.size + 4000);

    /* A program that came from a binary: the known shape is not new, another one is. */
    rig_ok(rig_load(&shared, &source, &late, &warm, &diag), &diag);
    (void)rig_launch(&shared, warm, "add", buffer, 1.0F, ITEMS, 32);
    assert_false(device()->program_grew(shared.device, warm));
    (void)rig_launch(&shared, warm, "scale", buffer, 1.0F, ITEMS, 0);
    assert_true(device()->program_grew(shared.device, warm));
    kn_artifact_init(&later);
    rig_ok(device()->program_capture(shared.device, warm, &later.base, &diag), &diag);
    assert_true(later.base.size > late.base.size + 4000);
    size_t size = 0;
    const char *shapes =
        (const char *)kn_host.artifact_fact(&later.base, KN_OPENCL_FACT_SHAPES, &size);
    assert_non_null(shapes);
    char *text = strndup(shapes, size);
    assert_string_equal(text, "32 1 1 1 1 add\n256 1 1 1 1 scale\n");
    free(text);

    device()->buffer_destroy(shared.device, buffer);
    device()->program_unload(shared.device, warm);
    device()->program_unload(shared.device, cold);
    kn_artifact_deinit(&later);
    kn_artifact_deinit(&late);
    kn_artifact_deinit(&early);
}

static void K1_a_capture_refuses_a_program_whose_header_has_changed(void **state)
{
    char *header = kt_at((const char *)*state, "v.h");
    const char *const dirs[] = {(const char *)*state};
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact, late;
    void *program = NULL;
    kiln_source source = rig_source("#include \"v.h\"\n__kernel void k(__global float *a, float v)"
                                    "{ a[get_global_id(0)] = V + v; }\n");
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    kt_file_write(header, "#define V 1\n", 12);
    rig_ok(rig_compile(&shared, &source, &artifact, &program, &diag), &diag);
    void *buffer = rig_buffer(&shared, 64);
    (void)rig_launch(&shared, program, "k", buffer, 1.0F, 64, 0);
    kt_file_write(header, "#define V 2\n", 12);
    kn_artifact_init(&late);
    assert_true(device()->program_grew(shared.device, program));
    assert_int_equal(device()->program_capture(shared.device, program, &late.base, &diag),
                     KILN_E_UNSUPPORTED);
    assert_int_equal(late.base.size, 0);
    assert_false(device()->program_grew(shared.device, program)); /* not tried again */
    kiln_diag_clear(&diag);
    device()->buffer_destroy(shared.device, buffer);
    device()->program_unload(shared.device, program);
    kn_artifact_deinit(&late);
    kn_artifact_deinit(&artifact);
}

static void a_capture_repeats_a_private_dir(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact, late;
    void *program = NULL;
    const kiln_header headers[] = {{"in.h", "#define V 4\n", 12}};
    kiln_source source = rig_source("#include \"in.h\"\n__kernel void k(__global float *a, float v)"
                                    "{ a[get_global_id(0)] = V + v; }\n");
    source.headers = headers;
    source.header_count = 1;
    rig_ok(rig_compile(&shared, &source, &artifact, &program, &diag), &diag);
    void *buffer = rig_buffer(&shared, 64);
    (void)rig_launch(&shared, program, "k", buffer, 1.0F, 64, 0);
    kn_artifact_init(&late);
    rig_ok(device()->program_capture(shared.device, program, &late.base, &diag), &diag);
    assert_true(late.base.size > artifact.base.size);
    device()->buffer_destroy(shared.device, buffer);
    device()->program_unload(shared.device, program);
    kn_artifact_deinit(&late);
    kn_artifact_deinit(&artifact);
}

static void bad_launches_are_one_clear_error(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *program = NULL;
    kiln_source source = rig_source(rig_two_kernels);
    rig_ok(rig_compile(&shared, &source, &artifact, &program, &diag), &diag);
    void *buffer = rig_buffer(&shared, 64);
    const double wide = 1.0;
    kiln_sys_arg args[] = {
        {.kind = KILN_ARG_BUFFER, .buffer = buffer},
        {.kind = KILN_ARG_VALUE, .value = &wide, .size = sizeof(wide)},
    };
    kiln_sys_launch launch = {.program = program,
                              .entry = "add",
                              .dims = 1,
                              .global = {64, 1, 1},
                              .args = args,
                              .arg_count = 2};
    assert_int_equal(device()->queue_launch(shared.queue, &launch, NULL, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "argument 1 of add"));
    kiln_diag_clear(&diag);
    launch.arg_count = 1;
    assert_int_equal(device()->queue_launch(shared.queue, &launch, NULL, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "takes 2 arguments, not 1"));
    kiln_diag_clear(&diag);
    launch.entry = "none";
    assert_int_equal(device()->queue_launch(shared.queue, &launch, NULL, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
    launch.entry = "add";
    launch.arg_count = 2;
    args[1].size = sizeof(float);
    launch.local[0] = 48; /* does not divide 64 */
    launch.local[1] = launch.local[2] = 1;
    assert_int_equal(device()->queue_launch(shared.queue, &launch, NULL, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "CL_INVALID_WORK_GROUP_SIZE"));
    kiln_diag_clear(&diag);
    device()->buffer_destroy(shared.device, buffer);
    device()->program_unload(shared.device, program);
    kn_artifact_deinit(&artifact);
}

/* PoCL aborts the process on more local memory than there is, in arguments or in the kernel, just
 * built or from a binary. */
static void too_much_local_memory_is_refused(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_device_info info = {0};
    kn_artifact artifact;
    void *programs[2] = {NULL, NULL};
    char text[512];
    rig_ok(device()->device_info(shared.instance, shared.target.device_index, &info, &diag), &diag);
    (void)snprintf(
        text, sizeof(text),
        "__kernel void fixed(__global float *a)\n"
        "{ __local float t[%llu]; t[get_local_id(0)] = 1.0f; barrier(1); a[0] = t[0]; }\n"
        "__kernel void given(__global float *a, __local float *t)\n"
        "{ t[get_local_id(0)] = 1.0f; barrier(1); a[0] = t[0]; }\n",
        (unsigned long long)info.local_bytes);
    kiln_source source = rig_source(text);
    rig_ok(rig_compile(&shared, &source, &artifact, &programs[0], &diag), &diag);
    rig_ok(rig_load(&shared, &source, &artifact, &programs[1], &diag), &diag);
    void *buffer = rig_buffer(&shared, 64);
    for (int i = 0; i < 2; i++) {
        kn_opencl_program *program = (kn_opencl_program *)programs[i];
        const bool is_told = kn_opencl_kernel_find(&program->kernels, "fixed")->fixed_local > 0;
        kiln_sys_arg args[] = {{.kind = KILN_ARG_BUFFER, .buffer = buffer},
                               {.kind = KILN_ARG_LOCAL, .size = (size_t)info.local_bytes * 2}};
        kiln_sys_launch launch = {.program = programs[i],
                                  .entry = "fixed",
                                  .dims = 1,
                                  .global = {64, 1, 1},
                                  .args = args,
                                  .arg_count = 1};
        if (is_told) { /* PoCL 6 says 0, and then ends the process */
            assert_int_equal(device()->queue_launch(shared.queue, &launch, NULL, &diag),
                             KILN_E_INVALID);
            assert_non_null(strstr(diag.why, "bytes of work-group memory"));
        }
        launch.entry = "given";
        launch.arg_count = 2;
        assert_int_equal(device()->queue_launch(shared.queue, &launch, NULL, &diag),
                         KILN_E_INVALID);
        args[1].size = (size_t)info.local_bytes;
        rig_ok(device()->queue_launch(shared.queue, &launch, NULL, &diag), &diag);
        rig_ok(device()->queue_finish(shared.queue, &diag), &diag);
        device()->program_unload(shared.device, programs[i]);
    }
    kiln_diag_clear(&diag);
    device()->buffer_destroy(shared.device, buffer);
    kn_artifact_deinit(&artifact);
}

static void offsets_events_copies_and_timing_work(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *program = NULL, *event = NULL;
    kiln_source source = rig_source(rig_two_kernels);
    rig_ok(rig_compile(&shared, &source, &artifact, &program, &diag), &diag);
    void *buffer = rig_buffer(&shared, ITEMS);
    void *copy = rig_buffer(&shared, ITEMS);
    const float one = 1.0F;
    kiln_sys_arg args[] = {
        {.kind = KILN_ARG_BUFFER, .buffer = buffer, .offset = 1024 * sizeof(float)},
        {.kind = KILN_ARG_VALUE, .value = &one, .size = sizeof(one)},
    };
    kiln_sys_launch launch = {.program = program,
                              .entry = "add",
                              .dims = 1,
                              .global = {1024, 1, 1},
                              .offset = {8, 0, 0},
                              .args = args,
                              .arg_count = 2};
    rig_ok(device()->queue_launch(shared.queue, &launch, &event, &diag), &diag);
    uint64_t ns = 0;
    rig_ok(device()->event_elapsed(shared.device, event, &ns, &diag), &diag);
    assert_true(ns > 0 && ns < 10000000000U);
    assert_true(device()->event_done(shared.device, event));
    device()->event_destroy(shared.device, event);
    assert_true(rig_item(&shared, buffer, 1031) == 0.0F && rig_item(&shared, buffer, 1032) == 1.0F);
    assert_true(rig_item(&shared, buffer, 2055) == 1.0F && rig_item(&shared, buffer, 2056) == 0.0F);
    rig_ok(device()->queue_copy(shared.queue, buffer, 1032 * sizeof(float), copy, 0, sizeof(float),
                                &diag),
           &diag);
    assert_true(rig_item(&shared, copy, 0) == 1.0F && rig_item(&shared, copy, 1) == 0.0F);
    args[0].offset = 4; /* not on the device's boundary */
    assert_int_equal(device()->queue_launch(shared.queue, &launch, NULL, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "multiples of"));
    kiln_diag_clear(&diag);
    device()->buffer_destroy(shared.device, copy);
    device()->buffer_destroy(shared.device, buffer);
    device()->program_unload(shared.device, program);
    kn_artifact_deinit(&artifact);
}

static void reqd_work_group_size_is_taken_when_nothing_is_asked(void **state)
{
    kiln_source source = rig_source(
        "__kernel __attribute__((reqd_work_group_size(16, 1, 1)))"
        "void k(__global float *a, float v) { a[get_global_id(0)] = get_local_size(0) + v; }\n");
    assert_true(rig_compile_and_run(&shared, &source) == 17.0F);
}

#define THREADS 4

typedef struct racer {
    void *program, *buffer;
    float value;
} racer;

static void race(void *user)
{
    racer *r = (racer *)user;
    for (int i = 0; i < 100; i++) {
        (void)rig_launch(&shared, r->program, "add", r->buffer, r->value, 64, 0);
    }
}

/* One kernel object has one set of arguments: launches from several threads must not mix them. */
static void launches_from_many_threads_keep_their_arguments(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *program = NULL;
    racer racers[THREADS];
    kn_thread *threads[THREADS];
    kiln_source source = rig_source(rig_two_kernels);
    rig_ok(rig_compile(&shared, &source, &artifact, &program, &diag), &diag);
    for (int i = 0; i < THREADS; i++) {
        racers[i] = (racer){program, rig_buffer(&shared, 64), (float)(i + 1)};
        rig_ok(kn_thread_start(race, &racers[i], &threads[i], &diag), &diag);
    }
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_true(rig_item(&shared, racers[i].buffer, 5) == 100.0F * (float)(i + 1));
        device()->buffer_destroy(shared.device, racers[i].buffer);
    }
    device()->program_unload(shared.device, program);
    kn_artifact_deinit(&artifact);
}

static void D7_opening_and_closing_again_is_fine(void **state)
{
    for (int i = 0; i < 3; i++) {
        rig again;
        assert_true(rig_open(&again, "Portable Computing Language"));
        rig_close(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_a_software_device_with_its_limits),
        cmocka_unit_test(K7_K8_identity_names_the_device_and_the_libraries_in_memory),
        cmocka_unit_test(compiles_launches_and_loads_from_the_binary),
        cmocka_unit_test(D1_damaged_binaries_are_refused_and_never_reach_the_driver),
        cmocka_unit_test(D4_a_binary_for_another_device_is_rejected),
        cmocka_unit_test(D4_a_binary_whose_kernels_do_not_fit_its_facts_is_rejected),
        cmocka_unit_test(capture_after_a_launch_holds_the_new_shape),
        kt_dir_test(K1_a_capture_refuses_a_program_whose_header_has_changed),
        cmocka_unit_test(a_capture_repeats_a_private_dir),
        cmocka_unit_test(bad_launches_are_one_clear_error),
        cmocka_unit_test(too_much_local_memory_is_refused),
        cmocka_unit_test(offsets_events_copies_and_timing_work),
        cmocka_unit_test(reqd_work_group_size_is_taken_when_nothing_is_asked),
        cmocka_unit_test(launches_from_many_threads_keep_their_arguments),
        cmocka_unit_test(D7_opening_and_closing_again_is_fine),
    };
    char *cache = kt_tmpdir_create();
    (void)setenv("POCL_CACHE_DIR", cache, 1);
    (void)unsetenv("POCL_KERNEL_CACHE");
    if (!rig_open(&shared, "Portable Computing Language")) {
        kt_tmpdir_remove(cache);
        kn_test_skip("opencl", "PoCL is not installed");
    }
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close(&shared);
    kt_tmpdir_remove(cache);
    return failures;
}
