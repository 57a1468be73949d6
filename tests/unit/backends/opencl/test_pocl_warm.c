/* Warm starts of PoCL in processes of their own, each with an empty directory for PoCL's cache:
 * what PoCL compiles it writes into that directory, so the files there are the count of
 * compiles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/opencl.h"
#include "support/opencl_child.h"
#include "support/tmpdir.h"
#include "unit/backends/opencl/rig.h"

static const char text[] =
    "__kernel void scale(__global float *a, float v) { a[get_global_id(0)] *= v; }\n"
    "__kernel void add(__global float *a, float v)\n"
    "{ for (int i = 0; i < 8; i++) { a[get_global_id(0)] += v * sin((float)i); } }\n";

/* --- in the child: WORD DIRECTORY; what is measured goes to standard output ------------------- */

static void save(const char *dir, const char *name, const void *data, size_t size)
{
    char *path = kt_at(dir, name);
    kt_file_write(path, data, size);
}

static char *load(const char *dir, const char *name, size_t *out_size)
{
    char *path = kt_at(dir, name);
    char *data = kt_file_read(path, out_size);
    return data;
}

static void *buffer_of(rig *r)
{
    kiln_diag diag = KILN_DIAG_INIT;
    void *buffer = NULL;
    rig_ok(kn_backend_opencl.device->buffer_create(r->device, 65536, &buffer, &diag), &diag);
    return buffer;
}

/* Compiles, launches, captures after the launch. */
static void cold(rig *r, const char *dir, bool launch_before)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *program = NULL;
    kiln_source source = rig_source(text);
    rig_ok(rig_compile(r, &source, &artifact, &program, &diag), &diag);
    void *buffer = buffer_of(r);
    if (launch_before) {
        (void)rig_launch(r, program, "add", buffer, 1.0F, 1024, 32);
        rig_ok(kn_backend_opencl.device->program_capture(r->device, program, &artifact.base, &diag),
               &diag);
    }
    save(dir, "binary", artifact.base.data, artifact.base.size);
    save(dir, "facts", artifact.facts.data, artifact.facts.length);
    kn_backend_opencl.device->buffer_destroy(r->device, buffer);
    kn_backend_opencl.device->program_unload(r->device, program);
    kn_artifact_deinit(&artifact);
}

/* Loads and launches; prints how many files that brought into PoCL's directory, and the times. */
static void warm(rig *r, const char *dir, uint64_t local)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *program = NULL;
    size_t size = 0, facts_size = 0;
    char *data = load(dir, "binary", &size);
    char *facts = load(dir, "facts", &facts_size);
    kiln_source source = rig_source(text);
    kn_artifact_init(&artifact);
    kn_artifact_borrow(&artifact, KILN_LANG_NONE, kn_span_of(data, size), NULL,
                       kn_span_of(facts, facts_size));
    rig_ok(rig_load(r, &source, &artifact, &program, &diag), &diag);
    void *buffer = buffer_of(r);
    size_t before = kt_file_count(getenv("POCL_CACHE_DIR"));
    uint64_t first = rig_launch(r, program, "add", buffer, 1.0F, 1024, local);
    size_t after = kt_file_count(getenv("POCL_CACHE_DIR"));
    uint64_t second = rig_launch(r, program, "add", buffer, 1.0F, 1024, local);
    bool grew = kn_backend_opencl.device->program_grew(r->device, program);
    (void)printf("%zu %d first launch %.3f ms, second %.3f ms\n", after - before, grew,
                 (double)first / 1e6, (double)second / 1e6);
    kn_backend_opencl.device->buffer_destroy(r->device, buffer);
    kn_backend_opencl.device->program_unload(r->device, program);
    kn_artifact_deinit(&artifact);
    free(facts);
    free(data);
}

static int child(const char *word, const char *dir)
{
    rig r;
    if (!rig_open(&r, "Portable Computing Language")) {
        return CHILD_NO_DEVICE;
    }
    if (strcmp(word, "probe") == 0) { /* PoCL is there */
    } else if (strcmp(word, "cold") == 0 || strcmp(word, "early") == 0) {
        cold(&r, dir, strcmp(word, "cold") == 0);
    } else {
        warm(&r, dir, strcmp(word, "warm") == 0 ? 32 : 64);
    }
    rig_close(&r);
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

typedef struct answer {
    int exit_code;
    unsigned new_files, grew;
} answer;

static answer start(const char *word, const char *dir)
{
    const char *argv[] = {NULL, word, dir, NULL};
    const char *const settings[] = {"POCL_KERNEL_CACHE=1", NULL};
    answer got = {.exit_code = child_run(dir, argv, settings)};
    char *rest = child_last.output;
    print_message("%s: %s", word, rest);
    got.new_files = (unsigned)strtoul(rest, &rest, 10);
    got.grew = (unsigned)strtoul(rest, NULL, 10);
    return got;
}

static void a_binary_captured_after_its_launch_compiles_nothing(void **state)
{
    const char *dir = (const char *)*state;
    assert_int_equal(start("cold", dir).exit_code, 0);
    answer got = start("warm", dir);
    assert_int_equal(got.exit_code, 0);
    assert_int_equal(got.new_files, 0);
    assert_int_equal(got.grew, 0);
    /* The check of the check: another local size is compiled, and asks to be captured. */
    got = start("other", dir);
    assert_int_equal(got.exit_code, 0);
    assert_true(got.new_files > 0);
    assert_int_equal(got.grew, 1);
}

static void a_binary_captured_before_any_launch_still_compiles(void **state)
{
    const char *dir = (const char *)*state;
    assert_int_equal(start("early", dir).exit_code, 0);
    answer got = start("warm", dir);
    assert_int_equal(got.exit_code, 0);
    assert_true(got.new_files > 0);
    assert_int_equal(got.grew, 1);
}

/* What PoCL is asked to finish is in a binary that was read before any launch. Then a launch takes
 * no linker. */
static void asked_for_shapes_are_finished_before_any_launch(void **state)
{
    const char *dir = (const char *)*state;
    assert_int_equal(setenv("POCL_BINARY_SPECIALIZE_WG", "7-1-1,32-1-1-goffs0-smallgrid", 1), 0);
    assert_int_equal(start("early", dir).exit_code, 0);
    assert_int_equal(unsetenv("POCL_BINARY_SPECIALIZE_WG"), 0);
    answer got = start("warm", dir);
    assert_int_equal(got.exit_code, 0);
    assert_int_equal(got.new_files, 0);
    assert_int_equal(got.grew, 0);
    got = start("other", dir);
    assert_true(got.new_files > 0);
    assert_int_equal(got.grew, 1);
}

/* And so is a function for any shape, always. */
static void general_functions_are_finished_before_any_launch(void **state)
{
    const char *dir = (const char *)*state;
    assert_int_equal(start("early", dir).exit_code, 0);
    assert_int_equal(setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 1), 0);
    for (int i = 0; i < 2; i++) {
        answer got = start(i == 0 ? "warm" : "other", dir);
        assert_int_equal(got.exit_code, 0);
        assert_int_equal(got.new_files, 0);
        assert_int_equal(got.grew, 0);
    }
    assert_int_equal(unsetenv("POCL_WORK_GROUP_SPECIALIZATION"), 0);
}

#define TEST(name) kt_dir_test(name)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(asked_for_shapes_are_finished_before_any_launch),
        TEST(general_functions_are_finished_before_any_launch),
        TEST(a_binary_captured_after_its_launch_compiles_nothing),
        TEST(a_binary_captured_before_any_launch_still_compiles),
    };
    if (argc == 3) {
        return child(argv[1], argv[2]);
    }
    return child_before_pocl(0, "probe", "-") + cmocka_run_group_tests(tests, NULL, NULL);
}
