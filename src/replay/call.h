/* A recorded program as the calls that it was made with, to be made again. */
#ifndef KILN_REPLAY_CALL_H
#define KILN_REPLAY_CALL_H

#include "compilers/libraries.h"
#include "kiln/unstable/recording.h"
#include "replay/program.h"

typedef struct kn_replay_call {
    kn_replay_program program;
    kn_library_id library; /* whose calls */
    char **options;        /* in the place of the program's, as many */
} kn_replay_call;

/* Whether programs of that frontend are replayed so. */
bool kn_replay_by_call(kn_recorded_frontend frontend);

/* The options of `call->program`, and whose calls they are. `recorded_target` is the use's;
 * `target` (NULL: that one) is another. KILN_E_UNSUPPORTED where the program is not for it,
 * KILN_E_NOMEM. */
kiln_status kn_replay_call_choose(kn_replay_call *call, const char *recorded_target,
                                  const char *target, kiln_diag *diag);

/* Reads a use's program and chooses. After a failure there is nothing to deinit. As
 * kiln_recording_compile. Blocks: disk. (replay.c) */
kiln_status kn_replay_call_init(kn_replay_call *call, kiln_recording *recording, size_t index,
                                const char *target, kiln_diag *diag);
void kn_replay_call_deinit(kn_replay_call *call);

/* Headers are written below `parent`, which outlives the recording. (replay.c) */
void kn_replay_place(kiln_recording *recording, const char *parent);

#endif
