/* Recordings: what programs asked kiln to compile, kept so that it can be compiled again, for other
 * targets, without the program and without its GPU (docs/operate/record.md). kiln warm is made of
 * this. */
#ifndef KILN_UNSTABLE_RECORDING_H
#define KILN_UNSTABLE_RECORDING_H

#include "kiln/program.h"

KILN_BEGIN_DECLS

typedef struct kiln_recording kiln_recording; /* open/close */

/* Whether a directory is a recording, of whatever version.
 * Threads: any.   Blocks: disk.   Owns: nothing.   Fails: never. */
KILN_API bool kiln_recording_is(const char *path);

/* Reads a recording. What is damaged is left out, and kiln_recording_damage says so.
 * Threads: any.   Blocks: disk.
 * Owns: *out_recording is yours, kiln_recording_close().
 * Fails: KILN_E_INVALID (it is not a recording), KILN_E_UNSUPPORTED (a newer kiln made it),
 * KILN_E_IO, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_recording_open(const char *path,
                                                         kiln_recording **out_recording,
                                                         kiln_diag *diag);
KILN_API void kiln_recording_close(kiln_recording *recording);

/* How a recorded program is compiled again. */
typedef enum kiln_replay_way {
    KILN_REPLAY_COMPILE = 0, /* kiln_recording_compile */
    KILN_REPLAY_CALL = 1,    /* by the calls that its program made: `kiln warm` */
} kiln_replay_way;

/* One use of a recorded program for one target. Times are ns since 1970. */
typedef struct kiln_recorded_use {
    size_t struct_size;
    const char *name;   /* of the source, "" if it has none */
    const char *target; /* "cuda:sm_90", "opencl:opencl-pocl-cpu" */
    const char *door;   /* "walk", "opencl", "nvrtc", "hiprtc": whose call it was */
    kiln_language language;
    kiln_replay_way way;
    size_t program; /* equal for uses of one program, whatever its toolchain's headers were */
    kiln_key key;   /* of its first stage */
    int64_t first_ns, last_ns;
    uint64_t compile_ns;   /* 0: not known */
    uint32_t days;         /* on how many it was used, about */
    uint64_t source_bytes; /* of its texts and all headers */
} kiln_recorded_use;

/* The uses in order of the first; NULL past the last one.
 * Threads: any.   Blocks: never.   Owns: borrowed from the recording.   Fails: never. */
KILN_API size_t kiln_recording_count(const kiln_recording *recording);
KILN_API const kiln_recorded_use *kiln_recording_use(const kiln_recording *recording, size_t index);

/* How many files of it are damaged or missing, and what is wrong with the first; 0 and "".
 * Threads: any.   Blocks: never.   Owns: borrowed from the recording.   Fails: never. */
KILN_API size_t kiln_recording_damage(const kiln_recording *recording, const char **out_what);

/* At most so many stages has a compile. */
#define KILN_RECORDING_STAGES 4

/* Compiles a recorded program through the cache of `runtime`, under the key that the program's own
 * call has: for `target` as kiln_compile takes it, or as a recording has it. Headers are those that
 * were recorded, below a temporary directory; those of the toolchain are this machine's.
 * Threads: any.   Blocks: disk, compiler.
 * Owns: *out_blob is yours, kiln_blob_release(); *out_info as in kiln_compile_measured; `keys` has
 * room for KILN_RECORDING_STAGES and gets the key of each stage.
 * Fails: as kiln_compile; KILN_MISS, KILN_E_CORRUPT where the recording lacks a text of it;
 * KILN_E_UNSUPPORTED for a target that it is not for. */
KILN_API KILN_MUST_CHECK kiln_status
kiln_recording_compile(kiln_recording *recording, size_t index, kiln_runtime *runtime,
                       const char *target, kiln_blob **out_blob, kiln_build_info *out_info,
                       kiln_key *keys, size_t *out_key_count, kiln_diag *diag);

KILN_END_DECLS

#endif
