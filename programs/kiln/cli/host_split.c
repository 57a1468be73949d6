/* A child process that goes on where this one is. POSIX. */
#define _GNU_SOURCE /* strsignal, MAP_ANONYMOUS */
#include "cli/host.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

void *host_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

const char *host_signal_name(int number)
{
    const char *name = number != 0 ? strsignal(number) : "it exited";
    return name != NULL ? name : "an unknown signal";
}

/* What asks a program to end is not a crash: this one ends by it as well. */
static void end_like_child(int number)
{
    static const int wishes[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++) {
        if (number == wishes[i]) {
            (void)raise(number);
        }
    }
}

host_side host_split(int *out_code, int *out_signal)
{
    int status = 0;
    (void)fflush(NULL);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) {
            (void)raise(SIGTERM);
        }
        return HOST_CHILD;
    }
    if (child < 0) {
        return HOST_WHOLE;
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            *out_code = 1;
            return HOST_PARENT;
        }
    }
    *out_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    *out_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    end_like_child(*out_signal);
    return HOST_PARENT;
}
