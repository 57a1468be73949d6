/* When the holder of a lock is silent: its process has been halted for long, and is known. */
#include "exec/pulse.h"

#include <stdlib.h>

#include "support/suite.h"
#include "sys/clock.h"
#include "sys/process.h"

/* The linker puts these in the place of the system. */
uint64_t __wrap_kn_clock_now(void);
uint64_t __wrap_kn_process_space(void);
uint64_t __wrap_kn_process_clock(void);
uint32_t __wrap_kn_process_tag(void);
bool __wrap_kn_process_is_halted(uint32_t tag);

static struct {
    uint64_t now, space, clock;
    uint32_t tag, halted; /* the one that is */
} world;

uint64_t __wrap_kn_clock_now(void)
{
    return world.now;
}

uint64_t __wrap_kn_process_space(void)
{
    return world.space;
}

uint64_t __wrap_kn_process_clock(void)
{
    return world.clock;
}

uint32_t __wrap_kn_process_tag(void)
{
    return world.tag;
}

bool __wrap_kn_process_is_halted(uint32_t tag)
{
    return tag == world.halted;
}

#define HOLDER UINT32_C(0x80000007)
#define NEXT UINT32_C(0x80000008)
#define LOCK UINT64_C(12)

typedef struct rig {
    kn_lock_file *holds, *waits;
    kn_pulse_watch watch;
} rig;

static rig make_rig(const char *dir)
{
    rig r = {.watch = {.since = 0}};
    char *path = kt_at(dir, "lock");
    world.now = world.space = world.clock = 1;
    world.tag = world.halted = HOLDER;
    assert_int_equal(kn_lock_file_open(path, &r.holds, NULL), KILN_OK);
    assert_int_equal(kn_lock_file_open(path, &r.waits, NULL), KILN_OK);
    return r;
}

static void end_rig(rig *r)
{
    kn_lock_file_close(r->holds);
    kn_lock_file_close(r->waits);
}

/* How many of `count` looks, one each `step`, it takes until the holder is silent; 0: it is not. */
static int look(rig *r, uint64_t id, int count, uint64_t step)
{
    for (int i = 1; i <= count; i++) {
        if (kn_pulse_is_silent(&r->watch, r->waits, id)) {
            return i;
        }
        world.now += step;
    }
    return 0;
}

enum { MANY = 1000 };
#define SECOND UINT64_C(1000000000)

KT_TEST_IN_DIR(a_halted_holder_is_silent_after_time_and_looks)
{
    rig r = make_rig(*state);
    kn_pulse_take(r.holds, LOCK);
    const int by_looks = look(&r, LOCK, MANY, SECOND);
    assert_int_equal(by_looks, KN_PULSE_SILENT_LOOKS + 1);
    r.watch = (kn_pulse_watch){.since = 0};
    const int by_time = look(&r, LOCK, MANY, KN_PULSE_SILENT_NS / 100);
    assert_int_equal(by_time, 101);
    end_rig(&r);
}

KT_TEST_IN_DIR(one_that_works_in_between_is_not)
{
    rig r = make_rig(*state);
    kn_pulse_take(r.holds, LOCK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(look(&r, LOCK, KN_PULSE_SILENT_LOOKS - 1, SECOND), 0);
        world.halted = 0;
        assert_int_equal(look(&r, LOCK, MANY, SECOND), 0);
        world.halted = HOLDER;
    }
    assert_int_not_equal(look(&r, LOCK, MANY, SECOND), 0);
    end_rig(&r);
}

KT_TEST_IN_DIR(the_next_holder_is_watched_afresh)
{
    rig r = make_rig(*state);
    char *path = kt_at(*state, "lock");
    kn_pulse_take(r.holds, LOCK);
    assert_int_equal(look(&r, LOCK, KN_PULSE_SILENT_LOOKS, SECOND), 0);
    kn_lock_file_close(r.holds);
    assert_int_equal(kn_lock_file_open(path, &r.holds, NULL), KILN_OK);
    world.tag = world.halted = NEXT;
    kn_pulse_take(r.holds, LOCK);
    assert_int_equal(look(&r, LOCK, KN_PULSE_SILENT_LOOKS, SECOND), 0);
    assert_int_equal(look(&r, LOCK, MANY, SECOND), 1);
    end_rig(&r);
}

/* An earlier version, or a holder of another lock. */
KT_TEST_IN_DIR(one_without_a_pulse_is_never_silent)
{
    rig r = make_rig(*state);
    assert_int_equal(look(&r, LOCK, MANY, SECOND), 0);
    kn_pulse_take(r.holds, LOCK);
    r.watch = (kn_pulse_watch){.since = 0};
    assert_int_equal(look(&r, LOCK + 1, MANY, SECOND), 0);
    end_rig(&r);
}

KT_TEST_IN_DIR(processes_that_cannot_be_known_are_never_silent)
{
    rig r = make_rig(*state);
    kn_pulse_take(r.holds, LOCK);
    world.space = 2; /* another container */
    assert_int_equal(look(&r, LOCK, MANY, SECOND), 0);
    r.watch = (kn_pulse_watch){.since = 0};
    world.space = 0;
    kn_pulse_take(r.waits, LOCK);
    assert_int_equal(look(&r, LOCK, MANY, SECOND), 0);
    r.watch = (kn_pulse_watch){.since = 0};
    world.space = 1;
    world.clock = 2; /* all have started at other times */
    assert_int_equal(look(&r, LOCK, MANY, SECOND), 0);
    r.watch = (kn_pulse_watch){.since = 0};
    world.clock = 1;
    world.tag = 0; /* /proc shows other processes */
    kn_pulse_take(r.waits, LOCK);
    assert_int_equal(look(&r, LOCK, MANY, SECOND), 0);
    end_rig(&r);
}

KT_MAIN(NULL, NULL)
