/* What tests call of POSIX that mingw-w64's C library lacks or does otherwise; put before every
 * test of that build. A test that asks for what Windows does not have (links, other owners, fork)
 * is skipped at that point. Setting the environment sets both the system's, which kiln reads, and
 * the C library's. */
#ifndef KILN_TESTS_WINDOWS_POSIX_H
#define KILN_TESTS_WINDOWS_POSIX_H

#define tell kt_tell /* a name that tests have, too */
#include <io.h>
#undef tell

#include <direct.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <pthread.h>

int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
void *aligned_alloc(size_t alignment, size_t size); /* never free()d in a test */

/* The tests mean the time to the nanosecond, and a mode of permission bits that nobody has. */
struct kt_stat {
    unsigned st_mode;
    int64_t st_size;
    struct timespec st_mtim, st_atim;
};
int kt_stat(const char *path, struct kt_stat *out_facts);
int kt_mkdir(const char *path, unsigned mode);
int kt_unlink(const char *path);
int kt_chmod(const char *path, int mode);
int kt_open(const char *path, int flags);
int kt_system(const char *command);
int utimensat(int dir, const char *path, const struct timespec times[2], int flags);
int symlink(const char *target, const char *path);
int chown(const char *path, int user, int group);
pid_t fork(void);
pid_t waitpid(pid_t pid, int *status, int flags);
int setresuid(int real, int effective, int saved);
unsigned geteuid(void);

#define stat kt_stat
#define mkdir kt_mkdir
#define unlink kt_unlink
#define chmod kt_chmod
#define open kt_open /* sharing the file with a process that removes it */
#define system kt_system
#define AT_FDCWD (-100)
#define UTIME_OMIT (-2L)
#define WIFEXITED(status) ((status) == 0)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) ((status) != 0)
#define WTERMSIG(status) (status)
typedef int gid_t;
typedef int uid_t;

#endif
