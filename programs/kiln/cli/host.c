/* POSIX. Nothing else in the command but host_interrupt.c includes a header of the operating
 * system. */
#include "cli/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const uint64_t second_ns = 1000000000u;

uint64_t host_now(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

int64_t host_wall(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * (int64_t)second_ns + now.tv_nsec;
}

void host_sleep(uint64_t ns)
{
    const struct timespec time = {(time_t)(ns / second_ns), (long)(ns % second_ns)};
    (void)nanosleep(&time, NULL); /* a signal may cut it short */
}

void host_keep_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            /* The wrong way round, so that using it fails as it would have: the lowest number that
             * is free is this one. Where even this fails there is nothing better. */
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

bool host_is_terminal(FILE *file)
{
    int descriptor = fileno(file);
    return descriptor >= 0 && isatty(descriptor) == 1;
}

bool host_can_draw(FILE *file)
{
    const char *terminal = getenv("TERM");
    return host_is_terminal(file) && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

bool host_reader_is_gone(FILE *file)
{
    (void)file; /* SIGPIPE ends the program, unless a user has ignored it */
    return false;
}

unsigned host_columns(void)
{
    struct winsize size = {0};
    if ((ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) ||
        (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)) {
        return size.ws_col;
    }
    return 80;
}

struct host_mutex {
    pthread_mutex_t native;
};

host_mutex *host_mutex_create(void)
{
    host_mutex *mutex = calloc(1, sizeof(*mutex));
    if (mutex != NULL && pthread_mutex_init(&mutex->native, NULL) != 0) {
        free(mutex);
        return NULL;
    }
    return mutex;
}

void host_mutex_destroy(host_mutex *mutex)
{
    if (mutex != NULL) {
        (void)pthread_mutex_destroy(&mutex->native);
        free(mutex);
    }
}

/* An ordinary mutex that is used in pairs cannot fail. */
void host_mutex_lock(host_mutex *mutex)
{
    (void)pthread_mutex_lock(&mutex->native);
}

void host_mutex_unlock(host_mutex *mutex)
{
    (void)pthread_mutex_unlock(&mutex->native);
}

struct host_thread {
    pthread_t native;
    host_thread_fn *run;
    void *user;
};

static void *begin_thread(void *opaque)
{
    const host_thread *thread = opaque;
    thread->run(thread->user);
    return NULL;
}

host_thread *host_thread_create(host_thread_fn *run, void *user)
{
    host_thread *thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return NULL;
    }
    thread->run = run;
    thread->user = user;
    if (pthread_create(&thread->native, NULL, begin_thread, thread) != 0) {
        free(thread);
        return NULL;
    }
    return thread;
}

void host_thread_join(host_thread *thread)
{
    (void)pthread_join(thread->native, NULL);
    free(thread);
}

size_t host_processors(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 ? (size_t)processors : 1;
}

uint64_t host_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

const char *host_variable(cli_pool *pool, const char *name)
{
    (void)pool; /* what is there is UTF-8 already */
    return getenv(name);
}

bool host_set_variable(const char *name, const char *value)
{
    return (value != NULL ? setenv(name, value, 1) : unsetenv(name)) == 0;
}

void host_each_variable(void (*visit)(void *user, const char *variable), void *user)
{
    extern char **environ;
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        visit(user, *at);
    }
}

FILE *host_text_open(char **text, size_t *size)
{
    return open_memstream(text, size);
}

bool host_text_finish(FILE *file, char **text, size_t *size)
{
    (void)text; /* they are set */
    (void)size;
    return fflush(file) == 0 && ferror(file) == 0;
}

static kiln_status refuse_path(const char *path, kiln_diag *diag, const char *why)
{
    return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "%s", why);
}

static kiln_status read_all(const char *path, FILE *file, size_t size, char **out_data,
                            size_t *out_size, kiln_diag *diag)
{
    char *data = malloc(size + 1);
    if (data == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, path, "no memory for %zu bytes", size);
    }
    size_t got = fread(data, 1, size, file);
    if (ferror(file) != 0) {
        free(data);
        return refuse_path(path, diag, strerror(errno));
    }
    data[got] = '\0';
    *out_data = data;
    *out_size = got;
    return KILN_OK;
}

/* `whole`: a longer file than `limit` is refused; else no more of it is read. */
static kiln_status read_regular(const char *path, size_t limit, bool whole, char **out_data,
                                size_t *out_size, kiln_diag *diag)
{
    *out_data = NULL;
    *out_size = 0;
    /* Non-blocking, so that a pipe given by mistake is refused and not waited for. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "rb") : NULL;
    if (file == NULL) {
        int error = errno;
        if (descriptor >= 0) {
            (void)close(descriptor);
        }
        return kiln_diag_set(diag, KILN_E_INVALID, error == ENOENT ? "check the name" : NULL, path,
                             "%s", error == ENOENT ? "no such file" : strerror(error));
    }
    struct stat info;
    kiln_status status = KILN_OK;
    if (fstat(descriptor, &info) != 0) {
        status = refuse_path(path, diag, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        status =
            refuse_path(path, diag, S_ISDIR(info.st_mode) ? "is a directory" : "is not a file");
    } else if (whole && (uint64_t)info.st_size > limit) {
        status = kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "larger than %zu bytes", limit);
    } else {
        const size_t size = (uint64_t)info.st_size < limit ? (size_t)info.st_size : limit;
        status = read_all(path, file, size, out_data, out_size, diag);
    }
    (void)fclose(file); /* nothing was written */
    return status;
}

kiln_status host_read_file(const char *path, size_t limit, char **out_data, size_t *out_size,
                           kiln_diag *diag)
{
    return read_regular(path, limit, true, out_data, out_size, diag);
}

kiln_status host_read_start(const char *path, size_t most, char **out_data, size_t *out_size,
                            kiln_diag *diag)
{
    return read_regular(path, most, false, out_data, out_size, diag);
}

kiln_status host_write_file(const char *path, const void *data, size_t size, kiln_diag *diag)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return kiln_diag_set(diag, KILN_E_IO,
                             errno == ENOENT ? "make its directory first, or name another" : NULL,
                             path, "%s", strerror(errno));
    }
    bool good = fwrite(data, 1, size, file) == size;
    int error = errno;
    if (fclose(file) != 0) {
        error = good ? errno : error;
        good = false;
    }
    if (!good) {
        return kiln_diag_set(diag, KILN_E_IO, NULL, path, "cannot write: %s", strerror(error));
    }
    return KILN_OK;
}

bool host_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

const char host_list_separator = ':';
const bool host_is_windows = false;

bool host_is_absolute(const char *path)
{
    return path[0] == '/';
}

const char *host_spell(const char *path, char *buffer, size_t size)
{
    if (strchr(path, '/') != NULL || strlen(path) + 3 > size) {
        return path;
    }
    (void)snprintf(buffer, size, "./%s", path);
    return buffer;
}

char *host_absolute(cli_pool *pool, const char *path)
{
    char dir[4096];
    if (path[0] == '/') {
        return pool_text(pool, path, strlen(path));
    }
    return getcwd(dir, sizeof(dir)) != NULL ? host_join(pool, dir, path) : NULL;
}

bool host_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool host_is_writable(const char *path)
{
    return access(path, W_OK) == 0;
}

char *host_dir_of(cli_pool *pool, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return pool_text(pool, ".", 1);
    }
    return pool_text(pool, path, slash == path ? 1 : (size_t)(slash - path));
}

const char *host_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

char *host_join(cli_pool *pool, const char *dir, const char *path)
{
    if (path[0] == '/' || strcmp(dir, ".") == 0) {
        return pool_text(pool, path, strlen(path));
    }
    size_t length = strlen(dir);
    bool slash = length > 0 && dir[length - 1] == '/';
    return pool_format(pool, slash ? "%s%s" : "%s/%s", dir, path);
}

/* Directories deeper than this are not a cache's. */
enum { MAX_DEPTH = 16 };

static void add_size(int dir, const char *name, int depth, uint64_t *bytes, uint64_t *files);

static void walk_directory(DIR *dir, int depth, uint64_t *bytes, uint64_t *files)
{
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            add_size(dirfd(dir), entry->d_name, depth, bytes, files);
        }
    }
}

static void add_size(int dir, const char *name, int depth, uint64_t *bytes, uint64_t *files)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return; /* gone meanwhile */
    }
    if (S_ISREG(info.st_mode)) {
        *bytes += (uint64_t)info.st_size;
        *files += 1;
    } else if (S_ISDIR(info.st_mode) && depth < MAX_DEPTH) {
        int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        DIR *inner = below >= 0 ? fdopendir(below) : NULL;
        if (inner != NULL) {
            walk_directory(inner, depth + 1, bytes, files);
            (void)closedir(inner); /* only read */
        } else if (below >= 0) {
            (void)close(below);
        }
    }
}

bool host_dir_size(const char *path, uint64_t *out_bytes, uint64_t *out_files)
{
    *out_bytes = 0;
    *out_files = 0;
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return false;
    }
    walk_directory(dir, 0, out_bytes, out_files);
    (void)closedir(dir); /* only read */
    return true;
}
