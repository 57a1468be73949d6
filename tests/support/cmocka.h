/* cmocka with what it wants included before it. */
#ifndef KILN_TESTS_CMOCKA_H
#define KILN_TESTS_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Few tests look at their state, and few stubs at all their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* assert_in_range takes unsigned numbers alone, and cmocka 2 deprecates it. */
#define assert_between(value, least, most) assert_true((value) >= (least) && (value) <= (most))

#endif
