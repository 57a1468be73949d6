/* Keys and warm starts of the cuda backend, on the fake driver and toolkit. */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln/unstable/compile.h>
#include <kiln/unstable/reflect.h>

#include "support/counters.h"
#include "unit/backends/cuda/world.h"

static const char scale_text[] = "template <class T> __global__ void scale(T *x, T a)\n"
                                 "{\n"
                                 "    x[blockIdx.x * blockDim.x + threadIdx.x] *= a;\n"
                                 "}\n";
static const char *const scale_entries[] = {"scale<float>", "scale<int>"};

static const char plain_text[] = "extern \"C\" __global__ void one(int *x)\n"
                                 "{\n"
                                 "    x[threadIdx.x] = 1;\n"
                                 "}\n";

static void launch(world *w, kiln_program *program, const char *entry, const kiln_arg *args,
                   size_t count)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_launch shape = {.struct_size = sizeof(shape),
                               .dims = 1,
                               .global = {4},
                               .local = {4},
                               .args = args,
                               .arg_count = count};
    ok(kiln_queue_launch(w->queue, program, entry, &shape, NULL, &diag), &diag);
}

static void scale_four(world *w, kiln_program *program)
{
    kiln_diag diag = KILN_DIAG_INIT;
    float values[4] = {1, 2, 3, 4};
    const float factor = 3.0F;
    kiln_buffer *buffer = NULL;
    ok(kiln_buffer_create(w->device, sizeof(values), &buffer, &diag), &diag);
    ok(kiln_queue_write(w->queue, buffer, 0, values, sizeof(values), &diag), &diag);
    const kiln_arg args[] = {{.kind = KILN_ARG_BUFFER, .buffer = buffer},
                             {.kind = KILN_ARG_VALUE, .value = &factor, .size = sizeof(factor)}};
    launch(w, program, "scale<float>", args, 2);
    ok(kiln_queue_read(w->queue, buffer, 0, values, sizeof(values), &diag), &diag);
    for (int i = 0; i < 4; i++) {
        assert_true(values[i] == 3.0F * (float)(i + 1));
    }
    kiln_buffer_destroy(buffer);
}

static uint32_t compiles_for(const char *root, const kiln_source *source)
{
    world w;
    world_open(&w, root);
    kiln_program *program = world_build(&w, source);
    uint32_t compiles = kiln_program_get_info(program)->compiles;
    kiln_program_release(program);
    world_close(&w);
    return compiles;
}

static void K9_a_hit_has_the_lowered_names(void **state)
{
    char *root = kt_at((const char *)*state, "k9");
    kiln_source source = world_source(scale_text, scale_entries, 2);
    for (uint32_t round = 0; round < 2; round++) {
        world w;
        world_open(&w, root);
        kiln_program *program = world_build(&w, &source);
        assert_int_equal(kiln_program_get_info(program)->compiles, round == 0 ? 1 : 0);
        assert_int_equal(kiln_program_entry_count(program), 2);
        scale_four(&w, program);
        kiln_program_release(program);
        world_close(&w);
    }
}

static void K2_another_build_of_the_toolkit_compiles_anew(void **state)
{
    char *root = kt_at((const char *)*state, "k2");
    kiln_source source = world_source(plain_text, NULL, 0);
    assert_int_equal(compiles_for(root, &source), 1);
    assert_int_equal(compiles_for(root, &source), 0);
    assert_int_equal(setenv("CUDA_PATH", KILN_FAKECUDA_DIR "/toolkit_next", 1), 0);
    assert_int_equal(compiles_for(root, &source), 1);
    assert_int_equal(setenv("CUDA_PATH", KILN_FAKECUDA_DIR "/toolkit", 1), 0);
    assert_int_equal(compiles_for(root, &source), 0);
}

static uint64_t compiles_in(world *w, const kiln_source *source)
{
    kiln_program *program = world_build(w, source);
    const uint64_t compiles = kiln_program_get_info(program)->compiles;
    kiln_program_release(program);
    return compiles;
}

/* In one runtime: variables are asked each time, and what NVRTC reads once stays in force. */
static void K2_what_nvrtc_reads_of_the_environment_bypasses_the_cache(void **state)
{
    static const char *const variables[] = {"NVRTC_PREPEND_FLAGS", "NVRTC_APPEND_FLAGS",
                                            "NV_NVVM_VERSION"};
    char *root = kt_at((const char *)*state, "variables");
    const kiln_source source = world_source(plain_text, NULL, 0);
    world w;
    world_open(&w, root);
    assert_int_equal(compiles_in(&w, &source), 1);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        assert_int_equal(setenv(variables[i], "-DX=1", 1), 0);
        assert_int_equal(compiles_in(&w, &source), 1);
        assert_int_equal(compiles_in(&w, &source), 1);
        assert_int_equal(unsetenv(variables[i]), 0);
        assert_int_equal(compiles_in(&w, &source), i < 2 ? 0 : 1);
    }
    world_close(&w);
}

static void copy_toolkit(const char *from, const char *to)
{
    char command[1200];
    (void)snprintf(command, sizeof(command), "rm -rf %s && mkdir -p %s && cp -r %s/%s/lib64 %s/",
                   to, to, KILN_FAKECUDA_DIR, from, to);
    assert_int_equal(system(command), 0);
}

static void K8_the_compiler_is_what_it_is_not_where_it_is(void **state)
{
    char *root = kt_at((const char *)*state, "k8");
    char *moved = kt_at((const char *)*state, "toolkit");
    kiln_source source = world_source(plain_text, NULL, 0);
    assert_int_equal(compiles_for(root, &source), 1);
    copy_toolkit("toolkit", moved);
    assert_int_equal(setenv("CUDA_PATH", moved, 1), 0);
    assert_int_equal(compiles_for(root, &source), 0); /* another place, the same compiler */
    copy_toolkit("toolkit_next", moved);
    assert_int_equal(compiles_for(root, &source), 1); /* the same place, another compiler */
    assert_int_equal(setenv("CUDA_PATH", KILN_FAKECUDA_DIR "/toolkit", 1), 0);
}

static void a_warm_start_opens_no_compiler(void **state)
{
    char *root = kt_at((const char *)*state, "lazy");
    char *log = kt_at((const char *)*state, "nvrtc.log");
    kiln_source source = world_source(plain_text, NULL, 0);
    assert_int_equal(setenv("FAKENVRTC_LOG", log, 1), 0);
    assert_int_equal(compiles_for(root, &source), 1);
    char *text = kt_file_read(log, NULL);
    assert_non_null(text);
    assert_non_null(strstr(text, "--gpu-architecture=sm_90"));
    free(text);
    assert_int_equal(unlink(log), 0);
    assert_int_equal(compiles_for(root, &source), 0);
    assert_int_equal(access(log, F_OK), -1);
    (void)unsetenv("FAKENVRTC_LOG");
}

/* The toolkit under the names of another version: what kiln takes its version from. */
static void name_toolkit(const char *dir, const char *major, const char *version)
{
    char command[2000];
    const char *from = KILN_FAKECUDA_DIR "/toolkit/lib64";
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/lib64 && ln -s %s/libnvrtc.so.13 %s/lib64/libnvrtc.so.%s && "
                   "ln -s %s/libnvrtc-builtins.so.13.0 %s/lib64/libnvrtc-builtins.so.%s",
                   dir, from, dir, major, from, dir, version);
    assert_int_equal(system(command), 0);
}

static bool compiles_without_nvrtcs_cache(const char *root, const kiln_source *source,
                                          const char *log)
{
    assert_int_equal(setenv("FAKENVRTC_LOG", log, 1), 0);
    assert_int_equal(compiles_for(root, source), 1);
    assert_int_equal(unsetenv("FAKENVRTC_LOG"), 0);
    char *text = kt_file_read(log, NULL);
    assert_non_null(text);
    const bool without = strstr(text, " --no-cache") != NULL;
    free(text);
    assert_int_equal(unlink(log), 0);
    return without;
}

static void NVRTCs_own_cache_is_off_where_it_has_one(void **state)
{
    const char *dir = (const char *)*state;
    char *root = kt_at(dir, "own");
    char *second = kt_at(dir, "own-second");
    char *third = kt_at(dir, "own-third");
    char *log = kt_at(dir, "own.log");
    char *before = kt_at(dir, "toolkit-12.8");
    char *after = kt_at(dir, "toolkit-12.9");
    kiln_source source = world_source(plain_text, NULL, 0);
    assert_true(compiles_without_nvrtcs_cache(root, &source, log));
    name_toolkit(before, "12", "12.8");
    assert_int_equal(setenv("CUDA_PATH", before, 1), 0);
    assert_false(compiles_without_nvrtcs_cache(second, &source, log));
    name_toolkit(after, "12", "12.9");
    assert_int_equal(setenv("CUDA_PATH", after, 1), 0);
    assert_true(compiles_without_nvrtcs_cache(third, &source, log));
    assert_int_equal(setenv("CUDA_PATH", KILN_FAKECUDA_DIR "/toolkit", 1), 0);
}

static void a_binary_that_the_driver_refuses_is_made_again(void **state)
{
    char *root = kt_at((const char *)*state, "refused");
    kiln_source source = world_source(plain_text, NULL, 0);
    world w;
    kt_counters stats;
    assert_int_equal(compiles_for(root, &source), 1);
    world_open(&w, root);
    assert_int_equal(setenv("FAKECUDA_REFUSE", "1", 1), 0);
    kiln_program *program = world_build(&w, &source);
    assert_int_equal(kiln_program_get_info(program)->compiles, 1);
    kt_counters_own(w.cache, &stats);
    assert_int_equal(stats.rejected, 1);
    (void)unsetenv("FAKECUDA_REFUSE");
    kiln_program_release(program);
    world_close(&w);
}

static void PTX_is_a_stage_and_the_drivers_compile_another(void **state)
{
    char *root = kt_at((const char *)*state, "ptx");
    kiln_source source = world_source(plain_text, NULL, 0);
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    kiln_program *program = NULL;
    world w;
    world_open(&w, root);
    ok(kiln_compile(w.runtime, "cuda:compute_90", &source, &blob, NULL, &diag), &diag);
    kiln_source ptx = KILN_SOURCE_INIT;
    ptx.language = KILN_LANG_PTX;
    ptx.name = "test.ptx";
    ptx.text = kiln_blob_data(blob);
    ptx.length = kiln_blob_size(blob);
    for (uint32_t round = 0; round < 2; round++) {
        ok(kiln_program_build(w.device, &ptx, 1, NULL, &program, &diag), &diag);
        assert_int_equal(kiln_program_get_info(program)->compiles, round == 0 ? 1 : 0);
        kiln_program_release(program);
    }
    kiln_blob_release(blob);
    world_close(&w);
}

static void C8_a_forked_child_is_told_and_its_cache_works(void **state)
{
    char *root = kt_at((const char *)*state, "fork");
    kiln_source source = world_source(plain_text, NULL, 0);
    kiln_diag diag = KILN_DIAG_INIT;
    world w;
    world_open(&w, root);
    pid_t child = fork();
    if (child == 0) {
        kiln_buffer *buffer = NULL;
        kiln_blob *blob = NULL;
        kiln_status status = kiln_buffer_create(w.device, 16, &buffer, &diag);
        bool told = status == KILN_E_UNAVAILABLE && strstr(diag.why, "fork") != NULL;
        bool compiled =
            kiln_compile(w.runtime, "cuda:sm_80", &source, &blob, NULL, NULL) == KILN_OK;
        _exit(told && compiled ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    kiln_program_release(world_build(&w, &source));
    world_close(&w);
}

/* A driver has threads and exit handlers of its own: unmapped under them, they crash the host. */
static void the_driver_stays_mapped(void **state)
{
    char *root = kt_at((const char *)*state, "mapped");
    world w;
    world_open(&w, root);
    world_close(&w);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(driver);
    (void)dlclose(driver);
}

/* The origin of a compile for `target`; `device` is what the runtime is opened for. */
static kiln_origin compile_named(const char *root, const char *device, const char *target)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache_options cache_options;
    kiln_runtime_options options;
    kiln_cache *cache = NULL;
    kiln_runtime *runtime = NULL;
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_MEMORY;
    const kiln_source source = world_source(plain_text, NULL, 0);
    ok(kiln_cache_options_init(&cache_options, &diag), &diag);
    cache_options.root = root;
    ok(kiln_cache_create(&cache_options, &cache, &diag), &diag);
    ok(kiln_runtime_options_init(&options, &diag), &diag);
    options.cache = cache;
    options.backend = "cuda";
    options.device = device;
    options.strict = true;
    options.compile_only = true;
    ok(kiln_runtime_create(&options, &runtime, &diag), &diag);
    ok(kiln_compile(runtime, target, &source, &blob, &origin, &diag), &diag);
    kiln_blob_release(blob);
    kiln_runtime_destroy(runtime);
    kiln_cache_destroy(cache);
    return origin;
}

static void a_named_target_opens_no_driver(void **state)
{
    char *root = kt_at((const char *)*state, "named");
    char *log = kt_at((const char *)*state, "named.log");
    assert_int_equal(setenv("FAKECUDA_LOG", log, 1), 0);
    assert_int_equal(compile_named(root, "cuda:sm_90", "cuda:sm_90"), KILN_ORIGIN_COMPILED);
    assert_false(kt_file_exists(log));
    /* With the driver the key is the same, and a target that has no name of its own needs it. */
    assert_int_equal(compile_named(root, NULL, "cuda:sm_90"), KILN_ORIGIN_DISK);
    assert_true(kt_file_exists(log));
    assert_int_equal(remove(log), 0);
    (void)compile_named(root, "cuda:native", "cuda:native");
    assert_true(kt_file_exists(log));
    (void)unsetenv("FAKECUDA_LOG");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_stays_mapped),
        cmocka_unit_test(a_named_target_opens_no_driver),
        cmocka_unit_test(K9_a_hit_has_the_lowered_names),
        cmocka_unit_test(K2_another_build_of_the_toolkit_compiles_anew),
        cmocka_unit_test(K8_the_compiler_is_what_it_is_not_where_it_is),
        cmocka_unit_test(a_warm_start_opens_no_compiler),
        cmocka_unit_test(NVRTCs_own_cache_is_off_where_it_has_one),
        cmocka_unit_test(a_binary_that_the_driver_refuses_is_made_again),
        cmocka_unit_test(PTX_is_a_stage_and_the_drivers_compile_another),
        cmocka_unit_test(C8_a_forked_child_is_told_and_its_cache_works),
        cmocka_unit_test(K2_what_nvrtc_reads_of_the_environment_bypasses_the_cache),
    };
    return cmocka_run_group_tests(tests, kt_tmpdir_setup, kt_tmpdir_teardown);
}
