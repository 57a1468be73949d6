/* A worker that compiles recorded programs again: kiln-replay. Calls of NVRTC and hipRTC need
 * kiln's libraries under the compilers, as `kiln exec` puts them; other programs are compiled for
 * one target by a runtime of the worker. A worker has one compiler of each kind, or one driver: two
 * versions are two workers, and one that crashes costs the program that it had. It reads questions
 * and writes an answer to each; kiln and its core are built and installed together. */
#ifndef KILN_INTERPOSE_REPLAY_H
#define KILN_INTERPOSE_REPLAY_H

#include <stdbool.h>
#include <stdio.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/recording.h>

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
    bool lacks_runtime; /* the worker cannot open one for the target; this is not about the program
                         */
    bool compiled;      /* else it was cached */
    kiln_key keys[KILN_RECORDING_STAGES];
    size_t key_count;
    uint64_t size; /* of the result; 0 for calls */
    uint64_t compile_ns, saved_ns;
    uint64_t put_failures; /* since the last answer */
} kn_replay_answer;

/* Compiles a use of a recording that is no call, here. */
static inline kiln_status kn_replay_compile(kiln_recording *recording, size_t index,
                                            kiln_runtime *runtime, const char *target,
                                            kn_replay_answer *answer, kiln_diag *diag)
{
    kiln_build_info info = {.struct_size = sizeof(info)};
    kiln_blob *blob = NULL;
    const kiln_status status = kiln_recording_compile(
        recording, index, runtime, target, &blob, &info, answer->keys, &answer->key_count, diag);
    if (status == KILN_OK) {
        answer->compiled = info.compiles > 0 || info.origin == KILN_ORIGIN_COMPILED;
        answer->size = kiln_blob_size(blob);
        answer->compile_ns = info.compile_ns;
        answer->saved_ns = answer->compiled ? 0 : kiln_blob_compile_ns(blob);
    }
    kiln_blob_release(blob);
    return status;
}

/* Exported by the core. `back` counts versions back from the newest one that is installed.
 * Headers are written below `scratch`. Ends with the input; false if it fails. Threads: one. */
#define KN_INTERPOSE_REPLAY "kn_interpose_replay"
typedef bool kn_interpose_replay_fn(const char *recording, int back, const char *scratch, FILE *in,
                                    FILE *out);

#endif
