/* pthread_cancel(3) in a call that kiln stands in for. kiln reads and writes files, where a
 * cancelled thread ends: with locks held, and as the leader of a flight that others wait for. The
 * compiler alone may have no such place. So kiln's calls hold the cancellation until they return.
 */
#ifndef KILN_INTERPOSE_UNCANCELLED_H
#define KILN_INTERPOSE_UNCANCELLED_H

#include <pthread.h>

static inline int kn_cancel_hold(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void kn_cancel_restore(const int *before)
{
    (void)pthread_setcancelstate(*before, NULL);
}

/* A declaration: no cancellation up to the end of its block. */
#define KN_UNCANCELLED                                                                             \
    const int kn_cancel_before __attribute__((cleanup(kn_cancel_restore), unused)) =               \
        kn_cancel_hold()

#endif
