/* Makes the n-th allocation fail, to walk every "out of memory" path of the code under test.
 *
 * Every test program is linked with --wrap for malloc, calloc, realloc, aligned_alloc and strdup,
 * so that the calls made by libkiln's objects and by the test itself pass through here; those made
 * inside other shared libraries (cmocka, zstd, libc) do not. Typical use:
 *
 *     static bool body(void *user)            // true: it worked; false: it said "out of memory"
 *     {
 *         thing *t;
 *         kiln_status status = thing_create(&t, NULL);
 *         if (status == KILN_E_NOMEM) { return false; }
 *         assert_int_equal(status, KILN_OK);
 *         thing_destroy(t);
 *         return true;
 *     }
 *     kt_failalloc_each(body, NULL);          // under ASan this finds the leaks as well
 */
#ifndef KILN_TESTS_FAILALLOC_H
#define KILN_TESTS_FAILALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* From now on the n-th allocation of any thread (1: the next one) fails, once; with `on`, all later
 * ones fail too. */
void kt_failalloc_arm(uint64_t n, bool on);
void kt_failalloc_disarm(void);
/* Since the last arm: allocations asked for, and whether one was made to fail. */
uint64_t kt_failalloc_count(void);
bool kt_failalloc_fired(void);

/* Runs `body` with its 1st, 2nd, 3rd ... allocation failing until a run meets no failure, then
 * returns how many were tried. A body that meets no failure must return true, and the test fails if
 * it does not; a body that met one may return either. */
uint64_t kt_failalloc_each(bool (*body)(void *user), void *user);

#endif
