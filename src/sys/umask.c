/* See umask.h. Nobody can ask for the umask without setting it, for all threads at once. */
#include "sys/umask.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWNERS (S_IRUSR | S_IWUSR | S_IXUSR)
#define EVERY_BIT 07777 /* ALLPERMS, which musl lacks */

bool kn_umask_takes_owners(void)
{
    static const char label[] = "\nUmask:";
    char status[512]; /* it is in the second line */
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t size = file >= 0 ? read(file, status, sizeof(status) - 1) : -1;
    if (file >= 0) {
        (void)close(file);
    }
    status[size > 0 ? size : 0] = '\0';
    const char *at = strstr(status, label);
    return at != NULL && (strtoul(at + sizeof(label) - 1, NULL, 8) & OWNERS) != 0;
}

typedef struct private_call {
    void (*run)(void *user);
    void *user;
    bool ran;
} private_call;

static void *run_private(void *user)
{
    private_call *call = (private_call *)user;
    if (unshare(CLONE_FS) == 0) {
        (void)umask(S_IRWXG | S_IRWXO);
        call->run(call->user);
        call->ran = true;
    }
    return NULL;
}

void kn_umask_run_private(void (*run)(void *user), void *user)
{
    private_call call = {.run = run, .user = user};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_private, &call) == 0) {
        (void)pthread_join(thread, NULL);
    }
    if (!call.ran) {
        run(user);
    }
}

void kn_umask_mend_dir(const char *path)
{
    struct stat facts;
    if (lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
        (facts.st_mode & OWNERS) != OWNERS) {
        (void)chmod(path, (facts.st_mode & EVERY_BIT) | OWNERS); /* some file systems have none */
    }
}

void kn_umask_mend_file(int fd, const struct stat *facts)
{
    const mode_t wanted = S_IRUSR | S_IWUSR;
    if ((facts->st_mode & wanted) != wanted && facts->st_size == 0 && facts->st_uid == geteuid()) {
        (void)fchmod(fd, (facts->st_mode & EVERY_BIT) | wanted);
    }
}
