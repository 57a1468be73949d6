/* Advisory locks on byte ranges of one file, between processes. The kernel drops them when the
 * holder dies, so nothing is ever left behind, and the file itself is never removed.
 *
 * Linux: open-file-description locks (fcntl(2), F_OFD_SETLK): two kn_lock_file objects exclude each
 * other even within one process; two threads that share one object do not, and must agree among
 * themselves first. Windows: LockFileEx.
 *
 * A fork's child shares the parent's open files, and would keep its locks when the parent dies.
 * Where the child is made by fork(2) it therefore closes them, which takes nothing from the parent;
 * its kn_lock_file objects are then good for closing alone. One that is made past the C library
 * (clone(2)) keeps them.
 * Locks only save work. Where the file system has none (ENOLCK, EOPNOTSUPP) taking one gives
 * KILN_E_UNSUPPORTED, and the caller goes on without. */
#ifndef KILN_SYS_LOCK_H
#define KILN_SYS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/status.h"

typedef struct kn_lock_file kn_lock_file;

kiln_status kn_lock_file_open(const char *path, kn_lock_file **out_file, kiln_diag *diag);
/* The file stays open while the program runs code of its own. A daemon may close all descriptors
 * then, and have another file under this one's number: from now on each use looks whether it is
 * still this file, and fails (KILN_E_IO) where it is not. */
void kn_lock_file_keep(kn_lock_file *file);
/* Drops all its locks, even if a child past the C library has the file open; that of a kept file is
 * left its locks. */
void kn_lock_file_close(kn_lock_file *file);

/* Whether the path still leads to this file, and not to one that was put in its place. */
bool kn_lock_file_is_at(const kn_lock_file *file, const char *path);

/* Takes the byte at `offset` (below 2^62) without waiting: KILN_OK, KILN_E_BUSY, KILN_E_UNSUPPORTED
 * or KILN_E_IO (an offset out of range: KILN_E_INVALID). */
kiln_status kn_lock_try(kn_lock_file *file, uint64_t offset);
/* Whether another open file has the byte, or one of `count` bytes from it on. False where the
 * system does not say. */
bool kn_lock_is_held(kn_lock_file *file, uint64_t offset);
bool kn_lock_is_any_held(kn_lock_file *file, uint64_t offset, uint64_t count);
/* One of the `count` bytes that another open file has taken by itself, without its neighbours; 0:
 * there is none, or the system does not say which. */
uint64_t kn_lock_find(kn_lock_file *file, uint64_t offset, uint64_t count);
/* Whether the very thread that forked this process, or one that forked its parent, had taken the
 * byte then: it may be waiting for this process. */
bool kn_lock_is_forkers(const kn_lock_file *file, uint64_t offset);
void kn_lock_drop(kn_lock_file *file, uint64_t offset);

/* Waits until another lock file at `path`, which is this one's, is closed, or `ns` have passed; the
 * first wait of a file returns at once, since one may have been closed before. True if that was
 * seen; where the system does not say, it sleeps. */
bool kn_lock_wait(kn_lock_file *file, const char *path, uint64_t ns);

/* The open file itself, borrowed, and how long it was when it was opened. -1 in a child, where it
 * is closed. Not for Windows. */
int kn_lock_file_handle(const kn_lock_file *file, uint64_t *out_size);

/* The same for a file that is open for writing already, until its handle is closed. */
kiln_status kn_lock_try_handle(int handle, uint64_t offset);

#endif
