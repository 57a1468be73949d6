/* Fork detection. This file must not know what is renewed. */
#include "sys/fork.h"

#include <stddef.h>

#include "sys/clock.h"
#include "sys/process.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint32_t *make_page(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return NULL;
    }
    /* QEMU's emulation of a process accepts every advice and follows few. */
    if (madvise(page, size, -1) == 0 || madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return NULL;
    }
    return page;
}

static void drop_page(_Atomic uint32_t *page)
{
    (void)munmap((void *)page, (size_t)sysconf(_SC_PAGESIZE));
}

#else

static _Atomic uint32_t *make_page(void)
{
    return NULL;
}

static void drop_page(_Atomic uint32_t *page)
{
    (void)page;
}

#endif

static uint64_t join_mark(uint32_t process, uint32_t mark)
{
    return (uint64_t)process << 32 | mark;
}

static uint32_t read_mark(kn_fork_guard *guard)
{
    return guard->mark != NULL ? atomic_load(guard->mark) : (uint32_t)atomic_load(&guard->plain);
}

static bool change_mark(kn_fork_guard *guard, uint32_t from, uint32_t to)
{
    if (guard->mark != NULL) {
        return atomic_compare_exchange_strong(guard->mark, &from, to);
    }
    const uint32_t self = kn_process_id();
    uint64_t old = join_mark(self, from);
    return atomic_compare_exchange_strong(&guard->plain, &old, join_mark(self, to));
}

void kn_fork_guard_init(kn_fork_guard *guard)
{
    guard->mark = make_page();
    atomic_init(&guard->plain, join_mark(kn_process_id(), KN_FORK_HOME));
    if (guard->mark != NULL) {
        atomic_store(guard->mark, KN_FORK_HOME);
    }
}

void kn_fork_guard_deinit(kn_fork_guard *guard)
{
    if (guard->mark != NULL) {
        drop_page(guard->mark);
        guard->mark = NULL;
    }
}

bool kn_fork_guard_differs(kn_fork_guard *guard)
{
    const uint32_t self = kn_process_id();
    uint64_t plain = atomic_load(&guard->plain);
    while ((uint32_t)(plain >> 32) != self) {
        if (atomic_compare_exchange_weak(&guard->plain, &plain, join_mark(self, KN_FORK_CHILD))) {
            return true;
        }
    }
    return (uint32_t)plain != KN_FORK_HOME;
}

bool kn_fork_renew(kn_fork_guard *guard)
{
    if (change_mark(guard, KN_FORK_CHILD, KN_FORK_RENEWING)) {
        return true;
    }
    while (read_mark(guard) == KN_FORK_RENEWING) {
        kn_clock_sleep(100000);
    }
    return false;
}

void kn_fork_renewed(kn_fork_guard *guard)
{
    (void)change_mark(guard, KN_FORK_RENEWING, KN_FORK_HOME);
}
