/* Threads, mutexes, condition variables. Initialisation cannot fail for mutex and cond on the
 * systems kiln runs on; a failure there is a programming error.
 *
 * processors.c counts processors and memory. */
#ifndef KILN_SYS_THREAD_H
#define KILN_SYS_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/status.h"

#ifdef _WIN32
typedef struct kn_mutex {
    void *srw;
} kn_mutex;
typedef struct kn_cond {
    void *cond;
} kn_cond;
#define KN_MUTEX_INIT                                                                              \
    {                                                                                              \
        NULL                                                                                       \
    } /* one that lives as long as the process */
#else
#include <pthread.h>
typedef struct kn_mutex {
    pthread_mutex_t mutex;
} kn_mutex;
typedef struct kn_cond {
    pthread_cond_t cond; /* waits on the monotonic clock */
} kn_cond;
#define KN_MUTEX_INIT                                                                              \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER                                                                  \
    } /* one that lives as long as the process */
#endif

typedef struct kn_thread kn_thread;

/* Distinguishes the live threads of this process. Cheap; never 0. */
#ifdef _WIN32
uintptr_t kn_thread_self(void);
#else
static inline uintptr_t kn_thread_self(void)
{
    return (uintptr_t)pthread_self();
}
#endif

void kn_mutex_init(kn_mutex *mutex);
void kn_mutex_deinit(kn_mutex *mutex);
void kn_mutex_lock(kn_mutex *mutex);
/* False if any thread holds it, the caller included. */
bool kn_mutex_try(kn_mutex *mutex);
void kn_mutex_unlock(kn_mutex *mutex);

void kn_cond_init(kn_cond *cond);
void kn_cond_deinit(kn_cond *cond);
void kn_cond_wait(kn_cond *cond, kn_mutex *mutex);
/* False when `deadline_ns` (kn_clock_now) has passed. May wake early, like every condition
 * variable. */
bool kn_cond_wait_until(kn_cond *cond, kn_mutex *mutex, uint64_t deadline_ns);
void kn_cond_signal(kn_cond *cond);
void kn_cond_broadcast(kn_cond *cond);

/* Starts a thread with all signals blocked; it must be joined. */
kiln_status kn_thread_start(void (*run)(void *user), void *user, kn_thread **out_thread,
                            kiln_diag *diag);
void kn_thread_join(kn_thread *thread);
/* The same, and waits until the system no longer counts it among the threads of the process: for a
 * thread of which the program may not know. */
void kn_thread_join_gone(kn_thread *thread);

/* Processors this process may run on, at least 1 (affinity and cgroup quota respected). */
uint32_t kn_thread_processors(void);
/* Bytes of memory this process may use: the machine's, bounded by the limit of its container's
 * control group. */
uint64_t kn_memory_limit(void);
/* The quota part of it, in whole processors; UINT32_MAX: none. Both arguments are for tests:
 * /proc/self/cgroup and /sys/fs/cgroup. */
uint32_t kn_thread_quota(const char *groups_file, const char *mount);

#endif
