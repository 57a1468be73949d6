/* Children and locks under Windows: what a child is given, how it ends, and what it leaves. */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "support/tmpdir.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/lock.h"
#include "windows/again.h"

#define HANG_MS 60000

/* ---- the children ---- */

static int child_echo(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        (void)printf("[%s]", argv[i]);
    }
    return 7;
}

static int child_copy(void)
{
    char block[4096];
    size_t n = 0;
    (void)_setmode(0, _O_BINARY);
    (void)_setmode(1, _O_BINARY);
    while ((n = fread(block, 1, sizeof block, stdin)) > 0) {
        (void)fwrite(block, 1, n, stdout);
    }
    (void)fprintf(stderr, "%s", getenv("KILN_TEST_EXTRA"));
    return 0;
}

static int child_flood(void)
{
    char block[4096];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 512; i++) {
        (void)fwrite(block, 1, sizeof block, stdout);
    }
    return 0;
}

/* Takes a lock and is killed with it, without a chance to let go. */
static int child_hold(const char *path)
{
    kn_lock_file *file = NULL;
    if (kn_lock_file_open(path, &file, NULL) != KILN_OK || kn_lock_try(file, 5) != KILN_OK) {
        return 1;
    }
    (void)TerminateProcess(GetCurrentProcess(), 9);
    return 0;
}

/* Notes its number in a file, and stays. */
static int child_linger(const char *path)
{
    char text[32];
    const int size = snprintf(text, sizeof text, "%lu.", GetCurrentProcessId());
    kt_file_write(path, text, (size_t)size);
    Sleep(INFINITE);
    return 0;
}

/* Waits for a child that lingers. */
static int child_wait(const char *path)
{
    kn_process_result result = run_again("linger", path, NULL, HANG_MS);
    kn_process_result_deinit(&result);
    return 0;
}

static int child(int argc, char **argv)
{
    if (strcmp(argv[1], "linger") == 0 && argc == 3) {
        return child_linger(argv[2]);
    }
    if (strcmp(argv[1], "wait") == 0 && argc == 3) {
        return child_wait(argv[2]);
    }
    if (strcmp(argv[1], "echo") == 0) {
        return child_echo(argc, argv);
    }
    if (strcmp(argv[1], "copy") == 0) {
        return child_copy();
    }
    if (strcmp(argv[1], "flood") == 0) {
        return child_flood();
    }
    if (strcmp(argv[1], "crash") == 0) {
        (void)SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
        RaiseException(EXCEPTION_ACCESS_VIOLATION, EXCEPTION_NONCONTINUABLE, 0, NULL);
    }
    if (strcmp(argv[1], "hold") == 0 && argc == 3) {
        return child_hold(argv[2]);
    }
    Sleep(INFINITE);
    return 0;
}

/* ---- the tests ---- */

static void arguments_arrive_as_they_are(void **state)
{
    static const char *const rows[][2] = {
        {"plain", "with blank"},
        {"", "\"quoted\""},
        {"a\\", "a\\\\"},
        {"\\\"", "a\\\\\"b c\\"},
        {"C:\\dir with blank\\", "%PATH% ^& | > <"},
    };
    char expected[128];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kn_process_result result = run_again("echo", rows[i][0], rows[i][1], HANG_MS);
        (void)snprintf(expected, sizeof expected, "[%s][%s]", rows[i][0], rows[i][1]);
        assert_int_equal(result.exit_code, 7);
        assert_string_equal(result.out, expected);
        assert_null(result.err);
        kn_process_result_deinit(&result);
    }
}

static void input_output_and_environment_are_passed(void **state)
{
    enum { SIZE = 300000 };
    static const char *const extra[] = {"KILN_TEST_EXTRA=it is there", NULL};
    char *own = kn_paths_own_module();
    char *input = malloc(SIZE);
    (void)state;
    for (size_t i = 0; i < SIZE; i++) {
        input[i] = (char)(i * 31 >> 3);
    }
    const char *argv[] = {own, "copy", NULL};
    const kn_process_request request = {.argv = argv,
                                        .environment = extra,
                                        .dir = *state,
                                        .input = input,
                                        .input_size = SIZE,
                                        .limit_ns = HANG_MS * UINT64_C(1000000)};
    kn_process_result result;
    assert_int_equal(setenv("kiln_test_extra", "replaced", 1), 0);
    assert_int_equal(kn_process_run(&request, &result, NULL), KILN_OK);
    assert_int_equal(result.exit_code, 0);
    assert_int_equal(result.out_size, SIZE);
    assert_memory_equal(result.out, input, SIZE);
    assert_string_equal(result.err, "it is there");
    kn_process_result_deinit(&result);
    free(input);
    free(own);
}

static void output_is_bounded(void **state)
{
    (void)state;
    kn_process_result result = run_again("flood", NULL, NULL, HANG_MS);
    assert_int_equal(result.exit_code, 0);
    assert_int_equal(result.out_size, 1 << 20);
    kn_process_result_deinit(&result);
}

static void an_exception_is_told_from_an_exit(void **state)
{
    (void)state;
    kn_process_result result = run_again("crash", NULL, NULL, HANG_MS);
    assert_int_equal(result.exit_code, -1);
    assert_string_equal(kn_process_signal_name(result.signal), "an access violation");
    assert_false(result.timed_out);
    kn_process_result_deinit(&result);
}

static void a_child_over_its_limit_is_ended(void **state)
{
    (void)state;
    kn_process_result result = run_again("sleep", NULL, NULL, 200);
    assert_true(result.timed_out);
    assert_int_equal(result.exit_code, -1);
    kn_process_result_deinit(&result);
}

static void what_is_no_program_is_an_error(void **state)
{
    char *path = kt_at(*state, "not.exe");
    const char *argv[] = {path, NULL};
    const kn_process_request request = {.argv = argv};
    kn_process_result result;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kn_process_run(&request, &result, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.what, "not.exe"));
    kiln_diag_clear(&diag);
    kt_file_write(path, "text", 4);
    assert_int_equal(kn_process_run(&request, &result, NULL), KILN_E_UNAVAILABLE);
}

static void locks_exclude_each_other(void **state)
{
    char *path = kt_at(*state, "lock");
    kn_lock_file *one = NULL, *two = NULL;
    const uint64_t distant = (UINT64_C(1) << 62) - 1;
    assert_int_equal(kn_lock_file_open(path, &one, NULL), KILN_OK);
    assert_int_equal(kn_lock_file_open(path, &two, NULL), KILN_OK);
    assert_int_equal(kn_lock_try(one, distant), KILN_OK);
    assert_int_equal(kn_lock_try(two, distant), KILN_E_BUSY);
    assert_int_equal(kn_lock_try(two, distant - 1), KILN_OK);
    assert_int_equal(kn_lock_try(one, distant + 1), KILN_E_INVALID);
    kn_lock_drop(one, distant);
    assert_int_equal(kn_lock_try(two, distant), KILN_OK);
    kn_lock_file_close(two); /* drops both */
    assert_int_equal(kn_lock_try(one, distant), KILN_OK);
    assert_int_equal(kn_lock_try(one, distant - 1), KILN_OK);
    kn_lock_file_close(one);
    assert_int_equal(kt_file_count(*state), 1);
}

static void a_lock_ends_with_its_process(void **state)
{
    char *path = kt_at(*state, "lock");
    kn_lock_file *file = NULL;
    kn_process_result result = run_again("hold", path, NULL, HANG_MS);
    assert_int_equal(result.exit_code, 9);
    assert_int_equal(kn_lock_file_open(path, &file, NULL), KILN_OK);
    assert_int_equal(kn_lock_try(file, 5), KILN_OK);
    kn_lock_file_close(file);
    kn_process_result_deinit(&result);
}

/* The number in the file, when all of it is there. */
static DWORD wait_for_number(const char *path)
{
    for (uint64_t start = kn_clock_now(); kn_clock_now() - start < HANG_MS * UINT64_C(1000000);) {
        char *text = kt_file_exists(path) ? kt_file_read(path, NULL) : NULL;
        const DWORD number =
            text != NULL && strchr(text, '.') != NULL ? (DWORD)strtoul(text, NULL, 10) : 0;
        free(text);
        if (number != 0) {
            return number;
        }
        Sleep(10);
    }
    return 0;
}

/* However this process ends, Ctrl-C among the ways: a compiler that nobody waits for is gone. */
static void a_child_ends_with_its_parent(void **state)
{
    STARTUPINFOA start = {.cb = sizeof start};
    PROCESS_INFORMATION parent = {0};
    char line[2048];
    char *path = kt_at(*state, "number"), *own = kn_paths_own_module();
    (void)snprintf(line, sizeof line, "\"%s\" wait \"%s\"", own, path);
    assert_true(CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &start, &parent));
    HANDLE child = OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, FALSE, wait_for_number(path));
    assert_non_null(child);
    assert_int_equal(WaitForSingleObject(child, 0), WAIT_TIMEOUT);
    assert_true(TerminateProcess(parent.hProcess, 9));
    const DWORD ended = WaitForSingleObject(child, HANG_MS / 4);
    (void)TerminateProcess(child, 1); /* or it would stay */
    assert_int_equal(ended, WAIT_OBJECT_0);
    (void)CloseHandle(child);
    (void)CloseHandle(parent.hThread);
    (void)CloseHandle(parent.hProcess);
    free(own);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return child(argc, argv);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_arrive_as_they_are),
        kt_dir_test(input_output_and_environment_are_passed),
        cmocka_unit_test(output_is_bounded),
        cmocka_unit_test(an_exception_is_told_from_an_exit),
        cmocka_unit_test(a_child_over_its_limit_is_ended),
        kt_dir_test(what_is_no_program_is_an_error),
        kt_dir_test(locks_exclude_each_other),
        kt_dir_test(a_lock_ends_with_its_process),
        kt_dir_test(a_child_ends_with_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
