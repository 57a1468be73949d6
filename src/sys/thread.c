/* Threads, mutexes and condition variables over POSIX threads; see thread.h. */
#include "sys/thread.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "sys/fail.h"

struct kn_thread {
    pthread_t thread;
    void (*run)(void *user);
    void *user;
    pid_t id; /* written by itself, read after the join */
};

#define LEAVE_TRIES 10000

/* What can only fail through misuse. */
static void must_succeed(int result)
{
    assert(result == 0);
    (void)result;
}

void kn_mutex_init(kn_mutex *mutex)
{
    must_succeed(pthread_mutex_init(&mutex->mutex, NULL));
}

void kn_mutex_deinit(kn_mutex *mutex)
{
    must_succeed(pthread_mutex_destroy(&mutex->mutex));
}

void kn_mutex_lock(kn_mutex *mutex)
{
    must_succeed(pthread_mutex_lock(&mutex->mutex));
}

bool kn_mutex_try(kn_mutex *mutex)
{
    return pthread_mutex_trylock(&mutex->mutex) == 0;
}

void kn_mutex_unlock(kn_mutex *mutex)
{
    must_succeed(pthread_mutex_unlock(&mutex->mutex));
}

void kn_cond_init(kn_cond *cond)
{
    pthread_condattr_t attributes;
    must_succeed(pthread_condattr_init(&attributes));
    must_succeed(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    must_succeed(pthread_cond_init(&cond->cond, &attributes));
    must_succeed(pthread_condattr_destroy(&attributes));
}

void kn_cond_deinit(kn_cond *cond)
{
    must_succeed(pthread_cond_destroy(&cond->cond));
}

void kn_cond_wait(kn_cond *cond, kn_mutex *mutex)
{
    must_succeed(pthread_cond_wait(&cond->cond, &mutex->mutex));
}

bool kn_cond_wait_until(kn_cond *cond, kn_mutex *mutex, uint64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                             .tv_nsec = (long)(deadline_ns % 1000000000)};
    int result = pthread_cond_timedwait(&cond->cond, &mutex->mutex, &until);
    assert(result == 0 || result == ETIMEDOUT);
    return result != ETIMEDOUT;
}

void kn_cond_signal(kn_cond *cond)
{
    must_succeed(pthread_cond_signal(&cond->cond));
}

void kn_cond_broadcast(kn_cond *cond)
{
    must_succeed(pthread_cond_broadcast(&cond->cond));
}

static void *run_thread(void *argument)
{
    kn_thread *thread = argument;
    thread->id = (pid_t)syscall(SYS_gettid);
    thread->run(thread->user);
    return NULL;
}

/* Blocks what is sent to the process, which is for the program's own threads. What a thread brings
 * on itself stays: a blocked SIGSEGV would end the process past its crash handler. False where a
 * sandbox refuses it. */
static bool block_signals(sigset_t *out_old)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t all;
    (void)sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        (void)sigdelset(&all, own[i]);
    }
    return pthread_sigmask(SIG_SETMASK, &all, out_old) == 0;
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

    sigset_t old;
    int error = EPERM;
    if (block_signals(&old)) {
        error = pthread_create(&thread->thread, NULL, run_thread, thread);
        (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    if (error != 0) {
        free(thread);
        return kn_fail(diag, KILN_E_NOMEM, error, "cannot start", "a thread");
    }
    *out_thread = thread;
    return KILN_OK;
}

/* The system tells who joins a thread a little before it takes the thread off the process: until
 * then a program with one thread may not do what only such a one may (unshare(2)). On a busy
 * machine that can take milliseconds. */
static void wait_until_gone(pid_t id)
{
    const struct timespec pause = {.tv_nsec = 10000};
    for (int i = 0; i < LEAVE_TRIES && syscall(SYS_tgkill, getpid(), id, 0) == 0; i++) {
        (void)nanosleep(&pause, NULL);
    }
}

void kn_thread_join(kn_thread *thread)
{
    if (thread != NULL) {
        must_succeed(pthread_join(thread->thread, NULL));
        free(thread);
    }
}

void kn_thread_join_gone(kn_thread *thread)
{
    if (thread != NULL) {
        must_succeed(pthread_join(thread->thread, NULL));
        wait_until_gone(thread->id);
        free(thread);
    }
}
