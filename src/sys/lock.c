/* Advisory locks on byte ranges; see lock.h. */
#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/fail.h"

#define MAX_OFFSET (UINT64_C(1) << 62)

struct kn_lock_file {
    int fd;
};

kiln_status kn_lock_file_open(const char *path, kn_lock_file **out_file, kiln_diag *diag)
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
    } else if ((file = malloc(sizeof *file)) == NULL) {
        status = kn_fail_nomem(diag, "cannot open lock file", path);
    }
    if (status != KILN_OK || file == NULL) {
        (void)close(fd);
        return status;
    }
    file->fd = fd;
    *out_file = file;
    return KILN_OK;
}

void kn_lock_file_close(kn_lock_file *file)
{
    if (file != NULL) {
        (void)close(file->fd);
        free(file);
    }
}

/* 0 or errno. */
static int set_lock(const kn_lock_file *file, short type, uint64_t offset)
{
    struct flock range = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = 1};
    int result;
    do {
        result = fcntl(file->fd, F_OFD_SETLK, &range);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

kiln_status kn_lock_try(kn_lock_file *file, uint64_t offset)
{
    if (offset >= MAX_OFFSET) {
        return KILN_E_INVALID;
    }
    switch (set_lock(file, F_WRLCK, offset)) {
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

void kn_lock_drop(kn_lock_file *file, uint64_t offset)
{
    if (offset < MAX_OFFSET) {
        (void)set_lock(file, F_UNLCK, offset); /* what stays held ends with the file's closing */
    }
}
