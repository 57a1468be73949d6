/* The headers of recorded programs, written out so that compilers find them: below a temporary
 * directory, each list of files in a tree of its own, at the paths under which they were opened.
 *
 *     SCRATCH/<digest of the list>/usr/local/x/a.h
 *
 * A program sees its own files and no other's: one more file could be found in the place of
 * another. A path never leads out of its tree, whatever the recording says. */
#ifndef KILN_REPLAY_SCRATCH_H
#define KILN_REPLAY_SCRATCH_H

#include "base/map.h"
#include "record/recording.h"
#include "sys/thread.h"

typedef struct kn_scratch {
    kn_mutex lock;
    char *root;         /* NULL: nothing has been written yet */
    const char *parent; /* where it is made; NULL: the directory for temporary files */
    kn_map here; /* files that were looked for where the program had them, and whether they are
                    there */
} kn_scratch;

void kn_scratch_init(kn_scratch *scratch);
/* Removes what was written. */
void kn_scratch_deinit(kn_scratch *scratch);

/* Writes the files of a program, unless they are there; system files are left out, and directories
 * that it names are made. Where this machine has all of them at their own paths, as in the
 * program's image, nothing is written and the tree is "": code that holds their names is the same
 * then. *out_tree: free(). KILN_MISS, KILN_E_CORRUPT, KILN_E_IO, KILN_E_NOMEM. */
kiln_status kn_scratch_fill(kn_scratch *scratch, const char *recording, const kn_recorded *program,
                            char **out_tree, kiln_diag *diag);

/* Where a path of the program is in its tree; free(). `dir` is the program's current
 * directory: relative paths are seen from there. NULL: no memory. */
char *kn_scratch_path(const char *tree, const char *dir, const char *path);
/* Whether a file of the program lies in this directory of its tree, at any depth. */
bool kn_scratch_has_below(const kn_recorded *program, const char *tree, const char *directory);

#endif
