/* Steps of a test that are processes of their own, with the same cache directory and a libOpenCL of
 * the test's choice. */
#ifndef KILN_TESTS_OPENCL_CHILD_H
#define KILN_TESTS_OPENCL_CHILD_H

#include <stdbool.h>

#include "support/cmocka.h"

#define CHILD_NO_DEVICE 77 /* a child's exit code */

/* How the last one ended, what it printed, and what its fake driver was called for. */
typedef struct child_end {
    int exit_code, signal;
    bool timed_out;
    char output[65536], errors[8192], calls[256];
} child_end;
extern child_end child_last;

/* What the next ones get: */
extern const char *child_variant;  /* a fake of tests/support/fakecl, or a directory; NULL: the
                                      system's library */
extern const char *child_pocl_dir; /* PoCL's cache; NULL: a new one each time */
extern uint64_t child_limit_ns;

/* Runs `argv` (argv[0] NULL: this test itself) with its cache, source.cl and log below `dir`, and
 * more variables, which end in NULL (NULL: none). Its exit code, -1 after a signal. */
int child_run(const char *dir, const char **argv, const char *const *settings);
/* The test with two words: it exits with 0, and what it prints begins so. */
void child_expect(const char *dir, const char *word, const char *argument, const char *beginning);
/* That the output of the last one begins so. */
void child_printed(const char *beginning);

/* Between the tests on fakes, which had so many failures, and those on PoCL: skips these where the
 * test with these words finds no device. */
int child_before_pocl(int failures, const char *word, const char *argument);
/* kt_tmpdir_teardown, and the system's library again. */
int child_teardown(void **state);

/* How often the fake driver of this process was called so. */
unsigned child_count_calls(char letter);

#endif
