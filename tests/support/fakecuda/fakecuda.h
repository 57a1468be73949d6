/* What the files of the fake libcuda share. */
#ifndef KILN_TESTS_FAKECUDA_H
#define KILN_TESTS_FAKECUDA_H

#include "apis/cuda/backend/types.h"

/* fakehip.c has these calls inside it, under names of its own. */
#ifdef FAKE_INSIDE
#define EXPORT __attribute__((visibility("hidden")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { FAKECUDA_INVALID_CONTEXT = 201 };

/* The device of the thread's current context, or -1 without one. */
__attribute__((visibility("hidden"))) int fakecuda_device(void);

#define IN_CONTEXT()                                                                               \
    do {                                                                                           \
        if (fakecuda_device() < 0) {                                                               \
            return FAKECUDA_INVALID_CONTEXT;                                                       \
        }                                                                                          \
    } while (0)

#endif
