/* Random bits for unique names; see random.h. */
#include "sys/random.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "sys/clock.h"
#include "sys/process.h"
#include "sys/thread.h"

#ifdef _WIN32
#include <windows.h>

#include <bcrypt.h>

static bool ask_system(uint64_t *out)
{
    return BCryptGenRandom(NULL, (PUCHAR)out, sizeof *out, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0;
}
#else
#include <sys/random.h> // NOLINT(readability-duplicate-include): the system's, not ours

static bool ask_system(uint64_t *out)
{
    return getrandom(out, sizeof *out, GRND_NONBLOCK) == (ssize_t)sizeof *out;
}
#endif

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
    if (ask_system(&value)) {
        return value;
    }
    uint64_t call = atomic_fetch_add(&calls, 1);
    value = mix_bits((uint64_t)kn_clock_wall() ^
                     mix_bits((uint64_t)kn_process_id() << 32 ^ kn_thread_self() ^ call));
    return mix_bits(value ^ kn_clock_now());
}
