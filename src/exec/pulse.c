/* Pulses of locks that are held, and watching those of others. This file must not know what is
 * locked. */
#include "exec/pulse.h"

#include "sys/clock.h"
#include "sys/process.h"

/* Between 2^58 and 2^59: 26 bits of the lock's, then a tag. */
#define TAGS (UINT64_C(1) << 32)
#define LOCKS (UINT64_C(1) << 26)

/* 0 where this process cannot tell what a tag means. */
static uint64_t find_base(uint64_t id)
{
    const uint64_t space = kn_process_space();
    return space != 0 ? TAGS * (LOCKS | ((id ^ space ^ kn_process_clock()) % LOCKS)) : 0;
}

void kn_pulse_take(kn_lock_file *file, uint64_t id)
{
    const uint64_t base = find_base(id), tag = kn_process_tag();
    if (base != 0 && tag != 0) {
        (void)kn_lock_try(file, base + tag); /* without it the holder counts as working */
    }
}

bool kn_pulse_is_silent(kn_pulse_watch *watch, kn_lock_file *file, uint64_t id)
{
    const uint64_t now = kn_clock_now();
    uint64_t pulse = 0;
    if (watch->since == 0 && kn_process_tag() != 0) {
        watch->base = find_base(id);
    }
    if (watch->base != 0) {
        pulse = kn_lock_find(file, watch->base, TAGS);
    }
    const uint32_t holder = (uint32_t)(pulse % TAGS);
    if (holder == 0 || holder != watch->holder || !kn_process_is_halted(holder)) {
        watch->since = now;
        watch->looks = 0;
        watch->holder = holder;
        return false;
    }
    watch->looks++;
    return watch->looks >= KN_PULSE_SILENT_LOOKS && now - watch->since >= KN_PULSE_SILENT_NS;
}
