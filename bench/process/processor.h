/* The processor time of this process and of the children that it has waited for, in ms, as a line
 * of its own: how much the first result took, before anything is closed. */
#ifndef KILN_BENCH_PROCESSOR_H
#define KILN_BENCH_PROCESSOR_H

#include <stdio.h>
#include <sys/resource.h>

static inline void print_processor_time(void)
{
    double ms = 0;
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        if (getrusage(whose[i], &usage) == 0) {
            ms += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
                  (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-3;
        }
    }
    printf("processor %.3f\n", ms);
    (void)fflush(stdout);
}

#endif
