/* Notices, for the price of one load, that this process is a fork of the one that made the guard.
 *
 * A page that the kernel wipes in the child (MADV_WIPEONFORK) holds the mark. Where the system has
 * no such page the process id is compared, which costs a system call; where it has no fork
 * (Windows) nothing is ever noticed. */
#ifndef KILN_SYS_FORK_H
#define KILN_SYS_FORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kn_fork_guard {
    _Atomic uint32_t *mark; /* NULL: compare process ids */
    /* Where there is no page: the process id and the mark. They are one word, so that no thread of
     * a child sees its own process with the mark of the parent. */
    _Atomic uint64_t plain;
} kn_fork_guard;

enum { KN_FORK_CHILD = 0, KN_FORK_RENEWING = 1, KN_FORK_HOME = 2 };

void kn_fork_guard_init(kn_fork_guard *guard);
void kn_fork_guard_deinit(kn_fork_guard *guard);

bool kn_fork_guard_differs(kn_fork_guard *guard); /* compares process ids */
/* True in a child that has not been renewed yet. */
static inline bool kn_fork_noticed(kn_fork_guard *guard)
{
    if (guard->mark != NULL) {
        return atomic_load_explicit(guard->mark, memory_order_acquire) != KN_FORK_HOME;
    }
    return kn_fork_guard_differs(guard);
}

/* After a notice: true for the one thread that is to renew what the guard stands for and then calls
 * kn_fork_renewed; the others wait inside until that is done and get false. */
bool kn_fork_renew(kn_fork_guard *guard);
void kn_fork_renewed(kn_fork_guard *guard);

#endif
