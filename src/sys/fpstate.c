/* See fpstate.h. */
#include "sys/fpstate.h"

#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>

#define CONTROL_DEFAULT 0x1f80u /* all exceptions masked, to nearest, no FTZ, no DAZ */
#define CONTROL_BITS 0xffc0u    /* all but the status */

/* The x87 half may have traps of its own. */
static bool is_control_default(void)
{
#ifdef __linux__
    fenv_t now;
    const bool traps = fegetenv(&now) != 0 || (now.__control_word & FE_ALL_EXCEPT) != FE_ALL_EXCEPT;
#else
    const bool traps = false;
#endif
    return !traps && (_mm_getcsr() & CONTROL_BITS) == CONTROL_DEFAULT;
}

static void set_control_default(void)
{
    _mm_setcsr(CONTROL_DEFAULT);
}
#elif defined(__aarch64__) && defined(__linux__)
static bool is_control_default(void)
{
    fenv_t now;
    return fegetenv(&now) == 0 && now.__fpcr == 0;
}

static void set_control_default(void)
{
}
#elif defined(__s390x__) && defined(__linux__)
#define TRAP_BITS 0xf8000000u /* z/Architecture, "Floating-Point-Control Register": IEEE masks */

static bool is_control_default(void)
{
    fenv_t now;
    return fegetenv(&now) == 0 && (now.__fpc & TRAP_BITS) == 0;
}

static void set_control_default(void)
{
}
#else
static bool is_control_default(void)
{
    return true;
}

static void set_control_default(void)
{
}
#endif

bool kn_fp_is_default(void)
{
    return is_control_default() && fegetround() == FE_TONEAREST;
}

void kn_fp_enter(kn_fp_state *out_state)
{
    out_state->changed = !kn_fp_is_default() && fegetenv(&out_state->saved) == 0;
    if (out_state->changed) {
        (void)fesetenv(FE_DFL_ENV);
        set_control_default();
    }
}

void kn_fp_leave(const kn_fp_state *state)
{
    if (state->changed) {
        (void)fesetenv(&state->saved);
    }
}
