/* A worker that makes recorded calls of NVRTC or hipRTC again: kiln-replay, a process with kiln's
 * libraries under its compilers as `kiln exec` puts them. It has one compiler of each kind: two
 * versions are two workers, and one that crashes costs the program that it had. It reads questions
 * and writes an answer to each; kiln and its core are built and installed together. */
#ifndef KILN_INTERPOSE_REPLAY_H
#define KILN_INTERPOSE_REPLAY_H

#include <stdbool.h>
#include <stdio.h>

#include <kiln/cache.h>

typedef struct kn_replay_question {
    size_t index; /* of the recording's use */
    char target[256];
    bool is_bound; /* another key than this one is not compiled where an older compiler, or a newer
                      one, may have it */
    kiln_key wanted; /* zeros if it is not */
} kn_replay_question;

typedef struct kn_replay_answer {
    kiln_diag diag; /* how it ended; log_length bytes of its log follow. KILN_E_UNAVAILABLE: there
                       is no such compiler */
    bool other;     /* it has another key here, and was not compiled */
    bool oldest;    /* there is no older compiler */
    bool compiled;  /* else it was cached */
    kiln_key key;
    uint64_t took_ns, saved_ns;
} kn_replay_answer;

/* Exported by the core. `back` counts versions back from the newest one that is installed.
 * Headers are written below `scratch`. Ends with the input; false if it fails. Threads: one. */
#define KN_INTERPOSE_REPLAY "kn_interpose_replay"
typedef bool kn_interpose_replay_fn(const char *recording, int back, const char *scratch, FILE *in,
                                    FILE *out);

#endif
