/* Ctrl-C and its like. The library installs no handler, and gives each compiler that it starts a
 * process group of its own, which the terminal's signal does not reach: the command passes it on,
 * and then ends by that signal. What it leaves is a temporary that is swept later. POSIX. */
#include "cli/host.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

/* A handler knows nothing but what is static. */
static int wake_fd = -1; /* written once, before the handler is installed */
static volatile sig_atomic_t ending;

static struct {
    pthread_t thread;
    pid_t process; /* whose thread it is: a forked child has none to join */
    int fd;
} waiter = {.fd = -1};

static void on_signal(int number)
{
    const unsigned char byte = (unsigned char)number;
    const int error = errno;
    ending = 1;
    ssize_t written = write(wake_fd, &byte, 1);
    (void)written; /* full: a reader has been woken */
    errno = error;
}

bool host_is_ending(void)
{
    return ending != 0;
}

void host_end_if_interrupted(void)
{
    while (ending != 0) {
        (void)pause(); /* the other thread ends the process */
    }
}

/* "PID (NAME) STATE PARENT GROUP ...": true for a child of this process that leads a group. */
static bool leads_group(const char *pid)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false; /* it has exited */
    }
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')');
    if (at == NULL || strlen(at) < 4) {
        return false;
    }
    char *end = NULL;
    const long parent = strtol(at + 4, &end, 10);
    const long group = strtol(end, NULL, 10);
    return parent == (long)getpid() && group == strtol(pid, NULL, 10);
}

static void pass_signal_on(int number)
{
    DIR *processes = opendir("/proc");
    if (processes == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(processes); entry != NULL;
         entry = readdir(processes)) {
        if (isdigit((unsigned char)*entry->d_name) != 0 && leads_group(entry->d_name)) {
            (void)kill(-(pid_t)strtol(entry->d_name, NULL, 10), number);
        }
    }
    (void)closedir(processes);
}

static void *wait_for_signal(void *user)
{
    (void)user;
    unsigned char number = 0;
    ssize_t n;
    do {
        n = read(waiter.fd, &number, 1);
    } while (n < 0);
    if (number == 0) {
        return NULL; /* the end of the program */
    }
    pass_signal_on(number);
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
    (void)raise(number);
    return NULL;
}

/* A thread that is still being started when the process ends is a leak to LeakSanitizer. After a
 * signal this waits for the thread that ends the process by it. */
static void join_waiter(void)
{
    const unsigned char byte = 0;
    if (waiter.process == getpid() && write(wake_fd, &byte, 1) == 1) {
        (void)pthread_join(waiter.thread, NULL);
    }
}

/* What is ignored (nohup) stays so. */
static void install_handlers(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

void host_pass_on_interrupts(void)
{
    int ends[2];
    if (wake_fd >= 0 || pipe(ends) != 0) {
        return;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    waiter.fd = ends[0];
    wake_fd = ends[1];
    if (pthread_create(&waiter.thread, NULL, wait_for_signal, NULL) == 0) {
        waiter.process = getpid();
        (void)atexit(join_waiter);
        install_handlers();
    }
}
