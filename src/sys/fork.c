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

static _Atomic uint32_t *mark_of(kn_fork_guard *guard)
{
    return guard->mark != NULL ? guard->mark : &guard->plain;
}

void kn_fork_guard_init(kn_fork_guard *guard)
{
    guard->mark = make_page();
    atomic_init(&guard->plain, KN_FORK_HOME);
    atomic_init(&guard->maker, kn_process_id());
    atomic_store(mark_of(guard), KN_FORK_HOME);
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
    uint32_t maker = atomic_load(&guard->maker);
    uint32_t self = kn_process_id();
    if (maker != self && atomic_compare_exchange_strong(&guard->maker, &maker, self)) {
        atomic_store(&guard->plain, KN_FORK_CHILD);
    }
    return atomic_load(&guard->plain) != KN_FORK_HOME;
}

bool kn_fork_renew(kn_fork_guard *guard)
{
    _Atomic uint32_t *mark = mark_of(guard);
    uint32_t state = KN_FORK_CHILD;
    if (atomic_compare_exchange_strong(mark, &state, KN_FORK_RENEWING)) {
        return true;
    }
    while (atomic_load(mark) == KN_FORK_RENEWING) {
        kn_clock_sleep(100000);
    }
    return false;
}

void kn_fork_renewed(kn_fork_guard *guard)
{
    atomic_store(&guard->maker, kn_process_id());
    atomic_store_explicit(mark_of(guard), KN_FORK_HOME, memory_order_release);
}
