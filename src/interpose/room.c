/* See room.h. Links libc alone. */
#include "interpose/room.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NEEDED = 8, FIRST = STDERR_FILENO + 1, MANY = 1 << 20 };

/* The last numbers of a table are free in most programs; then nothing has to be opened to know. */
static bool are_last_free(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < NEEDED) {
        return false;
    }
    const int end = limit.rlim_cur < MANY ? (int)limit.rlim_cur : MANY;
    for (int i = 1; i <= NEEDED; i++) {
        if (fcntl(end - i, F_GETFD) != -1) {
            return false;
        }
    }
    return true;
}

bool kn_room_is_short(void)
{
    int opened[NEEDED];
    int count = 0;
    const int error = errno;
    if (!are_last_free()) {
        while (count < NEEDED && (opened[count] = open("/", O_PATH | O_CLOEXEC)) >= 0) {
            count++;
        }
        for (int i = 0; i < count; i++) {
            (void)close(opened[i]);
        }
    } else {
        count = NEEDED;
    }
    errno = error;
    return count < NEEDED;
}

typedef struct room_call {
    void (*run)(void *user);
    void *user;
    bool ran;
} room_call;

/* Standard input as well: a limit of three leaves no other number. close_range(2) is younger than
 * the systems that kiln runs on. */
static void close_rest(void)
{
    struct rlimit limit;
    (void)close(STDIN_FILENO);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        const int end = limit.rlim_cur < MANY ? (int)limit.rlim_cur : MANY;
        for (int i = FIRST; i < end; i++) {
            (void)close(i);
        }
    }
}

static void *run_apart(void *user)
{
    room_call *call = (room_call *)user;
    if (unshare(CLONE_FILES) == 0) {
        close_rest();
        call->run(call->user);
        call->ran = true;
    }
    return NULL;
}

void kn_room_run(void (*run)(void *user), void *user)
{
    room_call call = {.run = run, .user = user};
    pthread_t thread;
    sigset_t every;
    sigset_t before;
    (void)sigfillset(&every);
    const bool masked = pthread_sigmask(SIG_SETMASK, &every, &before) == 0;
    const bool started = pthread_create(&thread, NULL, run_apart, &call) == 0;
    if (masked) {
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (started) {
        (void)pthread_join(thread, NULL);
    }
    if (!call.ran) {
        run(user);
    }
}
