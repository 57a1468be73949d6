#include "support/opencl_child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/process.h"

enum { SETTINGS = 16 };

child_end child_last;
const char *child_variant, *child_pocl_dir;
uint64_t child_limit_ns = 100000000000U;

static void keep_text(char *out, size_t size, const char *text)
{
    (void)snprintf(out, size, "%s", text != NULL ? text : "");
}

static void keep_end(const kn_process_result *result, const char *log)
{
    char *calls = kt_file_read(log, NULL);
    child_last.exit_code = result->exit_code;
    child_last.signal = result->signal;
    child_last.timed_out = result->timed_out;
    keep_text(child_last.output, sizeof(child_last.output), result->out);
    keep_text(child_last.errors, sizeof(child_last.errors), result->err);
    keep_text(child_last.calls, sizeof(child_last.calls), calls);
    if (result->exit_code != 0 && result->exit_code != CHILD_NO_DEVICE) {
        print_message("%s\n", child_last.errors);
    }
    free(calls);
}

int child_run(const char *dir, const char **argv, const char *const *settings)
{
    static char self[4096];
    kn_process_result result = {0};
    char *pocl = child_pocl_dir == NULL ? kt_tmpdir_create() : NULL;
    char *log = kt_at(dir, "log");
    char variables[5][4200];
    const char *environment[SETTINGS] = {variables[0], variables[1], variables[2], variables[3]};
    size_t count = 4;
    kt_file_write(log, "", 0);
    (void)snprintf(variables[0], sizeof(variables[0]), "POCL_CACHE_DIR=%s",
                   pocl != NULL ? pocl : child_pocl_dir);
    (void)snprintf(variables[1], sizeof(variables[1]), "KILN_CACHE_DIR=%s/cache", dir);
    (void)snprintf(variables[2], sizeof(variables[2]), "TEST_SOURCE=%s/source.cl", dir);
    (void)snprintf(variables[3], sizeof(variables[3]), "FAKECL_LOG=%s", log);
    if (child_variant != NULL) {
        const bool whole = child_variant[0] == '/';
        (void)snprintf(variables[4], sizeof(variables[4]), "LD_LIBRARY_PATH=%s%s%s",
                       whole ? "" : KILN_FAKECL_DIR, whole ? "" : "/", child_variant);
        environment[count++] = variables[4];
    }
    for (size_t i = 0; settings != NULL && settings[i] != NULL && count < SETTINGS - 1; i++) {
        environment[count++] = settings[i];
    }
    if (argv[0] == NULL) {
        assert_non_null(realpath("/proc/self/exe", self));
        argv[0] = self;
    }
    const kn_process_request request = {
        .argv = argv, .environment = environment, .limit_ns = child_limit_ns};
    assert_int_equal(kn_process_run(&request, &result, NULL), KILN_OK);
    keep_end(&result, log);
    kn_process_result_deinit(&result);
    if (pocl != NULL) {
        kt_tmpdir_remove(pocl);
    }
    return child_last.exit_code;
}

void child_printed(const char *beginning)
{
    const size_t length = strlen(beginning);
    if (strncmp(child_last.output, beginning, length) != 0) {
        print_error("not '%s', but %s\n", beginning, child_last.output);
    }
    assert_int_equal(strncmp(child_last.output, beginning, length), 0);
}

void child_expect(const char *dir, const char *word, const char *argument, const char *beginning)
{
    const char *argv[] = {NULL, word, argument, NULL};
    assert_int_equal(child_run(dir, argv, NULL), 0);
    child_printed(beginning);
}

int child_before_pocl(int failures, const char *word, const char *argument)
{
    const char *argv[] = {NULL, word, argument, NULL};
    char *dir = kt_tmpdir_create();
    const int code = child_run(dir, argv, NULL);
    kt_tmpdir_remove(dir);
    if (failures == 0 && code == CHILD_NO_DEVICE) {
        kn_test_skip("opencl", "no OpenCL device");
    }
    return failures;
}

int child_teardown(void **state)
{
    child_variant = NULL;
    return kt_tmpdir_teardown(state);
}

unsigned child_count_calls(char letter)
{
    char *log = kt_file_read(getenv("FAKECL_LOG"), NULL);
    unsigned found = 0;
    for (const char *at = log; at != NULL && *at != '\0'; at++) {
        found += *at == letter;
    }
    free(log);
    return found;
}
