/* Random bits for unique names; see random.h. */
#include "sys/random.h"

#include <stdatomic.h>
#include <windows.h>

#include <bcrypt.h>

#include "sys/clock.h"

/* The finaliser of splitmix64: spreads few changed bits over all. */
static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t kn_random_u64(void)
{
    static _Atomic uint64_t calls;
    uint64_t value = 0;

    if (BCryptGenRandom(NULL, (PUCHAR)&value, sizeof value, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0) {
        return value;
    }
    uint64_t call = atomic_fetch_add(&calls, 1);
    value = mix_bits((uint64_t)kn_clock_wall() ^
                     mix_bits((uint64_t)GetCurrentProcessId() << 32 ^ GetCurrentThreadId() ^ call));
    return mix_bits(value ^ kn_clock_now());
}
