/* A preloaded module that makes file system calls fail on request; faultfs.h has the rules'
 * grammar.
 *
 * It follows descriptors: what is opened under the prefix is remembered with its path until it is
 * closed. Counters are atomic; the rules themselves are to be changed while no other thread is at
 * work. It must not allocate, for it runs below every allocation failure test as well. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_RULES 16
#define MAX_FDS 1024
#define MAX_PATH 512

typedef enum op {
    OP_OPEN,
    OP_WRITE,
    OP_READ,
    OP_FSYNC,
    OP_RENAME,
    OP_LOCK,
    OP_MKDIR,
    OP_UNLINK,
    OP_RMDIR,
    OP_TRUNCATE,
    OP_MMAP,
    OP_LINK,
    OP_TMPFILE,
    OP_WRITEBACK,
    OP_COUNT
} op;

static const char *const op_names[OP_COUNT] = {"open", "write", "read",    "fsync",    "rename",
                                               "lock", "mkdir", "unlink",  "rmdir",    "truncate",
                                               "mmap", "link",  "tmpfile", "writeback"};

static const struct {
    const char *name;
    int value;
} errno_names[] = {
    {"EACCES", EACCES}, {"EAGAIN", EAGAIN},
    {"EBUSY", EBUSY},   {"EDQUOT", EDQUOT},
    {"EEXIST", EEXIST}, {"EFBIG", EFBIG},
    {"EINTR", EINTR},   {"EINVAL", EINVAL},
    {"EIO", EIO},       {"EISDIR", EISDIR},
    {"ELOOP", ELOOP},   {"EMFILE", EMFILE},
    {"EMLINK", EMLINK}, {"ENFILE", ENFILE},
    {"ENOENT", ENOENT}, {"ENOLCK", ENOLCK},
    {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC},
    {"ENOSYS", ENOSYS}, {"ENOTDIR", ENOTDIR},
    {"EPERM", EPERM},   {"EROFS", EROFS},
    {"ESTALE", ESTALE}, {"EOPNOTSUPP", EOPNOTSUPP},
    {"EXDEV", EXDEV},   {"ENAMETOOLONG", ENAMETOOLONG},
};

typedef enum effect {
    EFFECT_NONE,
    EFFECT_FAIL,
    EFFECT_LATE,
    EFFECT_SHORT,
    EFFECT_SKIP,
    EFFECT_SIGNALLED_LATER
} effect;
typedef enum verb {
    VERB_FAIL,
    VERB_LATE,
    VERB_SHORT,
    VERB_SKIP,
    VERB_SIGNAL,
    VERB_SIGNAL_AFTER,
    VERB_SLEEP
} verb;

typedef struct rule {
    op op;
    uint64_t first, last; /* calls that are hit, counted from 1 */
    verb verb;
    int number; /* errno or milliseconds */
    char part[64];
    _Atomic uint64_t calls;
} rule;

static rule rules[MAX_RULES];
static atomic_int rule_count;
static char prefix[MAX_PATH];
static _Atomic uint64_t hits;
static char fd_paths[MAX_FDS][MAX_PATH]; /* "" where not followed */

int faultfs_set(const char *new_prefix, const char *text);
uint64_t faultfs_hits(void);

/* ---- rules ---- */

static int errno_value(const char *text)
{
    for (size_t i = 0; i < sizeof errno_names / sizeof *errno_names; i++) {
        if (strcmp(text, errno_names[i].name) == 0) {
            return errno_names[i].value;
        }
    }
    char *end;
    long value = strtol(text, &end, 10);
    return end != text && *end == '\0' && value > 0 && value < 4096 ? (int)value : -1;
}

static bool parse_effect(rule *r, const char *text)
{
    if (strcmp(text, "short") == 0) {
        r->verb = VERB_SHORT;
    } else if (strcmp(text, "skip") == 0) {
        r->verb = VERB_SKIP;
    } else if (strncmp(text, "kill", 4) == 0 || strncmp(text, "stop", 4) == 0) {
        r->number = text[0] == 'k' ? SIGKILL : SIGSTOP;
        r->verb = strcmp(text + 4, "-after") == 0 ? VERB_SIGNAL_AFTER : VERB_SIGNAL;
    } else if (strncmp(text, "sleep-", 6) == 0) {
        r->verb = VERB_SLEEP;
        r->number = (int)strtol(text + 6, NULL, 10);
    } else {
        bool late = strncmp(text, "late-", 5) == 0;
        r->verb = late ? VERB_LATE : VERB_FAIL;
        r->number = errno_value(late ? text + 5 : text);
    }
    return r->number >= 0;
}

static bool parse_when(rule *r, const char *text)
{
    if (strcmp(text, "*") == 0) {
        r->first = 1;
        r->last = UINT64_MAX;
        return true;
    }
    char *end;
    r->first = strtoull(text, &end, 10);
    r->last = *end == '+' ? UINT64_MAX : r->first;
    return end != text && (*end == '\0' || strcmp(end, "+") == 0) && r->first > 0;
}

static bool parse_rule(rule *r, char *text)
{
    char *save = NULL;
    const char *name = strtok_r(text, ":", &save);
    const char *when = strtok_r(NULL, ":", &save);
    const char *what = strtok_r(NULL, ":", &save);
    const char *part = strtok_r(NULL, ":", &save);

    memset(r, 0, sizeof *r);
    if (name == NULL || when == NULL || what == NULL) {
        return false;
    }
    for (r->op = 0; r->op < OP_COUNT && strcmp(name, op_names[r->op]) != 0; r->op++) {
    }
    (void)snprintf(r->part, sizeof r->part, "%s", part != NULL ? part : "");
    return r->op < OP_COUNT && parse_when(r, when) && parse_effect(r, what);
}

int faultfs_set(const char *new_prefix, const char *text)
{
    char copy[1024];
    char *save = NULL;
    int count = 0;

    atomic_store(&rule_count, 0);
    atomic_store(&hits, 0);
    (void)snprintf(prefix, sizeof prefix, "%s", new_prefix != NULL ? new_prefix : "");
    if ((size_t)snprintf(copy, sizeof copy, "%s", text != NULL ? text : "") >= sizeof copy) {
        return -1;
    }
    for (char *p = strtok_r(copy, ";", &save); p != NULL; p = strtok_r(NULL, ";", &save)) {
        if (count == MAX_RULES || !parse_rule(&rules[count], p)) {
            return -1;
        }
        count++;
    }
    atomic_store(&rule_count, count);
    return 0;
}

uint64_t faultfs_hits(void)
{
    return atomic_load(&hits);
}

__attribute__((constructor)) static void begin(void)
{
    if (faultfs_set(getenv("KILN_FAULT_PREFIX"), getenv("KILN_FAULT")) != 0) {
        static const char message[] = "faultfs: bad KILN_FAULT\n";
        (void)!write(STDERR_FILENO, message, sizeof message - 1);
        abort();
    }
}

/* ---- which calls are hit ---- */

static bool below_prefix(const char *path)
{
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

static const char *fd_path(int fd)
{
    return fd >= 0 && fd < MAX_FDS && fd_paths[fd][0] != '\0' ? fd_paths[fd] : NULL;
}

static void follow(int fd, const char *path)
{
    if (fd >= 0 && fd < MAX_FDS) {
        char copy[MAX_PATH]; /* `path` may lie in the table itself */
        (void)snprintf(copy, sizeof copy, "%s", path != NULL ? path : "");
        memcpy(fd_paths[fd], copy, sizeof copy);
    }
}

/* Writes the path that an *at call means; NULL if it is not below the prefix. */
static const char *full_path(int dir, const char *path, char *buffer)
{
    if (path[0] == '/' || dir == AT_FDCWD || fd_path(dir) == NULL) {
        (void)snprintf(buffer, MAX_PATH, "%s", path);
    } else {
        (void)snprintf(buffer, MAX_PATH, "%.255s/%.255s", fd_path(dir), path);
    }
    return below_prefix(buffer) ? buffer : NULL;
}

static void pause_ms(int ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&time, NULL);
}

/* Counts the call and says what is to become of it. `path` NULL: not ours. */
static effect decide(op what, const char *path, int *out_errno)
{
    effect result = EFFECT_NONE;
    int count = path != NULL ? atomic_load(&rule_count) : 0;

    for (int i = 0; i < count; i++) {
        rule *r = &rules[i];
        if (r->op != what || strstr(path, r->part) == NULL) {
            continue;
        }
        uint64_t call = atomic_fetch_add(&r->calls, 1) + 1;
        if (call < r->first || call > r->last) {
            continue;
        }
        atomic_fetch_add(&hits, 1);
        *out_errno = r->number;
        switch (r->verb) {
        case VERB_FAIL:
            result = EFFECT_FAIL;
            break;
        case VERB_LATE:
            result = EFFECT_LATE;
            break;
        case VERB_SHORT:
            result = EFFECT_SHORT;
            break;
        case VERB_SKIP:
            result = EFFECT_SKIP;
            break;
        case VERB_SIGNAL:
            (void)raise(r->number);
            break;
        case VERB_SIGNAL_AFTER:
            result = EFFECT_SIGNALLED_LATER;
            break;
        case VERB_SLEEP:
            pause_ms(r->number);
            break;
        }
    }
    return result;
}

/* Gives the caller the result after the call was made (or not, for EFFECT_FAIL). */
static long conclude(effect what, int number, long result)
{
    if (what == EFFECT_SIGNALLED_LATER) {
        (void)raise(number);
    }
    if (what == EFFECT_FAIL || what == EFFECT_LATE) {
        errno = number;
        return -1;
    }
    return result;
}

static size_t cut(effect what, size_t size)
{
    return what == EFFECT_SHORT && size > 1 ? size / 2 : size;
}

/* ---- the calls ---- */

/* Defines `real`, the next function of this name, looked up once. */
#define REAL(type, name, ...)                                                                      \
    static type (*real)(__VA_ARGS__);                                                              \
    if (real == NULL) {                                                                            \
        *(void **)&real = dlsym(RTLD_NEXT, name);                                                  \
    }

static int open_common(int dir, const char *path, int flags, mode_t mode)
{
    REAL(int, "openat", int, const char *, int, ...)
    char buffer[MAX_PATH];
    int number = 0;
    const char *full = full_path(dir, path, buffer);
    /* A file without a name is opened as well, and made by a kind of call of its own. */
    effect what = decide(OP_OPEN, full, &number);
    if (what == EFFECT_NONE && (flags & O_TMPFILE) == O_TMPFILE) {
        what = decide(OP_TMPFILE, full, &number);
    }

    int fd = what == EFFECT_FAIL ? -1 : real(dir, path, flags, mode);
    if (what == EFFECT_LATE && fd >= 0) {
        (void)close(fd);
    } else {
        follow(fd, full);
    }
    return (int)conclude(what, number, fd);
}

#define TAKE_MODE(flags, mode)                                                                     \
    mode_t mode = 0;                                                                               \
    if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) {                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode = va_arg(args, mode_t);                                                               \
        va_end(args);                                                                              \
    }

int open(const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return open_common(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    TAKE_MODE(flags, mode)
    return open_common(dir, path, flags, mode);
}

int close(int fd)
{
    REAL(int, "close", int)
    follow(fd, NULL);
    return real(fd);
}

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(ssize_t, "write", int, const void *, size_t)
    int number = 0;
    effect what = decide(OP_WRITE, fd_path(fd), &number);
    return conclude(what, number, what == EFFECT_FAIL ? -1 : real(fd, data, cut(what, size)));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(ssize_t, "writev", int, const struct iovec *, int)
    int number = 0;
    effect what = decide(OP_WRITE, fd_path(fd), &number);
    if (what == EFFECT_SHORT && count > 0) {
        const struct iovec half = {parts[0].iov_base, cut(what, parts[0].iov_len)};
        return conclude(what, number, real(fd, &half, 1));
    }
    return conclude(what, number, what == EFFECT_FAIL ? -1 : real(fd, parts, count));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t)
    int number = 0;
    effect what = decide(OP_WRITE, fd_path(fd), &number);
    return conclude(what, number,
                    what == EFFECT_FAIL ? -1 : real(fd, data, cut(what, size), offset));
}

ssize_t read(int fd, void *data, size_t size)
{
    REAL(ssize_t, "read", int, void *, size_t)
    int number = 0;
    effect what = decide(OP_READ, fd_path(fd), &number);
    return conclude(what, number, what == EFFECT_FAIL ? -1 : real(fd, data, cut(what, size)));
}

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
    REAL(ssize_t, "pread", int, void *, size_t, off_t)
    int number = 0;
    effect what = decide(OP_READ, fd_path(fd), &number);
    return conclude(what, number,
                    what == EFFECT_FAIL ? -1 : real(fd, data, cut(what, size), offset));
}

int fdatasync(int fd)
{
    REAL(int, "fdatasync", int)
    int number = 0;
    effect what = decide(OP_FSYNC, fd_path(fd), &number);
    return (int)conclude(what, number, what == EFFECT_FAIL ? -1 : real(fd));
}

int sync_file_range(int fd, off_t offset, off_t count, unsigned flags)
{
    REAL(int, "sync_file_range", int, off_t, off_t, unsigned)
    int number = 0;
    effect what = decide(OP_WRITEBACK, fd_path(fd), &number);
    return (int)conclude(what, number, what == EFFECT_FAIL ? -1 : real(fd, offset, count, flags));
}

int ftruncate(int fd, off_t size)
{
    REAL(int, "ftruncate", int, off_t)
    int number = 0;
    effect what = decide(OP_TRUNCATE, fd_path(fd), &number);
    return (int)conclude(what, number, what == EFFECT_FAIL ? -1 : real(fd, size));
}

/* A rename is below the prefix when its new name is; `part` looks at the new name, too. */
int renameat2(int old_dir, const char *old, int new_dir, const char *new, unsigned flags)
{
    char buffer[MAX_PATH]; /* and no `real`: musl has no function of this name */
    int number = 0;
    effect what = decide(OP_RENAME, full_path(new_dir, new, buffer), &number);
    return (int)conclude(
        what, number,
        what == EFFECT_FAIL ? -1 : syscall(SYS_renameat2, old_dir, old, new_dir, new, flags));
}

/* As for a rename, the new name counts. */
int linkat(int old_dir, const char *old, int new_dir, const char *new, int flags)
{
    REAL(int, "linkat", int, const char *, int, const char *, int)
    char buffer[MAX_PATH];
    int number = 0;
    effect what = decide(OP_LINK, full_path(new_dir, new, buffer), &number);
    return (int)conclude(what, number,
                         what == EFFECT_FAIL ? -1 : real(old_dir, old, new_dir, new, flags));
}

int renameat(int old_dir, const char *old, int new_dir, const char *new)
{
    return renameat2(old_dir, old, new_dir, new, 0);
}

int rename(const char *old, const char *new)
{
    return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    REAL(int, "mkdirat", int, const char *, mode_t)
    char buffer[MAX_PATH];
    int number = 0;
    effect what = decide(OP_MKDIR, full_path(dir, path, buffer), &number);
    return (int)conclude(what, number, what == EFFECT_FAIL ? -1 : real(dir, path, mode));
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

int unlinkat(int dir, const char *path, int flags)
{
    REAL(int, "unlinkat", int, const char *, int)
    char buffer[MAX_PATH];
    int number = 0;
    op which = (flags & AT_REMOVEDIR) != 0 ? OP_RMDIR : OP_UNLINK;
    effect what = decide(which, full_path(dir, path, buffer), &number);
    return (int)conclude(what, number, what == EFFECT_FAIL ? -1 : real(dir, path, flags));
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    REAL(int, "fcntl", int, int, ...)
    int number = 0;
    effect what = EFFECT_NONE;

    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
        command == F_OFD_SETLKW) {
        what = decide(OP_LOCK, fd_path(fd), &number);
    }
    int result = what == EFFECT_FAIL ? -1 : what == EFFECT_SKIP ? 0 : real(fd, command, argument);
    if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && result >= 0) {
        follow(result, fd_path(fd));
    }
    return (int)conclude(what, number, result);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    REAL(void *, "mmap", void *, size_t, int, int, int, off_t)
    int number = 0;
    effect what = decide(OP_MMAP, fd_path(fd), &number);
    if (what == EFFECT_FAIL) {
        errno = number;
        return MAP_FAILED;
    }
    return real(at, size, protection, flags, fd, offset);
}

#ifdef __GLIBC__ /* elsewhere the same as without 64 */
#define ALIAS(name) extern __typeof__(name) name##64 __attribute__((alias(#name)))
ALIAS(open);
ALIAS(openat);
ALIAS(pwrite);
ALIAS(pread);
ALIAS(fcntl);
ALIAS(mmap);
#endif
