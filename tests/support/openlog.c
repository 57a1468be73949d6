/* Preloaded into a compiler: writes down each regular file below $KILN_OPENLOG_UNDER that is opened
 * for reading, by its real path, and each path there at which nothing was found, into the file
 * $KILN_OPENLOG: "+ PATH" and "- PATH". What it is an oracle of is none of kiln's business. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The next function of this name; function pointers and void pointers are the same bytes here. */
#define NEXT(pointer, name)                                                                        \
    do {                                                                                           \
        void *found = dlsym(RTLD_NEXT, name);                                                      \
        memcpy(&(pointer), &found, sizeof(pointer));                                               \
    } while (0)

static int open_next(const char *path, int flags, mode_t mode)
{
    static int (*function)(const char *, int, ...);
    if (function == NULL) {
        NEXT(function, "open");
    }
    return function(path, flags, mode);
}

static void write_line(char sign, const char *path)
{
    const char *log = getenv("KILN_OPENLOG");
    const char *under = getenv("KILN_OPENLOG_UNDER");
    if (log == NULL || under == NULL || strncmp(path, under, strlen(under)) != 0) {
        return;
    }
    char line[4200];
    const int length = snprintf(line, sizeof(line), "%c %s\n", sign, path);
    const int file = open_next(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (length > 0 && (size_t)length < sizeof(line)) {
            (void)!write(file, line, (size_t)length);
        }
        (void)close(file);
    }
}

/* Keeps errno: the caller looks at it. */
static void note(int file, const char *path)
{
    const int error = errno;
    char link[64];
    char real[4096];
    struct stat facts;
    if (file < 0 && (error == ENOENT || error == ENOTDIR)) {
        write_line('-', path);
    } else if (file >= 0 && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode)) {
        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
        const ssize_t length = readlink(link, real, sizeof(real) - 1);
        if (length > 0) {
            real[length] = '\0';
            write_line('+', real);
        }
    }
    errno = error;
}

static mode_t mode_of(int flags, va_list args)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(args, int) : 0;
}

#define DEFINE_OPEN(name)                                                                          \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        const mode_t mode = mode_of(flags, args);                                                  \
        va_end(args);                                                                              \
        const int file = open_next(path, flags, mode);                                             \
        if ((flags & O_ACCMODE) == O_RDONLY) {                                                     \
            note(file, path);                                                                      \
        }                                                                                          \
        return file;                                                                               \
    }
#define DEFINE_OPENAT(name)                                                                        \
    int name(int at, const char *path, int flags, ...)                                             \
    {                                                                                              \
        static int (*function)(int, const char *, int, ...);                                       \
        va_list args;                                                                              \
        if (function == NULL) {                                                                    \
            NEXT(function, #name);                                                                 \
        }                                                                                          \
        va_start(args, flags);                                                                     \
        const mode_t mode = mode_of(flags, args);                                                  \
        va_end(args);                                                                              \
        const int file = function(at, path, flags, mode);                                          \
        if ((flags & O_ACCMODE) == O_RDONLY) {                                                     \
            note(file, path);                                                                      \
        }                                                                                          \
        return file;                                                                               \
    }
#define DEFINE_FOPEN(name)                                                                         \
    FILE *name(const char *path, const char *how)                                                  \
    {                                                                                              \
        static FILE *(*function)(const char *, const char *);                                      \
        if (function == NULL) {                                                                    \
            NEXT(function, #name);                                                                 \
        }                                                                                          \
        FILE *stream = function(path, how);                                                        \
        if (how[0] == 'r') {                                                                       \
            note(stream != NULL ? fileno(stream) : -1, path);                                      \
        }                                                                                          \
        return stream;                                                                             \
    }

DEFINE_OPEN(open)
#ifdef __GLIBC__ /* elsewhere the same as without 64 */
DEFINE_OPEN(open64)
#endif
DEFINE_OPENAT(openat)
#ifdef __GLIBC__ /* elsewhere the same as without 64 */
DEFINE_OPENAT(openat64)
#endif
DEFINE_FOPEN(fopen)
#ifdef __GLIBC__ /* elsewhere the same as without 64 */
DEFINE_FOPEN(fopen64)
#endif
