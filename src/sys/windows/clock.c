/* The clocks; see clock.h. */
#include "sys/clock.h"

#include <windows.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define EPOCH_1970 INT64_C(116444736000000000) /* in steps of 100 ns since 1601 */

uint64_t kn_clock_now(void)
{
    LARGE_INTEGER ticks;
    LARGE_INTEGER per_second;
    (void)QueryPerformanceCounter(&ticks); /* neither fails since Windows XP */
    (void)QueryPerformanceFrequency(&per_second);
    uint64_t count = (uint64_t)ticks.QuadPart;
    uint64_t rate = (uint64_t)per_second.QuadPart;
    return count / rate * NS_PER_S + count % rate * NS_PER_S / rate;
}

uint64_t kn_clock_now_roughly(void)
{
    return kn_clock_now(); /* the ticks of GetTickCount64 begin elsewhere */
}

static uint64_t steps_of(const FILETIME *time)
{
    return (uint64_t)time->dwHighDateTime << 32 | time->dwLowDateTime;
}

uint64_t kn_clock_busy(void)
{
    FILETIME begun, ended, kernel, user;
    return GetProcessTimes(GetCurrentProcess(), &begun, &ended, &kernel, &user)
               ? (steps_of(&kernel) + steps_of(&user)) * 100
               : 0;
}

static int64_t since_1970(const FILETIME *time)
{
    return ((int64_t)steps_of(time) - EPOCH_1970) * 100;
}

int64_t kn_clock_wall(void)
{
    FILETIME time;
    GetSystemTimePreciseAsFileTime(&time);
    return since_1970(&time);
}

int64_t kn_clock_wall_roughly(void)
{
    FILETIME time;
    GetSystemTimeAsFileTime(&time);
    return since_1970(&time);
}

void kn_clock_sleep(uint64_t ns)
{
    uint64_t until = kn_clock_now() + ns;
    for (uint64_t now = kn_clock_now(); now < until; now = kn_clock_now()) {
        uint64_t ms = (until - now + NS_PER_MS - 1) / NS_PER_MS;
        Sleep(ms < 1000000 ? (DWORD)ms : 1000000);
    }
}
