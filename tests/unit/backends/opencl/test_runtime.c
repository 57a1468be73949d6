/* The OpenCL backend behind the whole of kiln: processes that share a cache directory, on fake
 * drivers with faults and on PoCL. Counters decide. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/runtime/driver.h"
#include "core/runtime/recall.h"
#include "hal/registry.h"
#include "kiln/kiln.h"
#include "kiln/unstable/pack.h"
#include "support/counters.h"
#include "support/opencl_child.h"
#include "support/tmpdir.h"
#include "sys/clock.h"
#include "unit/backends/opencl/rig.h"

#define KNOWN 78

static const char text[] =
    "__kernel void k(__global float *a, float v) { a[get_global_id(0)] += v; }\n";

/* --- in the child ----------------------------------------------------------------------------- */

typedef struct times {
    double first_ms, second_ms;
} times;

static kiln_status launch(kiln_device *device, kiln_program *program, times *out_times)
{
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    const float value = 1.0F;
    kiln_status status = kiln_queue_create(device, &queue, NULL);
    if (status == KILN_OK) {
        status = kiln_buffer_create(device, 4096, &buffer, NULL);
    }
    kiln_arg args[] = {{.kind = KILN_ARG_BUFFER, .buffer = buffer},
                       {.kind = KILN_ARG_VALUE, .value = &value, .size = sizeof(value)}};
    kiln_launch request = {.struct_size = sizeof(request),
                           .dims = 1,
                           .global = {1024, 1, 1},
                           .args = args,
                           .arg_count = 2};
    for (int i = 0; i < 2 && status == KILN_OK; i++) {
        uint64_t start = kn_clock_now();
        status = kiln_queue_launch(queue, program, "k", &request, NULL, NULL);
        if (status == KILN_OK) {
            status = kiln_queue_finish(queue, NULL);
        }
        *(i == 0 ? &out_times->first_ms : &out_times->second_ms) =
            (double)(kn_clock_now() - start) / 1e6;
    }
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
    return status;
}

static void say(kiln_runtime *runtime, kiln_status status, const kiln_build_info *info,
                size_t new_files, const times *taken)
{
    kt_counters stats;
    kt_counters_own(kiln_runtime_cache(runtime), &stats);
    (void)printf("%s compiles=%u %s rejected=%llu bypassed=%llu files=%zu | key %.3f lookup %.3f "
                 "compile %.3f load %.3f total %.3f, launches %.3f %.3f ms, unended=%llu\n",
                 kiln_status_name(status), info->compiles, kiln_origin_name(info->origin),
                 (unsigned long long)stats.rejected, (unsigned long long)stats.bypassed, new_files,
                 (double)info->key_ns / 1e6, (double)info->lookup_ns / 1e6,
                 (double)info->compile_ns / 1e6, (double)info->load_ns / 1e6,
                 (double)info->total_ns / 1e6, taken->first_ms, taken->second_ms,
                 (unsigned long long)stats.unended);
}

static int child(bool run)
{
    kiln_runtime *runtime = NULL;
    kiln_device *device = NULL;
    kiln_program *program = NULL;
    kiln_build_info info = {.struct_size = sizeof(info)};
    size_t new_files = 0;
    times taken = {0};
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_OPENCL_C;
    source.text = text;
    source.length = strlen(text);
    if (rig_open_runtime(&source, &runtime, &device) != KILN_OK) {
        kiln_runtime_destroy(runtime);
        return CHILD_NO_DEVICE;
    }
    kiln_status status = kiln_program_build(device, &source, 1, NULL, &program, NULL);
    if (status == KILN_OK) {
        info = *kiln_program_get_info(program);
    }
    if (status == KILN_OK && run) {
        new_files = kt_file_count(getenv("POCL_CACHE_DIR"));
        status = launch(device, program, &taken);
        new_files = kt_file_count(getenv("POCL_CACHE_DIR")) - new_files;
    }
    say(runtime, status, &info, new_files, &taken);
    kiln_program_release(program);
    kiln_runtime_destroy(runtime);
    return 0;
}

/* Whether the probe of an earlier start is taken as this process' own. */
static int ask_known(void)
{
    kiln_cache *cache = NULL;
    kn_recall recall;
    kn_drivers_register(NULL, NULL, NULL);
    if (kiln_cache_create(NULL, &cache, NULL) != KILN_OK) {
        return 1;
    }
    const bool known = kn_recall_get(cache, kn_registry_find("opencl"), &recall);
    kn_recall_deinit(&recall);
    kiln_cache_destroy(cache);
    return known ? KNOWN : 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static int start(const char *dir, const char *variant, const char *word)
{
    const char *argv[] = {NULL, word, NULL};
    child_variant = variant;
    return child_run(dir, argv, NULL);
}

static void expect(void **state, const char *variant, const char *word, const char *beginning)
{
    assert_int_equal(start((const char *)*state, variant, word), 0);
    print_message("%s", child_last.output);
    child_printed(beginning);
}

static void K2_another_build_of_the_driver_compiles_again(void **state)
{
    expect(state, "good", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
    expect(state, "good", "build", "KILN_OK compiles=0 disk rejected=0 bypassed=0");
    expect(state, "other_build", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
    expect(state, "good", "build", "KILN_OK compiles=0 disk rejected=0 bypassed=0");
}

/* Records lie in a few slots, by a digest that the directory of PoCL is part of: two may want the
 * same one, and then the later takes it. */
static size_t count_records(const char *dir)
{
    char *probes = kt_at(dir, "cache/probes");
    const size_t count = kt_file_count(probes);
    return count;
}

/* A loader that was there first has read its list of drivers: what such a process finds is not for
 * others, nor theirs for it. */
static void a_probe_is_not_shared_with_who_brought_the_loader(void **state)
{
    const char *dir = (const char *)*state;
    size_t before = 0;
    char name[16];
    for (int attempt = 0; attempt < 8; attempt++) {
        (void)snprintf(name, sizeof(name), "slot%d", attempt);
        char *own = kt_path(dir, name);
        child_pocl_dir = own; /* a probe that is to be remembered needs the same surroundings */
        expect(state, "good", "build", "KILN_OK");
        before = count_records(dir);
        assert_int_equal(start(dir, "good", "known"), KNOWN);
        assert_int_equal(start(dir, "good", "linked known"), 0);
        expect(state, "good", "linked build", "KILN_OK");
        assert_int_equal(start(dir, "good", "linked known"), KNOWN);
        if (count_records(dir) > before) {
            assert_int_equal(start(dir, "good", "known"), KNOWN);
            free(own);
            child_pocl_dir = NULL;
            return;
        }
        free(own);
    }
    fail_msg("eight pairs of records wanted one slot each");
}

static void D3_a_driver_without_binaries_works_uncached(void **state)
{
    expect(state, "empty", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=1");
    expect(state, "empty", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=1");
}

static void D4_a_refused_binary_is_compiled_once_more(void **state)
{
    const char *const variants[] = {"refusing", "refusing_build"};
    for (size_t i = 0; i < 2; i++) {
        expect(state, variants[i], "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
        expect(state, variants[i], "build", "KILN_OK compiles=1 compiled rejected=1 bypassed=0");
    }
}

static void expect_to_die(void **state, const char *variant)
{
    assert_int_equal(setenv("FAKECL_DIES_ON_BINARY", "1", 1), 0);
    assert_int_not_equal(start((const char *)*state, variant, "build"), 0);
    assert_int_equal(unsetenv("FAKECL_DIES_ON_BINARY"), 0);
}

/* The first start compiles, the second and the third crash, those after them compile. */
static void a_driver_that_crashes_on_a_binary_does_so_twice(void **state)
{
    expect(state, "good", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
    expect_to_die(state, "good");
    expect_to_die(state, "good");
    assert_int_equal(setenv("FAKECL_DIES_ON_BINARY", "1", 1), 0);
    for (int i = 0; i < 3; i++) {
        expect(state, "good", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
        assert_non_null(strstr(child_last.output, "unended=1"));
    }
    assert_int_equal(unsetenv("FAKECL_DIES_ON_BINARY"), 0);
}

/* One crash, or one process that was killed, costs nothing, however often it happens. */
static void a_load_that_ends_is_a_new_beginning(void **state)
{
    expect(state, "good", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
    for (int i = 0; i < 3; i++) {
        expect_to_die(state, "good");
        expect(state, "good", "build", "KILN_OK compiles=0 disk rejected=0 bypassed=0");
    }
}

/* An entry that cannot be dropped. */
static void what_crashes_from_a_pack_is_not_loaded_from_it(void **state)
{
    char *root = kt_path((const char *)*state, "cache");
    char *entries = kt_at(root, "v1");
    char *moved = kt_at((const char *)*state, "moved");
    char *pack = kt_at((const char *)*state, "p.kpack");
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    expect(state, "good", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_create(pack, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, NULL),
                     KILN_OK);
    assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    kiln_cache_destroy(cache);
    assert_int_equal(rename(entries, moved), 0);
    assert_int_equal(setenv("KILN_PACKS", pack, 1), 0);
    expect(state, "good", "build", "KILN_OK compiles=0 pack rejected=0 bypassed=0");
    expect_to_die(state, "good");
    expect_to_die(state, "good");
    assert_int_equal(setenv("FAKECL_DIES_ON_BINARY", "1", 1), 0);
    for (int i = 0; i < 2; i++) {
        expect(state, "good", "build", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
        assert_non_null(strstr(child_last.output, "unended=1"));
    }
    assert_int_equal(unsetenv("FAKECL_DIES_ON_BINARY"), 0);
    assert_int_equal(unsetenv("KILN_PACKS"), 0);
    free(root);
}

/* The second process compiles nothing: not the program, and (PoCL's directory is empty at its
 * start, and gets no file) not at the launch either. */
static void a_warm_process_compiles_nothing_at_its_first_launch(void **state)
{
    expect(state, NULL, "run", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
    expect(state, NULL, "run", "KILN_OK compiles=0 disk rejected=0 bypassed=0 files=0");
}

/* PoCL ends the process where it finds no linker. What was captured needs none. */
static void without_a_linker_only_what_was_captured_is_launched(void **state)
{
    const char *path = getenv("PATH");
    char *before = strdup(path != NULL ? path : "");
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    expect(state, NULL, "run", "KILN_E_UNAVAILABLE compiles=1 compiled rejected=0 bypassed=0");
    assert_int_equal(setenv("PATH", before, 1), 0);
    expect(state, NULL, "run", "KILN_OK compiles=1 compiled rejected=0 bypassed=0");
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    expect(state, NULL, "run", "KILN_OK compiles=0 disk rejected=0 bypassed=0 files=0");
    assert_int_equal(setenv("PATH", before, 1), 0);
    free(before);
}

#define TEST(name) kt_dir_test(name)

int main(int argc, char **argv)
{
    const struct CMUnitTest on_fakes[] = {
        TEST(K2_another_build_of_the_driver_compiles_again),
        TEST(a_probe_is_not_shared_with_who_brought_the_loader),
        TEST(D3_a_driver_without_binaries_works_uncached),
        TEST(D4_a_refused_binary_is_compiled_once_more),
        TEST(a_driver_that_crashes_on_a_binary_does_so_twice),
        TEST(a_load_that_ends_is_a_new_beginning),
        TEST(what_crashes_from_a_pack_is_not_loaded_from_it),
    };
    const struct CMUnitTest on_pocl[] = {
        TEST(a_warm_process_compiles_nothing_at_its_first_launch),
        TEST(without_a_linker_only_what_was_captured_is_launched),
    };
    if (argc == 2) {
        if (strncmp(argv[1], "linked", 6) == 0 && dlopen("libOpenCL.so.1", RTLD_NOW) == NULL) {
            return 1;
        }
        return strstr(argv[1], "known") != NULL ? ask_known() : child(strcmp(argv[1], "run") == 0);
    }
    const int failures = cmocka_run_group_tests(on_fakes, NULL, NULL);
    child_variant = NULL;
    return child_before_pocl(failures, "build", NULL) + cmocka_run_group_tests(on_pocl, NULL, NULL);
}
