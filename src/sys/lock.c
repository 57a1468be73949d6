/* Advisory locks on byte ranges; see lock.h. */
#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/fail.h"
#include "sys/thread.h"
#include "sys/umask.h"

#define MAX_OFFSET (UINT64_C(1) << 62)
#define OPEN_TRIES 100 /* forks that come between opening a file and listing it */
#define FORKERS 16

/* A byte that a thread took first in a file. */
typedef struct holding {
    dev_t device;
    ino_t inode;
    uint64_t offset;
} holding;

struct kn_lock_file {
    int fd;       /* -1: closed in a child */
    bool kept;    /* while the program runs code of its own */
    bool watched; /* whether the next one was asked for */
    int closings; /* inotify's handle, -1 if there is none */
    uint64_t size;
    struct kn_lock_file *next, **link;
    uint32_t held;    /* bytes that were taken and not dropped */
    uintptr_t thread; /* that took the byte below; 0: none is taken */
    holding first;
};

/* Every open lock file, for the child of a fork. The mutex is held from before a fork until after
 * it in both processes, and never while the system is asked for anything slow. */
static struct {
    pthread_mutex_t mutex;
    pthread_once_t once;
    kn_lock_file *files;
    uint64_t forks;
    holding forkers[FORKERS]; /* what the forking threads of this process' ancestors held */
    size_t forker_count;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* The file's descriptor while it is its own. -1 from then on: it can neither be used nor closed. */
static int own_descriptor(const kn_lock_file *file)
{
    struct stat facts;
    if (!file->kept) {
        return file->fd;
    }
    return file->fd >= 0 && fstat(file->fd, &facts) == 0 && facts.st_dev == file->first.device &&
                   facts.st_ino == file->first.inode
               ? file->fd
               : -1;
}

/* --- forks ------------------------------------------------------------------------------------ */

static void before_fork(void)
{
    (void)pthread_mutex_lock(&all.mutex);
    all.forks++;
}

static void after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&all.mutex);
}

static void after_fork_in_child(void)
{
    for (kn_lock_file *file = all.files; file != NULL; file = file->next) {
        const int fd = own_descriptor(file);
        file->fd = -1;
        if (fd >= 0) {
            (void)close(fd);
        }
        if (file->closings >= 0) {
            (void)close(file->closings);
            file->closings = -1;
        }
        if (file->thread == kn_thread_self()) {
            all.forkers[all.forker_count++ % FORKERS] = file->first;
        }
        file->thread = 0;
    }
    (void)pthread_mutex_unlock(&all.mutex);
}

static void watch_forks(void)
{
    /* Without memory for it children keep locks until they end. */
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static uint64_t count_forks(void)
{
    (void)pthread_mutex_lock(&all.mutex);
    const uint64_t forks = all.forks;
    (void)pthread_mutex_unlock(&all.mutex);
    return forks;
}

/* False when there was a fork since: the child may have the file open and does not know it. */
static bool list_file(kn_lock_file *file, uint64_t forks)
{
    (void)pthread_mutex_lock(&all.mutex);
    const bool same = all.forks == forks || forks == UINT64_MAX;
    if (same) {
        file->next = all.files;
        file->link = &all.files;
        if (file->next != NULL) {
            file->next->link = &file->next;
        }
        all.files = file;
    }
    (void)pthread_mutex_unlock(&all.mutex);
    return same;
}

static void unlist_file(kn_lock_file *file)
{
    (void)pthread_mutex_lock(&all.mutex);
    *file->link = file->next;
    if (file->next != NULL) {
        file->next->link = file->link;
    }
    (void)pthread_mutex_unlock(&all.mutex);
}

/* --- files ------------------------------------------------------------------------------------ */

/* 0 or errno. `count` 0: all bytes from the offset on. */
static int set_lock(int fd, short type, uint64_t offset, off_t count)
{
    struct flock range = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = count};
    int result;
    do {
        result = fcntl(fd, F_OFD_SETLK, &range);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

static kiln_status open_unlisted(const char *path, kn_lock_file **out_file, kiln_diag *diag)
{
    struct stat facts;
    int fd;

    *out_file = NULL;
    do {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return kn_fail(diag, KILN_E_IO, errno, "cannot open lock file", path);
    }
    kn_lock_file *file = NULL;
    kiln_status status = KILN_OK;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        status = kiln_diag_set(diag, KILN_E_IO, NULL, path, "it is not a regular file");
    } else if ((file = calloc(1, sizeof *file)) == NULL) {
        status = kn_fail_nomem(diag, "cannot open lock file", path);
    }
    if (status != KILN_OK || file == NULL) {
        (void)close(fd);
        return status;
    }
    kn_umask_mend_file(fd, &facts);
    file->fd = fd;
    file->closings = -1;
    file->size = (uint64_t)facts.st_size;
    file->first = (holding){.device = facts.st_dev, .inode = facts.st_ino};
    *out_file = file;
    return KILN_OK;
}

kiln_status kn_lock_file_open(const char *path, kn_lock_file **out_file, kiln_diag *diag)
{
    (void)pthread_once(&all.once, watch_forks);
    for (int tries = 1;; tries++) {
        const uint64_t forks = tries < OPEN_TRIES ? count_forks() : UINT64_MAX;
        kiln_status status = open_unlisted(path, out_file, diag);
        if (status != KILN_OK || *out_file == NULL || list_file(*out_file, forks)) {
            return status;
        }
        (void)close((*out_file)->fd);
        free(*out_file);
    }
}

void kn_lock_file_close(kn_lock_file *file)
{
    if (file != NULL) {
        unlist_file(file);
        if (file->closings >= 0) {
            (void)close(file->closings);
        }
        const int fd = own_descriptor(file);
        if (fd >= 0) {
            if (file->held > 0 &&
                !file->kept) { /* which such a child closes as well when it ends */
                (void)set_lock(fd, F_UNLCK, 0, 0);
            }
            (void)close(fd);
        }
        free(file);
    }
}

void kn_lock_file_keep(kn_lock_file *file)
{
    file->kept = true;
}

bool kn_lock_file_is_at(const kn_lock_file *file, const char *path)
{
    struct stat facts;
    return file->fd >= 0 && lstat(path, &facts) == 0 && facts.st_dev == file->first.device &&
           facts.st_ino == file->first.inode;
}

int kn_lock_file_handle(const kn_lock_file *file, uint64_t *out_size)
{
    *out_size = file->size;
    return own_descriptor(file);
}

/* --- bytes ------------------------------------------------------------------------------------ */

kiln_status kn_lock_try_handle(int handle, uint64_t offset)
{
    if (offset >= MAX_OFFSET) {
        return KILN_E_INVALID;
    }
    switch (set_lock(handle, F_WRLCK, offset, 1)) {
    case 0:
        return KILN_OK;
    case EAGAIN:
    case EACCES:
        return KILN_E_BUSY;
    case ENOLCK:
    case EOPNOTSUPP:
    case ENOSYS:
    case EINVAL:
        return KILN_E_UNSUPPORTED;
    default:
        return KILN_E_IO;
    }
}

static void note_taken(kn_lock_file *file, uint64_t offset)
{
    (void)pthread_mutex_lock(&all.mutex);
    file->held++;
    if (file->thread == 0) {
        file->thread = kn_thread_self();
        file->first.offset = offset;
    }
    (void)pthread_mutex_unlock(&all.mutex);
}

static void note_dropped(kn_lock_file *file, uint64_t offset)
{
    (void)pthread_mutex_lock(&all.mutex);
    file->held -= file->held > 0;
    if (file->first.offset == offset) {
        file->thread = 0;
    }
    (void)pthread_mutex_unlock(&all.mutex);
}

kiln_status kn_lock_try(kn_lock_file *file, uint64_t offset)
{
    const kiln_status status = kn_lock_try_handle(own_descriptor(file), offset);
    if (status == KILN_OK) {
        note_taken(file, offset);
    }
    return status;
}

void kn_lock_drop(kn_lock_file *file, uint64_t offset)
{
    if (offset < MAX_OFFSET) {
        note_dropped(file, offset);
        /* What stays held ends with the file's closing. */
        (void)set_lock(own_descriptor(file), F_UNLCK, offset, 1);
    }
}

static bool ask_lock(const kn_lock_file *file, uint64_t offset, uint64_t count,
                     struct flock *out_lock)
{
    *out_lock = (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)count};
    return offset < MAX_OFFSET && count < MAX_OFFSET &&
           fcntl(own_descriptor(file), F_OFD_GETLK, out_lock) == 0 && out_lock->l_type != F_UNLCK;
}

bool kn_lock_is_any_held(kn_lock_file *file, uint64_t offset, uint64_t count)
{
    struct flock lock;
    return ask_lock(file, offset, count, &lock);
}

uint64_t kn_lock_find(kn_lock_file *file, uint64_t offset, uint64_t count)
{
    struct flock lock;
    /* SMB says that there is one, and leaves the range as it was. */
    const bool found = ask_lock(file, offset, count, &lock) && lock.l_len == 1 &&
                       (uint64_t)lock.l_start >= offset && (uint64_t)lock.l_start - offset < count;
    return found ? (uint64_t)lock.l_start : 0;
}

bool kn_lock_is_held(kn_lock_file *file, uint64_t offset)
{
    return kn_lock_is_any_held(file, offset, 1);
}

bool kn_lock_is_forkers(const kn_lock_file *file, uint64_t offset)
{
    bool found = false;
    (void)pthread_mutex_lock(&all.mutex);
    for (size_t i = 0; !found && i < all.forker_count && i < FORKERS; i++) {
        const holding *held = &all.forkers[i];
        found = held->device == file->first.device && held->inode == file->first.inode &&
                held->offset == offset;
    }
    (void)pthread_mutex_unlock(&all.mutex);
    return found;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Under the mutex, so that the child of a fork finds the handle in the list or does not have it. */
static void watch_closings(kn_lock_file *file, const char *path)
{
    (void)pthread_mutex_lock(&all.mutex);
    file->watched = true;
    file->closings = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (file->closings >= 0 && inotify_add_watch(file->closings, path, IN_CLOSE_WRITE) < 0) {
        (void)close(file->closings);
        file->closings = -1;
    }
    (void)pthread_mutex_unlock(&all.mutex);
}

bool kn_lock_wait(kn_lock_file *file, const char *path, uint64_t ns)
{
    const uint64_t second = 1000000000;
    char events[1024];
    bool seen = false;
    if (!file->watched) {
        watch_closings(file, path);
        if (file->closings >= 0) {
            return false;
        }
    }
    if (file->closings < 0) {
        kn_clock_sleep(ns);
        return false;
    }
    struct pollfd closings = {.fd = file->closings, .events = POLLIN};
    const struct timespec limit = {.tv_sec = (time_t)(ns / second), .tv_nsec = (long)(ns % second)};
    (void)ppoll(&closings, 1, &limit, NULL); /* a signal is as good as the end of the pause */
    while (read(file->closings, events, sizeof events) > 0) {
        seen = true;
    }
    return seen;
}
