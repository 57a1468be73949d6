/* cmocka with what it wants included before it. */
#ifndef KILN_TESTS_CMOCKA_H
#define KILN_TESTS_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
