/* Files: facts, small shared records, and what file_read.c needs. Directories are in dir.c. */
#include "sys/file_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "sys/facts.h"
#include "sys/fail.h"
#include "sys/umask.h"

struct kn_file {
    int fd;
};

void kn_file_take_facts(const struct stat *from, kn_file_facts *out)
{
    *out = (kn_file_facts){
        .kind = S_ISREG(from->st_mode)   ? KN_FILE_REGULAR
                : S_ISDIR(from->st_mode) ? KN_FILE_DIR
                : S_ISLNK(from->st_mode) ? KN_FILE_LINK
                                         : KN_FILE_OTHER,
        .size = (uint64_t)from->st_size,
        .mtime_ns = (int64_t)from->st_mtim.tv_sec * 1000000000 + from->st_mtim.tv_nsec,
        .ctime_ns = (int64_t)from->st_ctim.tv_sec * 1000000000 + from->st_ctim.tv_nsec,
        .inode = from->st_ino,
        .device = from->st_dev,
        .owner = from->st_uid,
        .mode = from->st_mode & 07777,
    };
}

kiln_status kn_file_stat(const char *path, bool follow, kn_file_facts *out_facts, kiln_diag *diag)
{
    struct stat facts;
    *out_facts = (kn_file_facts){0};
    if (fstatat(AT_FDCWD, path, &facts, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
        return kn_fail_or_miss(diag, errno, "cannot look at", path);
    }
    kn_file_take_facts(&facts, out_facts);
    return KILN_OK;
}

static int open_retrying(int dir, const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = openat(dir, path, flags, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

kiln_status kn_file_read_some(kn_handle handle, const char *path, char *data, size_t size,
                              size_t *out_got, kiln_diag *diag)
{
    *out_got = 0;
    while (*out_got < size) {
        ssize_t n = read(handle, data + *out_got, size - *out_got);
        if (n == 0) {
            break;
        }
        if (n > 0) {
            *out_got += (size_t)n;
        } else if (errno != EINTR) {
            return errno == ESTALE ? KILN_MISS
                                   : kn_fail(diag, KILN_E_IO, errno, "cannot read", path);
        }
    }
    return KILN_OK;
}

static kiln_status take_open_facts(int fd, const char *path, kn_file_facts *out_facts,
                                   kiln_diag *diag)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0) {
        return kn_fail_or_miss(diag, errno, "cannot look at", path);
    }
    kn_file_take_facts(&facts, out_facts);
    return KILN_OK;
}

kiln_status kn_file_read_room(const kn_held_dir *dir, const char *path, size_t limit, bool nofollow,
                              kn_room *to, kn_file_facts *out_facts, kiln_diag *diag)
{
    /* O_NONBLOCK: a planted FIFO must not hang the open. It changes nothing for regular files. */
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (nofollow ? O_NOFOLLOW : 0);
    int fd = open_retrying(dir != NULL ? kn_held_dir_handle(dir) : AT_FDCWD, path, flags, 0);
    if (fd < 0 && nofollow && errno == ELOOP) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is a link");
    }
    if (fd < 0) {
        return kn_fail_or_miss(diag, errno, "cannot open", path);
    }
    kiln_status status = take_open_facts(fd, path, out_facts, diag);
    if (status == KILN_OK) {
        status = kn_file_read_handle(fd, out_facts, path, limit, to, diag);
    }
    (void)close(fd); /* nothing was written */
    return status;
}

kiln_status kn_file_remove(const char *path, kiln_diag *diag)
{
    if (unlink(path) == 0) {
        return KILN_OK;
    }
    return kn_fail_or_miss(diag, errno, "cannot remove", path);
}

kiln_status kn_file_touch(const char *path)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) == 0) {
        return KILN_OK;
    }
    return kn_means_missing(errno) ? KILN_MISS : KILN_E_IO;
}

char *kn_path_resolve(const char *path)
{
    return realpath(path, NULL);
}

kiln_status kn_file_open(const char *path, bool writable, kn_file **out_file, kiln_diag *diag)
{
    struct stat facts;
    *out_file = NULL;
    int flags = writable ? O_RDWR | O_CREAT : O_RDONLY;
    int fd =
        open_retrying(AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
        return writable ? kn_fail(diag, KILN_E_IO, errno, "cannot open", path)
                        : kn_fail_or_miss(diag, errno, "cannot open", path);
    }
    kn_file *file = NULL;
    kiln_status status = KILN_OK;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        status = kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is not a regular file");
    } else if ((file = malloc(sizeof *file)) == NULL) {
        status = kn_fail_nomem(diag, "cannot open", path);
    }
    if (status != KILN_OK || file == NULL) {
        (void)close(fd);
        return status;
    }
    if (writable) {
        kn_umask_mend_file(fd, &facts);
    }
    file->fd = fd;
    *out_file = file;
    return KILN_OK;
}

void kn_file_close(kn_file *file)
{
    if (file != NULL) {
        (void)close(file->fd); /* the records it is for may be lost */
        free(file);
    }
}

kiln_status kn_file_read_at(kn_file *file, uint64_t offset, void *data, size_t size)
{
    char *to = data;
    while (size > 0) {
        ssize_t n = pread(file->fd, to, size, (off_t)offset);
        if (n == 0) {
            return KILN_MISS;
        }
        if (n > 0) {
            to += n;
            offset += (uint64_t)n;
            size -= (size_t)n;
        } else if (errno != EINTR) {
            return KILN_E_IO;
        }
    }
    return KILN_OK;
}

bool kn_file_may_reach(uint64_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        size <= limit.rlim_cur) {
        return true;
    }
    errno = EFBIG;
    return false;
}

kiln_status kn_file_write_at(kn_file *file, uint64_t offset, const void *data, size_t size)
{
    const char *from = data;
    if (!kn_file_may_reach(offset + size)) {
        return KILN_E_IO;
    }
    while (size > 0) {
        ssize_t n = pwrite(file->fd, from, size, (off_t)offset);
        if (n > 0) {
            from += n;
            offset += (uint64_t)n;
            size -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            return KILN_E_IO;
        }
    }
    return KILN_OK;
}

FILE *kn_file_create_stream(const char *path)
{
    struct stat facts;
    FILE *stream = NULL;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
        return NULL;
    }
    const bool good =
        fstat(fd, &facts) == 0 && (S_ISFIFO(facts.st_mode) || fcntl(fd, F_SETFL, O_WRONLY) == 0);
    if (!good || (stream = fdopen(fd, "wb")) == NULL) {
        const int error = errno;
        (void)close(fd);
        errno = error;
    }
    return stream;
}

kiln_status kn_link_create(const char *target, const char *path, kiln_diag *diag)
{
    char *whole = NULL;
    if (!kn_path_is_absolute(target)) {
        char *dir = realpath(".", NULL);
        whole = dir != NULL ? kn_path_join(dir, target) : NULL;
        free(dir);
        if (whole == NULL) {
            return kn_no_memory(diag, "linking to a directory");
        }
    }
    kiln_status status = KILN_OK;
    if (symlink(whole != NULL ? whole : target, path) != 0) {
        int code = errno;
        status = kiln_diag_set(diag, KILN_E_IO, NULL, "linking to a directory", "%s -> %s: %s",
                               path, target, strerror(code));
        kiln_diag_set_vendor_code(diag, code);
    }
    free(whole);
    return status;
}
