/* Random bits for unique names; not for secrets. */
#ifndef KILN_SYS_RANDOM_H
#define KILN_SYS_RANDOM_H

#include <stdint.h>

/* 64 bits from the system; falls back to clock, process and counter so that it cannot fail. */
uint64_t kn_random_u64(void);

#endif
