/* Publishing a file: readers see the whole new file or none of it, whatever happens to the writer.
 *
 *     kn_publish p;
 *     if (kn_publish_begin(&p, tmp_dir, final_path, diag) == KILN_OK) {
 *         kn_publish_write(&p, data, size);          // as often as needed; failures stick
 *         status = kn_publish_commit(&p, sync, diag); // or kn_publish_abort(&p)
 *     }
 *
 * The temporary has a name that is unique by construction (O_EXCL, process id and counter and
 * random bits), lies in `tmp_dir` on the same file system, and is made 0600. Commit writes,
 * optionally syncs, and renames. Losing a race is success: if the rename fails with EEXIST, ESTALE,
 * ENOENT or EBUSY and the final path exists afterwards, commit returns KILN_OK: any other writer
 * publishes the same. Where that is not so, insist (kn_publish_insist). A temporary is
 * never left by a return. A killed process leaves none that was begun unnamed, where the file
 * system can; one that has a name is locked while its writer lives, and kn_publish_reclaim removes
 * one that is not.
 *
 * What is the same on every system is in publish_name.c. */
#ifndef KILN_SYS_PUBLISH_H
#define KILN_SYS_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#include "base/span.h"

typedef struct kn_publish {
    int handle;
    char *temporary; /* NULL: unnamed */
    char *dir;       /* of one that is unnamed */
    char *final_path;
    kiln_status failure; /* the first one; sticky */
    int failure_errno;
    bool insists;
    uint64_t device, inode; /* of the file, where it insists */
    /* After the commit: nothing had the final name. False also where it is unknown. */
    bool made_new;
} kn_publish;

kiln_status kn_publish_begin(kn_publish *publish, const char *tmp_dir, const char *final_path,
                             kiln_diag *diag);
/* The same, but where the file system can, the temporary has no name until it is complete, so that
 * a killed process leaves none: a new file gets its final name at once, and one that replaces
 * another a temporary one for the moment before the rename. */
kiln_status kn_publish_begin_unnamed(kn_publish *publish, const char *tmp_dir,
                                     const char *final_path, kiln_diag *diag);
void kn_publish_write(kn_publish *publish, const void *data, size_t size);
/* Several parts, at most KN_PUBLISH_PARTS, in one call to the system: the pages of a file that came
 * in one piece are kept, and read again, in larger ones. */
#define KN_PUBLISH_PARTS 4u
void kn_publish_write_parts(kn_publish *publish, const kn_span *parts, size_t count);
/* The file is meant for other users too: readable by all (0644) instead of 0600. */
void kn_publish_share(kn_publish *publish);
/* Only this very file will do: what another writer has put there, or what was there before and
 * cannot be replaced (a file that is mounted over its name), is a failure. */
void kn_publish_insist(kn_publish *publish);
/* Has the system begin to write to the disk what was written so far (sync_file_range(2)), and does
 * not wait for that. Left out where the system has no such call. */
void kn_publish_start_writing(const kn_publish *publish);
/* Ends the publish either way. Makes the final path's directory if that is what is missing. */
kiln_status kn_publish_commit(kn_publish *publish, bool sync, kiln_diag *diag);
void kn_publish_abort(kn_publish *publish);

/* Removes a temporary whose writer is gone. KILN_E_BUSY: its writer lives. KILN_E_UNSUPPORTED:
 * there are no locks here that would show it. KILN_MISS, KILN_E_IO. */
kiln_status kn_publish_reclaim(const char *path);

/* Whether a file in a directory for temporaries has the name of one. */
bool kn_publish_is_temporary(const char *name);

/* For the publish.c of each system: a name that nobody else makes, malloc'ed or NULL; and the
 * directory of a path made, 0 or the system's error. */
char *kn_publish_name_temporary(const char *tmp_dir);
int kn_publish_make_dir_of(const char *path);

#endif
