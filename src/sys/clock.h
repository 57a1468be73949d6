/* Clocks in nanoseconds: monotonic for durations and deadlines, wall for stamps in files. */
#ifndef KILN_SYS_CLOCK_H
#define KILN_SYS_CLOCK_H

#include <stdint.h>

uint64_t kn_clock_now(void);
int64_t kn_clock_wall(void);
/* Both as of the last tick of the system (milliseconds ago), for a fifth of the price. */
uint64_t kn_clock_now_roughly(void);
int64_t kn_clock_wall_roughly(void);
/* Processor time that this process has used, all its threads together. */
uint64_t kn_clock_busy(void);
void kn_clock_sleep(uint64_t ns);

#endif
