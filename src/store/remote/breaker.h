/* A circuit breaker: after an error nothing is tried for a while, and then one thing is. Not
 * thread-safe; times by kn_clock_now.
 *
 * A timeout, or nobody answering, opens it at once; a server that answers with errors has three
 * tries. It stays open for half a second at first, twice as long each time, at most a minute; when
 * that time is over it is due: one try decides. */
#ifndef KILN_STORE_BREAKER_H
#define KILN_STORE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define KN_BREAKER_TRIES 3u
#define KN_BREAKER_FIRST_NS UINT64_C(500000000)
#define KN_BREAKER_LAST_NS UINT64_C(60000000000)

typedef struct kn_breaker {
    bool open;
    bool silent;       /* it did not answer; else it answered with errors */
    uint32_t failures; /* one after the other */
    uint64_t pause_ns; /* of the last opening; 0: none since it last worked */
    uint64_t due;      /* when an open one may be tried */
} kn_breaker;

static inline void kn_breaker_failed(kn_breaker *breaker, uint64_t now, bool at_once)
{
    breaker->failures++;
    if (!at_once && !breaker->open && breaker->failures < KN_BREAKER_TRIES) {
        return;
    }
    breaker->pause_ns = breaker->pause_ns == 0 ? KN_BREAKER_FIRST_NS : breaker->pause_ns * 2;
    breaker->pause_ns =
        breaker->pause_ns < KN_BREAKER_LAST_NS ? breaker->pause_ns : KN_BREAKER_LAST_NS;
    breaker->open = true;
    breaker->silent = at_once;
    breaker->due = now + breaker->pause_ns;
}

/* Half open: things are tried again, and the next failure opens it for twice as long. */
static inline void kn_breaker_try(kn_breaker *breaker)
{
    breaker->open = false;
    breaker->failures = KN_BREAKER_TRIES - 1;
}

static inline void kn_breaker_worked(kn_breaker *breaker)
{
    breaker->open = false;
    breaker->silent = false;
    breaker->failures = 0;
    breaker->pause_ns = 0;
}

static inline bool kn_breaker_due(const kn_breaker *breaker, uint64_t now)
{
    return breaker->open && now >= breaker->due;
}

#endif
