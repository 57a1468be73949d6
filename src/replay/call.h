/* A recorded program as the calls that it was made with, for a helper to make again: nothing but
 * strings, each with its NUL:
 *  1. "nvrtc", "hiprtc", or "hiprtc-runtime" for the hipRTC in HIP's runtime
 *  2. the directory of the headers; the program's current directory, seen from there
 *  3. the source's name, "" if it has none; its text
 *  4. a count in decimal and as many pairs of a header's name and text
 *  5. a count and name expressions; a count and options */
#ifndef KILN_REPLAY_CALL_H
#define KILN_REPLAY_CALL_H

#include "replay/program.h"

/* Whether programs of that frontend are replayed so. */
bool kn_replay_by_call(kn_recorded_frontend frontend);

/* Appends the call. `recorded_target` is the use's; `target` (NULL: that one) is another.
 * KILN_E_UNSUPPORTED where the program is not for it, KILN_E_NOMEM. */
kiln_status kn_replay_call(const kn_replay_program *program, const char *recorded_target,
                           const char *target, kn_strbuf *out, kiln_diag *diag);

#endif
