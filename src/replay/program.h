/* A recorded program ready to be compiled: its texts read, its headers written out, its paths those
 * of the tree in which they are. */
#ifndef KILN_REPLAY_PROGRAM_H
#define KILN_REPLAY_PROGRAM_H

#include "replay/scratch.h"

typedef struct kn_replay_program {
    kn_recorded recorded; /* borrows from `bytes` */
    char *bytes;
    char *tree;
    char **texts;          /* one for each text, with a NUL after it */
    kiln_header **headers; /* of each text; their names are the recording's */
    char **include_dirs;   /* in the tree */
    char *name;            /* the source's; NULL: none */
} kn_replay_program;

/* Reads it whole. After a failure there is nothing to deinit. KILN_MISS, KILN_E_CORRUPT,
 * KILN_E_IO, KILN_E_NOMEM. Blocks: disk. */
kiln_status kn_replay_program_init(kn_replay_program *program, const kn_recording *recording,
                                   kn_scratch *scratch, const uint8_t digest[KN_DIGEST_SIZE],
                                   kiln_diag *diag);
void kn_replay_program_deinit(kn_replay_program *program);

/* Its first text as a source, which borrows from it. */
kiln_source kn_replay_program_source(const kn_replay_program *program);

#endif
