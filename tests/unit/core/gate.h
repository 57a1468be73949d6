/* A backend "gated" for tests: the fake one, whose compiler waits at a gate with every source that
 * is called "slow". Conditions instead of times. */
#ifndef KILN_TESTS_CORE_GATE_H
#define KILN_TESTS_CORE_GATE_H

#include "sys/thread.h"
#include "unit/core/rig.h"

enum { GATE_WIDTH = 8 };

typedef struct gate_state {
    kn_mutex mutex;
    kn_cond cond;
    bool shut;                /* compiles of "slow" sources wait */
    bool fails;               /* and then fail */
    unsigned waiting;         /* at the gate now */
    unsigned begun, most, in; /* compiles of sources: all, at once at most, now */
    char order[64][32];       /* names, as they began */
} gate_state;
extern gate_state gate;

/* For cmocka: once; and before each test, with $KILN_COMPILE_JOBS at 2. */
int gate_register(void **state);
int gate_setup(void **state);

void gate_shut(bool fails);
void gate_open(void);
/* Until so many compiles wait. */
void gate_await(unsigned waiting);

/* y = a * x + y, and `number` more. */
typedef struct kernel {
    char name[32], text[128];
    kiln_source source;
} kernel;
void kernel_init(kernel *k, const char *kind, int number);

/* Launches it, and gives what the number added. */
float gate_run(rig *r, kiln_program *program);

#endif
