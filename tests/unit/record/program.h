/* A recorded program that has something in every field, for the tests of recordings. */
#ifndef KILN_TESTS_RECORD_PROGRAM_H
#define KILN_TESTS_RECORD_PROGRAM_H

#include "record/request.h"

#define KS_PROGRAM_TEXT "__kernel void f(__global int *p) { *p = N; }"
#define KS_PROGRAM_HEADER "#define N 1"

/* Borrows static memory; equal each time. */
kn_recorded ks_recorded(void);
/* Everything that two of them can differ in. */
void ks_assert_same_program(const kn_recorded *a, const kn_recorded *b);

#endif
