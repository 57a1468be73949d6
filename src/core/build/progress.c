/* The ticker: a thread that lives only as long as the slow work, and only if a caller listens. A
 * hit starts none. */
#include "core/build/progress.h"

#include <string.h>

#include "base/text.h"
#include "sys/clock.h"

#define SECOND_NS 1000000000ull

static void report_progress(const kn_ticker *ticker)
{
    double seconds = (double)(kn_clock_now() - ticker->start_ns) / 1e9;
    ticker->progress(ticker->user, ticker->what, seconds);
}

static void ticker_main(void *user)
{
    kn_ticker *ticker = (kn_ticker *)user;
    uint64_t next = ticker->start_ns + SECOND_NS;
    kn_mutex_lock(&ticker->mutex);
    while (!ticker->stop) {
        if (!kn_cond_wait_until(&ticker->cond, &ticker->mutex, next) && !ticker->stop) {
            report_progress(ticker);
            next += SECOND_NS;
        }
    }
    kn_mutex_unlock(&ticker->mutex);
}

void kn_ticker_start(kn_ticker *ticker, const kiln_build_options *options, const char *stage,
                     const char *name)
{
    memset(ticker, 0, sizeof(*ticker));
    if (options->progress == NULL) {
        return;
    }
    ticker->progress = options->progress;
    ticker->user = options->user;
    ticker->start_ns = kn_clock_now();
    kn_text_putf(ticker->what, sizeof(ticker->what), "%s (%s)", name, stage);
    kn_mutex_init(&ticker->mutex);
    kn_cond_init(&ticker->cond);
}

/* Under the mutex. Without a thread there are no ticks, and nothing else is lost. */
static void start_ticking(kn_ticker *ticker)
{
    if (ticker->thread == NULL) {
        (void)kn_thread_start(ticker_main, ticker, &ticker->thread, NULL);
    }
}

void kn_ticker_wait(kn_ticker *ticker)
{
    if (ticker != NULL && ticker->progress != NULL) {
        kn_mutex_lock(&ticker->mutex);
        start_ticking(ticker);
        kn_mutex_unlock(&ticker->mutex);
    }
}

void kn_ticker_compile(kn_ticker *ticker)
{
    if (ticker != NULL && ticker->progress != NULL) {
        kn_mutex_lock(&ticker->mutex);
        start_ticking(ticker);
        ticker->progress(ticker->user, ticker->what, 0.0);
        kn_mutex_unlock(&ticker->mutex);
    }
}

void kn_ticker_stop(kn_ticker *ticker)
{
    if (ticker->progress == NULL) {
        return;
    }
    kn_mutex_lock(&ticker->mutex);
    ticker->stop = true;
    kn_cond_signal(&ticker->cond);
    kn_mutex_unlock(&ticker->mutex);
    if (ticker->thread != NULL) {
        kn_thread_join(ticker->thread);
    }
    kn_cond_deinit(&ticker->cond);
    kn_mutex_deinit(&ticker->mutex);
}
