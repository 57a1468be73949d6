/* Publishing a file by rename; see publish.h for the calling sequence. */
#include "sys/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/facts.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/lock.h"

#define MAX_TRIES 8
#define LIFE_LOCK UINT64_C(0) /* the byte that is locked while the writer lives */

/* Shows a sweep that this temporary has a writer. False when one was quicker: it holds the lock
 * itself, or has removed the file already. */
static bool hold_temporary(int handle)
{
    struct stat facts;
    return kn_lock_try_handle(handle, LIFE_LOCK) != KILN_E_BUSY && fstat(handle, &facts) == 0 &&
           facts.st_nlink > 0;
}

/* Opens a new file in `tmp_dir`, which is made if it is missing. */
static kiln_status open_temporary(kn_publish *publish, const char *tmp_dir, kiln_diag *diag)
{
    int error = 0;
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        free(publish->temporary);
        publish->temporary = kn_publish_name_temporary(tmp_dir);
        if (publish->temporary == NULL) {
            return kn_fail_nomem(diag, "cannot publish", publish->final_path);
        }
        publish->handle =
            open(publish->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        error = errno;
        if (publish->handle >= 0) {
            /* For a umask that takes the owner's own bits; some file systems have no modes. */
            (void)fchmod(publish->handle, 0600);
            if (hold_temporary(publish->handle)) {
                return KILN_OK;
            }
            (void)close(publish->handle);
            (void)unlink(publish->temporary);
            publish->handle = -1;
            error = EEXIST;
        }
        if (error == ENOENT) {
            kiln_status status = kn_file_make_dir(tmp_dir, diag);
            if (status != KILN_OK) {
                return status;
            }
        } else if (error != EEXIST && error != EINTR && error != ESTALE) {
            break;
        }
    }
    return kn_fail(diag, KILN_E_IO, error, "cannot make a file in", tmp_dir);
}

static void forget_temporary(kn_publish *publish)
{
    free(publish->temporary);
    free(publish->dir);
    free(publish->final_path);
    *publish = (kn_publish){.handle = -1};
}

/* By /proc alone a file without a name can get one. */
static void handle_path(int handle, char path[40])
{
    kn_text_putf(path, 40, "/proc/self/fd/%d", handle);
}

/* Opens a file that has no name. False, with nothing changed, where that cannot be done here: older
 * kernels, network file systems, a directory that is not there yet. */
static bool open_unnamed(kn_publish *publish, const char *tmp_dir)
{
#ifdef O_TMPFILE
    char path[40];
    struct stat facts;
    const int handle = open(tmp_dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (handle < 0) {
        return false;
    }
    handle_path(handle, path);
    publish->dir = kn_text_copy(tmp_dir);
    if (publish->dir == NULL || stat(path, &facts) != 0) {
        free(publish->dir);
        publish->dir = NULL;
        (void)close(handle);
        return false;
    }
    (void)fchmod(handle, 0600); /* as for one with a name */
    publish->handle = handle;
    return true;
#else
    (void)publish;
    (void)tmp_dir;
    return false;
#endif
}

static void set_failure(kn_publish *publish, int error)
{
    if (publish->failure == KILN_OK) {
        publish->failure = KILN_E_IO;
        publish->failure_errno = error;
    }
}

/* Gives a file that was opened without a name one in the directory for temporaries. The lock comes
 * first: there is no moment in which it looks left over. */
static void name_temporary(kn_publish *publish)
{
    char path[40];
    int error = EEXIST;
    handle_path(publish->handle, path);
    (void)kn_lock_try_handle(publish->handle, LIFE_LOCK);
    for (int tries = 0; tries < MAX_TRIES && (error == EEXIST || error == EINTR); tries++) {
        char *name = kn_publish_name_temporary(publish->dir);
        if (name == NULL) {
            publish->failure = KILN_E_NOMEM;
            publish->failure_errno = ENOMEM;
            return;
        }
        if (linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            publish->temporary = name;
            return;
        }
        error = errno;
        free(name);
    }
    set_failure(publish, error);
}

static kiln_status begin_temporary(kn_publish *publish, bool named, const char *tmp_dir,
                                   const char *final_path, kiln_diag *diag)
{
    *publish = (kn_publish){.handle = -1};
    publish->final_path = kn_text_copy(final_path);
    if (publish->final_path == NULL) {
        return kn_fail_nomem(diag, "cannot publish", final_path);
    }
    if (open_unnamed(publish, tmp_dir)) {
        if (named) {
            name_temporary(publish);
        }
        if (publish->failure == KILN_OK) {
            return KILN_OK;
        }
        (void)close(publish->handle);
        free(publish->dir);
        publish->dir = NULL;
        publish->failure = KILN_OK;
    }
    kiln_status status = open_temporary(publish, tmp_dir, diag);
    if (status != KILN_OK) {
        forget_temporary(publish);
    }
    return status;
}

kiln_status kn_publish_begin(kn_publish *publish, const char *tmp_dir, const char *final_path,
                             kiln_diag *diag)
{
    return begin_temporary(publish, true, tmp_dir, final_path, diag);
}

kiln_status kn_publish_begin_unnamed(kn_publish *publish, const char *tmp_dir,
                                     const char *final_path, kiln_diag *diag)
{
    return begin_temporary(publish, false, tmp_dir, final_path, diag);
}

/* Drops the first `written` bytes from the parts and returns how many are done. */
static size_t advance_parts(struct iovec *parts, size_t count, size_t written)
{
    size_t done = 0;
    while (done < count && written >= parts[done].iov_len) {
        written -= parts[done++].iov_len;
    }
    if (done < count) {
        parts[done].iov_base = (char *)parts[done].iov_base + written;
        parts[done].iov_len -= written;
    }
    return done;
}

/* After what is written already. */
static void check_limit(kn_publish *publish, const kn_span *parts, size_t count)
{
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += parts[i].length;
    }
    const off_t at = lseek(publish->handle, 0, SEEK_CUR);
    if (at >= 0 && !kn_file_may_reach((uint64_t)at + size)) {
        set_failure(publish, errno);
    }
}

void kn_publish_write_parts(kn_publish *publish, const kn_span *parts, size_t count)
{
    struct iovec left[KN_PUBLISH_PARTS];
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        left[i] = (struct iovec){.iov_base = (void *)(uintptr_t)parts[i].data,
                                 .iov_len = parts[i].length};
    }
    first = advance_parts(left, count, 0); /* empty ones */
    check_limit(publish, parts, count);
    while (first < count && publish->failure == KILN_OK) {
        ssize_t n = writev(publish->handle, left + first, (int)(count - first));
        if (n > 0) {
            first += advance_parts(left + first, count - first, (size_t)n);
        } else if (n == 0) {
            set_failure(publish, EIO);
        } else if (errno != EINTR) {
            set_failure(publish, errno);
        }
    }
}

void kn_publish_write(kn_publish *publish, const void *data, size_t size)
{
    const kn_span whole = kn_span_of(data, size);
    kn_publish_write_parts(publish, &whole, 1);
}

void kn_publish_share(kn_publish *publish)
{
    if (publish->failure == KILN_OK && fchmod(publish->handle, 0644) != 0) {
        set_failure(publish, errno);
    }
}

void kn_publish_start_writing(const kn_publish *publish)
{
    if (publish->failure == KILN_OK) {
        /* The system writes it later all the same. */
        (void)sync_file_range(publish->handle, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
}

void kn_publish_insist(kn_publish *publish)
{
    struct stat facts;
    if (publish->failure != KILN_OK) {
        return;
    }
    if (fstat(publish->handle, &facts) != 0) {
        set_failure(publish, errno);
        return;
    }
    publish->insists = true;
    publish->device = facts.st_dev;
    publish->inode = facts.st_ino;
}

static void drop_temporary(const kn_publish *publish)
{
    if (publish->temporary != NULL) {
        (void)unlink(publish->temporary);
    }
}

/* Has all of it written. An error on close is one of writing: NFS reports a full disk only there. A
 * second descriptor keeps the file, and the lock on it, until it has its name. */
static void finish_writing(kn_publish *publish, bool sync)
{
    if (sync && publish->failure == KILN_OK) {
        int result;
        do {
            result = fdatasync(publish->handle);
        } while (result != 0 && errno == EINTR);
        if (result != 0 && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
            set_failure(publish, errno);
        }
    }
    const int second = fcntl(publish->handle, F_DUPFD_CLOEXEC, 0);
    if (second >= 0) {
        if (close(publish->handle) != 0 && errno != EINTR) {
            set_failure(publish, errno);
        }
        publish->handle = second;
    }
}

static void close_handle(kn_publish *publish)
{
    if (publish->handle >= 0 && close(publish->handle) != 0 && errno != EINTR) {
        set_failure(publish, errno);
    }
    publish->handle = -1;
}

static bool is_lost_race(int error)
{
    return error == EEXIST || error == ESTALE || error == ENOENT || error == EBUSY;
}

/* Another publisher's file is as good as ours, unless it must be ours. */
static bool is_published(const kn_publish *publish)
{
    struct stat facts;
    return stat(publish->final_path, &facts) == 0 && S_ISREG(facts.st_mode) &&
           (!publish->insists ||
            (facts.st_dev == publish->device && facts.st_ino == publish->inode));
}

/* A new name needs no rename. False: another file has it, or it failed. */
static bool link_into_place(kn_publish *publish)
{
    char path[40];
    int error = 0;
    handle_path(publish->handle, path);
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        if (linkat(AT_FDCWD, path, AT_FDCWD, publish->final_path, AT_SYMLINK_FOLLOW) == 0) {
            return true;
        }
        error = errno;
        if (error == EEXIST) {
            return false;
        }
        if (error == ENOENT) { /* the directory was never made, or was removed by an eviction */
            const int made = kn_publish_make_dir_of(publish->final_path);
            if (made != 0) {
                error = made;
                break;
            }
        } else if (error != EINTR && error != ESTALE && error != EBUSY) {
            break;
        }
    }
    set_failure(publish, error);
    return false;
}

static void move_into_place(kn_publish *publish)
{
    int error = 0;
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        if (rename(publish->temporary, publish->final_path) == 0) {
            return;
        }
        error = errno;
        if (error == EINTR) {
            continue;
        }
        if (!is_lost_race(error)) {
            break;
        }
        if (is_published(publish)) {
            drop_temporary(publish);
            return;
        }
        if (error == ENOENT) { /* the directory was never made, or was removed by an eviction */
            int made = kn_publish_make_dir_of(publish->final_path);
            if (made != 0) {
                error = made;
                break;
            }
        }
    }
    set_failure(publish, error);
}

kiln_status kn_publish_commit(kn_publish *publish, bool sync, kiln_diag *diag)
{
    kiln_status status = KILN_OK;

    finish_writing(publish, sync);
    bool in_place =
        publish->temporary == NULL && publish->failure == KILN_OK && link_into_place(publish);
    if (publish->temporary == NULL && publish->failure == KILN_OK && !in_place) {
        name_temporary(publish);
    }
    if (publish->failure == KILN_OK && !in_place) {
        move_into_place(publish);
    }
    close_handle(publish);
    if (publish->failure != KILN_OK) {
        drop_temporary(publish);
        status = kn_fail(diag, publish->failure, publish->failure_errno, "cannot publish",
                         publish->final_path);
    }
    forget_temporary(publish);
    publish->made_new = in_place;
    return status;
}

void kn_publish_abort(kn_publish *publish)
{
    if (publish->handle >= 0) {
        (void)close(publish->handle);
        drop_temporary(publish);
    }
    forget_temporary(publish);
}

kiln_status kn_publish_reclaim(const char *path)
{
    const int handle = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
    if (handle < 0) {
        return errno == ENOENT || errno == ESTALE ? KILN_MISS : KILN_E_IO;
    }
    kiln_status status = kn_lock_try_handle(handle, LIFE_LOCK);
    if (status == KILN_OK) {
        status = kn_file_remove(path, NULL);
    }
    (void)close(handle); /* nothing was written */
    return status;
}
