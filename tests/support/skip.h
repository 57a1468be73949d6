/* Leaving a test that cannot run here. `need` is the word that KILN_REQUIRE lists ("opencl"): if it
 * is listed there, the skip is a failure, so that a machine that has everything cannot be green by
 * skipping. */
#ifndef KILN_TESTS_SUPPORT_SKIP_H
#define KILN_TESTS_SUPPORT_SKIP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool kn_test_required(const char *need)
{
    const char *list = getenv("KILN_REQUIRE");
    size_t length = strlen(need);
    while (list && *list) {
        size_t word = strcspn(list, ",");
        if (word == length && strncmp(list, need, word) == 0) {
            return true;
        }
        list += word + (list[word] == ',');
    }
    return false;
}

/* Whether the tests run under QEMU, whose kernel is not all that the machine's is. */
static inline bool kn_test_is_emulated(void)
{
    return getenv("EMULATED_BY") != NULL;
}

/* Ends the test program: exit 77 (skipped), or 1 when `need` is required. */
static inline _Noreturn void kn_test_skip(const char *need, const char *reason)
{
    bool required = kn_test_required(need);
    (void)printf("%s %s: %s\n", required ? "REQUIRED" : "SKIP", need, reason);
    (void)fflush(stdout);
    exit(required ? 1 : 77);
}

#endif
