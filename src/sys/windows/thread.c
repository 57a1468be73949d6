/* Threads, slim locks and condition variables of Windows; see thread.h. */
#include "sys/thread.h"

#include <process.h>
#include <stdlib.h>
#include <windows.h>

#include "sys/clock.h"
#include "sys/fail.h"

#define NS_PER_MS UINT64_C(1000000)
#define LONGEST_MS 1000000u

struct kn_thread {
    HANDLE handle;
    void (*run)(void *user);
    void *user;
};

/* Both are one pointer, zero when free: the header need not know <windows.h>. */
_Static_assert(sizeof(SRWLOCK) == sizeof(kn_mutex), "a slim lock is a pointer");
_Static_assert(sizeof(CONDITION_VARIABLE) == sizeof(kn_cond), "a condition variable is a pointer");

static SRWLOCK *lock_of(kn_mutex *mutex)
{
    return (SRWLOCK *)&mutex->srw;
}

static CONDITION_VARIABLE *condition_of(kn_cond *cond)
{
    return (CONDITION_VARIABLE *)&cond->cond;
}

uintptr_t kn_thread_self(void)
{
    return GetCurrentThreadId();
}

void kn_mutex_init(kn_mutex *mutex)
{
    InitializeSRWLock(lock_of(mutex));
}

void kn_mutex_deinit(kn_mutex *mutex)
{
    (void)mutex; /* holds nothing */
}

void kn_mutex_lock(kn_mutex *mutex)
{
    AcquireSRWLockExclusive(lock_of(mutex));
}

bool kn_mutex_try(kn_mutex *mutex)
{
    return TryAcquireSRWLockExclusive(lock_of(mutex)) != 0;
}

void kn_mutex_unlock(kn_mutex *mutex)
{
    ReleaseSRWLockExclusive(lock_of(mutex));
}

void kn_cond_init(kn_cond *cond)
{
    InitializeConditionVariable(condition_of(cond));
}

void kn_cond_deinit(kn_cond *cond)
{
    (void)cond; /* holds nothing */
}

void kn_cond_wait(kn_cond *cond, kn_mutex *mutex)
{
    (void)SleepConditionVariableSRW(condition_of(cond), lock_of(mutex), INFINITE, 0);
}

bool kn_cond_wait_until(kn_cond *cond, kn_mutex *mutex, uint64_t deadline_ns)
{
    uint64_t now = kn_clock_now();
    if (now >= deadline_ns) {
        return false;
    }
    uint64_t ms = (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;
    bool woken = SleepConditionVariableSRW(condition_of(cond), lock_of(mutex),
                                           ms < LONGEST_MS ? (DWORD)ms : LONGEST_MS, 0) != 0;
    return woken || kn_clock_now() < deadline_ns;
}

void kn_cond_signal(kn_cond *cond)
{
    WakeConditionVariable(condition_of(cond));
}

void kn_cond_broadcast(kn_cond *cond)
{
    WakeAllConditionVariable(condition_of(cond));
}

static unsigned __stdcall run_thread(void *argument)
{
    const kn_thread *thread = argument;
    thread->run(thread->user);
    return 0;
}

kiln_status kn_thread_start(void (*run)(void *user), void *user, kn_thread **out_thread,
                            kiln_diag *diag)
{
    *out_thread = NULL;
    kn_thread *thread = malloc(sizeof *thread);
    if (thread == NULL) {
        return kn_fail_nomem(diag, "cannot start", "a thread");
    }
    thread->run = run;
    thread->user = user;
    /* Not CreateThread: the C library keeps things for each thread. */
    thread->handle = (HANDLE)_beginthreadex(NULL, 0, run_thread, thread, 0, NULL);
    if (thread->handle == NULL) {
        int error = (int)GetLastError();
        free(thread);
        return kn_fail(diag, KILN_E_NOMEM, error, "cannot start", "a thread");
    }
    *out_thread = thread;
    return KILN_OK;
}

void kn_thread_join(kn_thread *thread)
{
    if (thread != NULL) {
        (void)WaitForSingleObject(thread->handle, INFINITE);
        (void)CloseHandle(thread->handle);
        free(thread);
    }
}

void kn_thread_join_gone(kn_thread *thread)
{
    kn_thread_join(thread);
}
