/* What forward.S, the way to a function without a documented signature, asks of the library that it
 * is in. Each has one such function, KN_FORWARDED. */
#ifndef KILN_INTERPOSE_FORWARD_H
#define KILN_INTERPOSE_FORWARD_H

typedef void kn_forward_fn(void); /* of whichever type it is */

#define KN_FORWARD_HIDDEN __attribute__((visibility("hidden")))

/* The real function, once it is found. */
extern KN_FORWARD_HIDDEN kn_forward_fn *_Atomic kn_forward_real;

/* Finds it for the code at `caller` and sets kn_forward_real. Never NULL: a function that gives an
 * error stands for one that the real library lacks. Leaves errno alone. Threads: any. */
KN_FORWARD_HIDDEN kn_forward_fn *kn_forward_find(const void *caller);

#endif
