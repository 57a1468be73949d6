/* Reports to a caller once a second that a compile, or a wait for another's, is still going on. */
#ifndef KILN_CORE_PROGRESS_H
#define KILN_CORE_PROGRESS_H

#include "kiln/program.h"

#include "sys/thread.h"

typedef struct kn_ticker {
    kiln_progress_fn *progress; /* NULL: nobody wants to know, and nothing below is used */
    void *user;
    char what[256];
    uint64_t start_ns;
    bool stop;
    kn_mutex mutex;
    kn_cond cond;
    kn_thread *thread;
} kn_ticker;

/* Start and stop frame what may become slow; without a callback in `options` all of these do
 * nothing. */
void kn_ticker_start(kn_ticker *ticker, const kiln_build_options *options, const char *stage,
                     const char *name);
/* A wait for another's compile may follow: from here on there are ticks. `ticker` may be NULL. */
void kn_ticker_wait(kn_ticker *ticker);
/* A compile starts now: reported at once, and ticks follow. `ticker` may be NULL. */
void kn_ticker_compile(kn_ticker *ticker);
void kn_ticker_stop(kn_ticker *ticker);

#endif
