/* Traces: what is in them, that they are JSON at any moment, and that errors of the file are
 * reported or harmless. */
#include "unit/core/rig.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln/unstable/executor.h>

enum { ITEMS = 16 };

static char *trace_path(rig *r)
{
    char *path = kt_path(r->dir, "trace.json");
    (void)setenv("KILN_TRACE", path, 1);
    return path;
}

static json_t *parse(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (json == NULL) {
        print_error("%s:%d: %s\n", path, error.line, error.text);
        fail();
    }
    assert_true(json_is_array(json));
    return json;
}

static const char *text(const json_t *event, const char *key)
{
    const char *value = json_string_value(json_object_get(event, key));
    return value != NULL ? value : "";
}

static const char *argument(const json_t *event, const char *key)
{
    return text(json_object_get(event, "args"), key);
}

/* Spans of that name; *out_first is one of them. */
static size_t count(const json_t *json, const char *name, const json_t **out_first)
{
    size_t found = 0;
    const json_t *event = NULL;
    size_t index = 0;
    json_array_foreach(json, index, event)
    {
        assert_true(json_is_integer(json_object_get(event, "pid")));
        assert_true(json_is_integer(json_object_get(event, "tid")));
        if (strcmp(text(event, "ph"), "M") == 0) {
            continue;
        }
        assert_string_equal(text(event, "ph"), "X");
        assert_true(json_number_value(json_object_get(event, "ts")) >= 0);
        assert_true(json_number_value(json_object_get(event, "dur")) >= 0);
        if (strcmp(text(event, "name"), name) == 0) {
            *out_first = found == 0 ? event : *out_first;
            found++;
        }
    }
    return found;
}

static void execute(rig *r, kiln_program *program, int pieces)
{
    kiln_executor *executor = NULL;
    float a = 1, y[ITEMS] = {0};
    kiln_work_arg args[] = {{.kind = KILN_ARG_VALUE, .value = &a, .size = sizeof(a)},
                            {.kind = KILN_ARG_BUFFER, .size = sizeof(y), .input = y},
                            {.kind = KILN_ARG_BUFFER, .size = sizeof(y), .input = y, .output = y}};
    kiln_work work = {.struct_size = sizeof(work),
                      .program = program,
                      .entry = "saxpy",
                      .dims = 1,
                      .global = {ITEMS},
                      .args = args,
                      .arg_count = 3};
    RIG_OK(kiln_executor_create(r->device, NULL, &executor, &diag));
    for (int i = 0; i < pieces; i++) {
        RIG_OK(kiln_executor_submit(executor, &work, NULL, &diag));
        kiln_executor_drain(executor);
    }
    kiln_executor_destroy(executor);
}

static void a_trace_has_every_step_by_thread_and_device(void **state)
{
    rig *r = *state;
    char *path = trace_path(r);
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    kiln_program *program = rig_build(r, &source);
    rig_launch(r, program, ITEMS, 1);
    execute(r, program, 2);
    kiln_program_release(program);
    rig_close(r);

    const json_t *one = NULL;
    json_t *json = parse(path);
    assert_int_equal(count(json, "probe", &one), 1);
    assert_string_equal(argument(one, "what"), "fake");
    assert_string_equal(argument(one, "detail"), "ready");
    assert_int_equal(count(json, "open device", &one), 1);
    assert_int_equal(count(json, "key", &one), 2);
    assert_int_equal(count(json, "lookup", &one), 2);
    assert_string_equal(argument(one, "detail"), "compiled");
    assert_int_equal(count(json, "compile", &one), 2);
    assert_string_equal(argument(one, "what"), "test.fake");
    assert_string_equal(argument(one, "device"), "fake:0");
    assert_true(count(json, "load", &one) <= 1); /* none if the compile left a program */
    assert_int_equal(count(json, "build", &one), 1);
    assert_int_equal(count(json, "launch", &one), 3);
    assert_string_equal(argument(one, "what"), "saxpy");
    assert_int_equal(count(json, "wait", &one), 1);
    assert_int_equal(count(json, "download", &one), 2);
    json_int_t back = json_integer_value(json_object_get(one, "tid"));
    assert_int_equal(count(json, "upload", &one), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(one, "args"), "bytes")),
                     sizeof(float) * ITEMS);
    assert_true(json_integer_value(json_object_get(one, "tid")) != back);
    assert_int_equal(json_integer_value(json_object_get(one, "pid")), 1);
    /* The kernels themselves, on the device's track. */
    assert_int_equal(count(json, "saxpy", &one), 2);
    assert_int_equal(json_integer_value(json_object_get(one, "pid")), 2);
    json_decref(json);
    free(path);
}

/* A warm start says where it found the program. */
static void a_hit_is_told_as_such(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    rig_open(r, NULL);
    kiln_program_release(rig_build(r, &source));
    rig_close(r);
    char *path = trace_path(r);
    rig_open(r, NULL);
    kiln_program_release(rig_build(r, &source));
    rig_close(r);
    const json_t *one = NULL;
    json_t *json = parse(path);
    assert_int_equal(count(json, "compile", &one), 0);
    assert_int_equal(count(json, "lookup", &one), 2);
    assert_string_equal(argument(one, "detail"), "disk");
    json_decref(json);
    free(path);
}

static void a_process_that_ends_in_the_middle_leaves_json(void **state)
{
    rig *r = *state;
    char *path = trace_path(r);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        rig_open(r, NULL);
        kiln_source source = rig_source(rig_saxpy);
        execute(r, rig_build(r, &source), 400); /* more than the buffer takes */
        _exit(0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    const json_t *one = NULL;
    json_t *json = parse(path);
    assert_true(count(json, "upload", &one) > 100);
    json_decref(json);
    free(path);
}

static void any_name_makes_json(void **state)
{
    rig *r = *state;
    char *path = trace_path(r);
    (void)setenv("KILN_FAKE_DEVICE", "a \"quoted\" \\ \x01\xC3\xA9 name", 1);
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    source.name = "odd\n\"\\name.fake";
    kiln_program *program = rig_build(r, &source);
    execute(r, program, 1);
    kiln_program_release(program);
    rig_close(r);
    const json_t *one = NULL;
    json_t *json = parse(path);
    assert_int_equal(count(json, "compile", &one), 2);
    assert_string_equal(argument(one, "what"), "odd\n\"\\name.fake");
    json_decref(json);
    free(path);
}

static void a_file_that_cannot_be_written_is_told(void **state)
{
    rig *r = *state;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    char *missing = kt_at(r->dir, "no/such/folder.json");
    char *pipe = kt_at(r->dir, "pipe"); /* that nobody reads */
    const char *const paths[] = {missing, "/dev/full", pipe};
    assert_int_equal(mkfifo(pipe, 0600), 0);
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    options.backend = "fake";
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        options.trace = paths[i];
        assert_int_equal(kiln_runtime_create(&options, &runtime, &diag), KILN_E_IO);
        assert_null(runtime);
        assert_string_equal(diag.what, paths[i]);
        assert_non_null(strstr(diag.fix, "KILN_TRACE"));
        kiln_diag_clear(&diag);
    }
}

/* The disk is full, as a limit on the file's size has it: the trace ends, the threads that are
 * named afterwards go nowhere. */
static void a_trace_that_cannot_go_on_takes_nothing_more(void **state)
{
    rig *r = *state;
    char *path = kt_at(r->dir, "full.json");
    struct rlimit before;
    kn_trace *trace = NULL;
    RIG_OK(kn_trace_open(path, &trace, &diag));
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {4096, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    rig_log_start();
    for (uint64_t i = 0; i < 2000; i++) { /* more than is gathered before it is written */
        kn_trace_put(trace, i, i + 1, "event", &(kn_trace_about){.what = "what"});
    }
    const bool told = strstr(rig_log_stop(), "the trace ends here") != NULL;
    for (int i = 0; i < 4000; i++) {
        kn_trace_thread(trace, "a thread of an executor that comes and goes");
    }
    kn_trace_close(trace);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_true(told);
}

static void one_runtime_writes_a_file(void **state)
{
    rig *r = *state;
    char *path = trace_path(r);
    kiln_runtime_options options;
    kiln_runtime *second = NULL;
    rig_open(r, NULL);
    assert_non_null(r->runtime->trace);
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    options.backend = "fake";
    options.cache = r->cache;
    RIG_OK(kiln_runtime_create(&options, &second, &diag));
    assert_null(second->trace);
    kiln_runtime_destroy(second);
    rig_close(r);
    RIG_OK(kiln_runtime_create(
        &(kiln_runtime_options){.struct_size = sizeof(options), .backend = "fake", .trace = path},
        &second, &diag));
    assert_non_null(second->trace);
    kiln_runtime_destroy(second);
    json_decref(parse(path));
    free(path);
}

static void without_the_variable_there_is_no_trace(void **state)
{
    rig *r = *state;
    rig_open(r, NULL);
    assert_null(r->runtime->trace);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_trace_has_every_step_by_thread_and_device),
        TEST(a_hit_is_told_as_such),
        TEST(a_process_that_ends_in_the_middle_leaves_json),
        TEST(any_name_makes_json),
        TEST(a_file_that_cannot_be_written_is_told),
        TEST(a_trace_that_cannot_go_on_takes_nothing_more),
        TEST(one_runtime_writes_a_file),
        TEST(without_the_variable_there_is_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
