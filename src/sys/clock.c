/* The clocks; see clock.h. */
#include "sys/clock.h"

#include <errno.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static int64_t read_clock(clockid_t which)
{
    struct timespec time = {0};
    (void)clock_gettime(which, &time); /* cannot fail for the clocks used here */
    return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

uint64_t kn_clock_now(void)
{
    return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

uint64_t kn_clock_busy(void)
{
    return (uint64_t)read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

#ifdef CLOCK_MONOTONIC_COARSE
#define ROUGH_MONOTONIC CLOCK_MONOTONIC_COARSE
#define ROUGH_REALTIME CLOCK_REALTIME_COARSE
#else
#define ROUGH_MONOTONIC CLOCK_MONOTONIC
#define ROUGH_REALTIME CLOCK_REALTIME
#endif

uint64_t kn_clock_now_roughly(void)
{
    return (uint64_t)read_clock(ROUGH_MONOTONIC);
}

int64_t kn_clock_wall_roughly(void)
{
    return read_clock(ROUGH_REALTIME);
}

int64_t kn_clock_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

void kn_clock_sleep(uint64_t ns)
{
    uint64_t until = kn_clock_now() + ns;
    struct timespec time = {.tv_sec = (time_t)(until / (uint64_t)NS_PER_S),
                            .tv_nsec = (long)(until % (uint64_t)NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}
