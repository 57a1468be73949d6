/* Tests that run themselves as other processes: `program ROLE ARGUMENT…`. */
#ifndef KILN_TESTS_WINDOWS_AGAIN_H
#define KILN_TESTS_WINDOWS_AGAIN_H

#include <stdlib.h>

#include "support/cmocka.h"
#include "sys/paths.h"
#include "sys/process.h"

/* Runs this program with up to three arguments (NULL: no more); `limit_ms` 0: none. */
static inline kn_process_result run_again(const char *role, const char *a, const char *b,
                                          uint64_t limit_ms)
{
    char *own = kn_paths_own_module();
    const char *argv[] = {own, role, a, a != NULL ? b : NULL, NULL};
    const kn_process_request request = {.argv = argv, .limit_ns = limit_ms * 1000000};
    kn_process_result result;
    assert_int_equal(kn_process_run(&request, &result, NULL), KILN_OK);
    free(own);
    return result;
}

#endif
