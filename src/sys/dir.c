/* Directories: making, removing, listing, and looking at what is in them. */
#include "sys/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/facts.h"
#include "sys/fail.h"
#include "sys/umask.h"

/* A handle that only leads to names in the directory needs no right to list it. */
#ifdef O_PATH
#define OPEN_TO_LOOK (O_PATH | O_DIRECTORY | O_CLOEXEC)
#else
#define OPEN_TO_LOOK (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#endif

/* How often another process may remove a parent under our hands. */
#define MAX_TRIES 4

/* 0, or the errno that says why there is no such directory now. */
static int make_one(const char *path)
{
    struct stat facts;
    if (mkdir(path, 0700) == 0) {
        kn_umask_mend_dir(path);
        return 0;
    }
    int error = errno;
    if (error == ENOENT) {
        return error;
    }
    /* Whatever the refusal was (EEXIST, EACCES, EROFS, ...): it does not matter if it is there. */
    if (stat(path, &facts) == 0) {
        return S_ISDIR(facts.st_mode) ? 0 : ENOTDIR;
    }
    return error;
}

/* Makes each part of `path`, which is changed on the way and restored. */
static int make_all(char *path)
{
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/' || p[-1] == '/') {
            continue;
        }
        *p = '\0';
        int error = make_one(path);
        *p = '/';
        if (error != 0) {
            return error;
        }
    }
    return make_one(path);
}

kiln_status kn_file_make_dir(const char *path, kiln_diag *diag)
{
    if (path[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "cannot create a directory", "empty path");
    }
    int error = make_one(path);
    if (error == 0) {
        return KILN_OK;
    }
    if (error == ENOENT) {
        char *copy = kn_text_copy(path);
        if (copy == NULL) {
            return kn_fail_nomem(diag, "cannot create directory", path);
        }
        for (int tries = 0; error == ENOENT && tries < MAX_TRIES; tries++) {
            error = make_all(copy);
        }
        free(copy);
    }
    return error == 0 ? KILN_OK : kn_fail(diag, KILN_E_IO, error, "cannot create directory", path);
}

kiln_status kn_file_make_new_dir(const char *path, kiln_diag *diag)
{
    if (mkdir(path, 0700) == 0) {
        kn_umask_mend_dir(path);
        return KILN_OK;
    }
    if (errno == ENOENT) { /* $TMPDIR may name what is not there yet */
        char *parent = kn_path_dir(path);
        const bool made = parent != NULL && kn_file_make_dir(parent, NULL) == KILN_OK;
        free(parent);
        if (made && mkdir(path, 0700) == 0) {
            kn_umask_mend_dir(path);
            return KILN_OK;
        }
    }
    return kn_fail(diag, errno == EEXIST ? KILN_E_BUSY : KILN_E_IO, errno,
                   "cannot create directory", path);
}

kiln_status kn_file_writable(const char *dir, kiln_diag *diag)
{
    /* By the effective user, who is the one that opens files. */
    if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0) {
        return KILN_OK;
    }
    return kn_fail(diag, KILN_E_IO, errno, "cannot write to", dir);
}

kiln_status kn_file_space(const char *path, uint64_t *out_free, uint64_t *out_size)
{
    struct statvfs facts;
    *out_free = *out_size = 0;
    if (statvfs(path, &facts) != 0) {
        return KILN_E_IO;
    }
    *out_free = (uint64_t)facts.f_bavail * facts.f_frsize;
    *out_size = (uint64_t)facts.f_blocks * facts.f_frsize;
    return KILN_OK;
}

kiln_status kn_file_remove_dir(const char *path)
{
    if (rmdir(path) == 0) {
        return KILN_OK;
    }
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
        return KILN_MISS;
    case ENOTEMPTY:
    case EEXIST:
    case EBUSY:
        return KILN_E_BUSY;
    default:
        return KILN_E_IO;
    }
}

static kiln_status visit_listed(DIR *list, const char *dir, kn_file_visit *visit, void *user,
                                kiln_diag *diag)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(list);
        if (entry == NULL && errno != 0) {
            return kn_fail(diag, KILN_E_IO, errno, "cannot list", dir);
        }
        if (entry == NULL) {
            return KILN_OK;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        kiln_status status = visit(user, entry->d_name);
        if (status != KILN_OK) {
            return status;
        }
    }
}

kiln_status kn_file_list(const char *dir, kn_file_visit *visit, void *user, kiln_diag *diag)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return kn_fail_or_miss(diag, errno, "cannot list", dir);
    }
    DIR *list = fdopendir(fd);
    if (list == NULL) {
        kiln_status status = kn_fail(diag, KILN_E_IO, errno, "cannot list", dir);
        (void)close(fd);
        return status;
    }
    kiln_status status = visit_listed(list, dir, visit, user, diag);
    (void)closedir(list);
    return status;
}

/* --- looking ---------------------------------------------------------------------------------- */

kiln_status kn_dir_open(const char *path, kn_dir *out_dir)
{
    out_dir->handle = open(path, OPEN_TO_LOOK);
    if (out_dir->handle >= 0) {
        return KILN_OK;
    }
    return kn_means_missing(errno) ? KILN_MISS : KILN_E_IO;
}

void kn_dir_close(kn_dir *dir)
{
    if (dir->handle >= 0) {
        (void)close(dir->handle); /* nothing was written */
    }
    dir->handle = -1;
}

kiln_status kn_dir_stat(const kn_dir *dir, const char *name, bool follow, kn_file_facts *out_facts)
{
    struct stat facts;
    if (fstatat(dir->handle, name, &facts, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
        *out_facts = (kn_file_facts){0};
        return kn_means_missing(errno) ? KILN_MISS : KILN_E_IO;
    }
    kn_file_take_facts(&facts, out_facts);
    return KILN_OK;
}

struct kn_held_dir {
    int fd;
    dev_t device;
    ino_t inode;
};

kiln_status kn_held_dir_open(const char *path, kn_held_dir **out_dir, kiln_diag *diag)
{
    struct stat facts;
    *out_dir = NULL;
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return kn_fail_or_miss(diag, errno, "cannot open directory", path);
    }
    if (fstat(fd, &facts) != 0) {
        kiln_status status = kn_fail(diag, KILN_E_IO, errno, "cannot open directory", path);
        (void)close(fd);
        return status;
    }
    kn_held_dir *dir = malloc(sizeof *dir);
    if (dir == NULL) {
        (void)close(fd);
        return kn_fail_nomem(diag, "cannot open directory", path);
    }
    *dir = (kn_held_dir){.fd = fd, .device = facts.st_dev, .inode = facts.st_ino};
    *out_dir = dir;
    return KILN_OK;
}

void kn_held_dir_close(kn_held_dir *dir)
{
    struct stat facts;
    if (dir == NULL) {
        return;
    }
    /* A program that closes all descriptors may have something else under this number by now. */
    if (fstat(dir->fd, &facts) == 0 && facts.st_dev == dir->device && facts.st_ino == dir->inode) {
        (void)close(dir->fd);
    }
    free(dir);
}

int kn_held_dir_handle(const kn_held_dir *dir)
{
    return dir->fd;
}
