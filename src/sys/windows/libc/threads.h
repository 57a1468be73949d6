/* The one function of C11's <threads.h> that the library uses (base/log.c), for C libraries without
 * the header. */
#ifndef KILN_SYS_WINDOWS_LIBC_THREADS_H
#define KILN_SYS_WINDOWS_LIBC_THREADS_H

#include <time.h>

__declspec(dllimport) void __stdcall Sleep(unsigned long milliseconds);

static inline int thrd_sleep(const struct timespec *duration, struct timespec *remaining)
{
    (void)remaining; /* nothing interrupts it */
    Sleep((unsigned long)duration->tv_sec * 1000 +
          (unsigned long)((duration->tv_nsec + 999999) / 1000000));
    return 0;
}

#endif
