/* A worker that makes recorded calls of NVRTC or hipRTC again: kiln-replay, a process with kiln's
 * libraries under its compilers as `kiln exec` puts them. It has one compiler of each kind: two
 * versions are two workers, and one that crashes costs the program that it had.
 *
 * A line of the input is a program, as the recording has it, and one of the output what it came to:
 *
 *     INDEX WANTED TARGET          of the use; the key that it must have, "-" for any
 *     STATUS ORIGIN TOOK SAVED KEY LENGTH
 *
 * with LENGTH bytes after it, what a failure says: four texts with a NUL behind each (what, why,
 * fix and log of a kiln_diag). STATUS is a kiln_status, KILN_E_UNAVAILABLE where there is no such
 * compiler; ORIGIN of KILN_OK "compiled", "there", or "other": it has another key here. */
#ifndef KILN_INTERPOSE_REPLAY_H
#define KILN_INTERPOSE_REPLAY_H

#include <stdio.h>

/* Exported by the core. `back` counts versions back from the newest one that is installed. Ends
 * with the input; false for a line that is none. Threads: one. */
#define KN_INTERPOSE_REPLAY "kn_interpose_replay"
typedef _Bool kn_interpose_replay_fn(const char *recording, int back, FILE *in, FILE *out);

#endif
