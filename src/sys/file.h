/* Files: reading whole, facts, directories, walking. Paths are UTF-8. Failures leave errno's
 * meaning in the diag (vendor_code is errno); callers that only need "there or not" pass a NULL
 * diag.
 *
 * What works on directories is in dir.c, the paths are in path.c, reading whole is in file_read.c.
 */
#ifndef KILN_SYS_FILE_H
#define KILN_SYS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kiln/status.h"

typedef enum kn_file_kind {
    KN_FILE_REGULAR,
    KN_FILE_DIR,
    KN_FILE_LINK,
    KN_FILE_OTHER,
} kn_file_kind;

typedef struct kn_file_facts {
    kn_file_kind kind;
    uint64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns; /* 0 where the system has none */
    uint64_t inode;
    uint64_t device;
    uint32_t owner;
    uint32_t mode; /* permission bits */
} kn_file_facts;

/* KILN_MISS (no diag) if there is nothing there; KILN_E_IO otherwise. `follow` resolves links. */
kiln_status kn_file_stat(const char *path, bool follow, kn_file_facts *out_facts, kiln_diag *diag);

/* Reads a whole regular file of at most `limit` bytes into malloc'ed memory, with a NUL after the
 * last byte. One open, one fstat, one read. Does not follow a link at the end of the path when
 * `nofollow`. out_facts may be NULL. KILN_MISS (no diag) if there is none; KILN_E_INVALID if it is
 * larger than `limit` or no regular file; KILN_E_IO. */
kiln_status kn_file_read(const char *path, size_t limit, bool nofollow, void **out_data,
                         size_t *out_size, kn_file_facts *out_facts, kiln_diag *diag);

/* As "wb" of fopen(3), but it does not wait for a pipe's reader, and neither do writes to a pipe:
 * NULL with ENXIO where there is none. */
FILE *kn_file_create_stream(const char *path);

/* A directory that is held open: files in it are found without walking the path to it, each part of
 * which the system would look up again. By now it may be gone, or no longer what its path leads to.
 * A link is not followed. KILN_MISS, KILN_E_IO, KILN_E_NOMEM. */
typedef struct kn_held_dir kn_held_dir;
kiln_status kn_held_dir_open(const char *path, kn_held_dir **out_dir, kiln_diag *diag);
void kn_held_dir_close(kn_held_dir *dir);

/* Looks at the first `size` bytes of a large file before the rest is read. */
typedef struct kn_file_gate {
    size_t size;
    bool (*is_worth)(const void *head, uint64_t file_size);
} kn_file_gate;
#define KN_FILE_LARGE ((size_t)1 << 20) /* a smaller one is read at once */

/* As kn_file_read, without following a link. One allocation holds at least `before` bytes for the
 * caller, then the file at *out_at, aligned to a cache line. `path` is relative to `dir` unless
 * that is NULL. `gate` may be NULL; a file that it refuses is KILN_E_INVALID. */
kiln_status kn_file_read_behind(const kn_held_dir *dir, const char *path, size_t limit,
                                const kn_file_gate *gate, size_t before, void **out_memory,
                                size_t *out_at, size_t *out_size, kn_file_facts *out_facts,
                                kiln_diag *diag);

/* Makes a directory with all its parents, each 0700 (Windows: inherited); existing ones are
 * fine. */
kiln_status kn_file_make_dir(const char *path, kiln_diag *diag);

/* Makes one directory that is nobody's yet, 0700, and its parents where they are missing: what is
 * made in a place that all may write to must not be what another user has put there. KILN_E_BUSY if
 * the name is taken, by whatever. */
kiln_status kn_file_make_new_dir(const char *path, kiln_diag *diag);

/* KILN_OK if files can be made in this directory (rights, read-only mounts); KILN_E_IO with the
 * reason. */
kiln_status kn_file_writable(const char *dir, kiln_diag *diag);

/* What is free for this user on the file system of a path, and its size. KILN_E_IO where the system
 * does not say. */
kiln_status kn_file_space(const char *path, uint64_t *out_free, uint64_t *out_size);

/* Removes one file; KILN_MISS if it was not there. kn_file_remove_dir removes an empty one. */
kiln_status kn_file_remove(const char *path, kiln_diag *diag);
kiln_status kn_file_remove_dir(const char *path);

/* A second name for a directory whose own name cannot be used.
 * Makes `path` a link to `target` (absolute, or relative to the caller's working directory).
 * KILN_E_UNSUPPORTED where the system has no links for everybody. Remove with kn_file_remove. */
kiln_status kn_link_create(const char *target, const char *path, kiln_diag *diag);

/* Sets mtime to now without changing anything else: kiln's own last-use stamp. */
kiln_status kn_file_touch(const char *path);

/* Calls `visit` for each name in a directory but "." and "..", in no order; a status other than
 * KILN_OK ends it. KILN_MISS if there is no such directory. */
typedef kiln_status kn_file_visit(void *user, const char *name);
kiln_status kn_file_list(const char *dir, kn_file_visit *visit, void *user, kiln_diag *diag);

/* A random-access file for small shared records (stats). Opened read-write, made 0600 if absent. */
typedef struct kn_file kn_file;
kiln_status kn_file_open(const char *path, bool writable, kn_file **out_file, kiln_diag *diag);
void kn_file_close(kn_file *file);
/* Reads or writes exactly `size` bytes at `offset`; a short file is KILN_MISS on read. */
kiln_status kn_file_read_at(kn_file *file, uint64_t offset, void *data, size_t size);
kiln_status kn_file_write_at(kn_file *file, uint64_t offset, const void *data, size_t size);

/* What stands between the paths of a list in the environment. */
#ifdef _WIN32
#define KN_PATH_LIST_SEPARATOR ";"
#else
#define KN_PATH_LIST_SEPARATOR ":"
#endif

/* Joins with exactly one separator; malloc'ed, NULL when out of memory. kn_path_dir gives the
 * part before the last separator ("." if none), malloc'ed; kn_path_name the part after it,
 * borrowed. */
char *kn_path_join(const char *dir, const char *name);
char *kn_path_dir(const char *path);
const char *kn_path_name(const char *path);
bool kn_path_is_absolute(const char *path);
/* Absolute, with all links followed; malloc'ed, or NULL if there is no such file. */
char *kn_path_resolve(const char *path);

#endif
