/* The floating-point state of a thread: rounding, traps, subnormal numbers taken as zero. Compilers
 * in this process fold constants in the state that their caller left, and no key has it: kiln's own
 * compiles run in the default state, and what stands in for a compiler passes on calls that are
 * made in another one. */
#ifndef KILN_SYS_FPSTATE_H
#define KILN_SYS_FPSTATE_H

#include <fenv.h>
#include <stdbool.h>

/* Why a call is passed on. */
#define KN_FP_REASON "the caller's floating-point state is not the default"

typedef struct kn_fp_state {
    fenv_t saved;
    bool changed;
} kn_fp_state;

/* Whether this thread computes as a new process does. Status flags do not count. */
bool kn_fp_is_default(void);

/* Makes it so until kn_fp_leave, which puts back what was there. */
void kn_fp_enter(kn_fp_state *out_state);
void kn_fp_leave(const kn_fp_state *state);

#endif
