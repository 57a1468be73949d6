/* Scripted faults and call counts: how a test makes the fake driver misbehave, and sees what it was
 * asked. A clone of this backend leaves this file and its calls out.
 *
 * $KILN_FAKE_FAULTS is a comma-separated list of OP=WHAT or OP=WHAT@N: the N-th call of OP (every
 * call without @N) does WHAT.
 *   OP    one of FAKE_OPS
 *   WHAT  a failure: reject, compile, nomem, lost, unavailable, fail; or an act: crash (abort),
 *         exit (the process, with code 3), hang (for ever), slow (100 ms), empty (an empty result)
 */
#ifndef KILN_FAKE_BACKEND_FAULTS_H
#define KILN_FAKE_BACKEND_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#define FAKE_OPS(X)                                                                                \
    X(OPEN, "open")                                                                                \
    X(IDENTIFY, "identify")                                                                        \
    X(COMPILE, "compile")                                                                          \
    X(LINK, "link")                                                                                \
    X(DEVICE, "device")                                                                            \
    X(BUFFER, "buffer")                                                                            \
    X(LOAD, "load")                                                                                \
    X(UNLOAD, "unload")                                                                            \
    X(CAPTURE, "capture")                                                                          \
    X(PARAMS, "params")                                                                            \
    X(QUEUE, "queue")                                                                              \
    X(WRITE, "write")                                                                              \
    X(READ, "read")                                                                                \
    X(LAUNCH, "launch")                                                                            \
    X(FINISH, "finish")

typedef enum kn_fake_op {
#define FAKE_OP_ENUM(name, text) FAKE_##name,
    FAKE_OPS(FAKE_OP_ENUM)
#undef FAKE_OP_ENUM
        FAKE_OP_COUNT,
} kn_fake_op;

#define FAKE_FAULTS_MAX 16

typedef struct kn_fake_fault {
    kn_fake_op op;
    const char *what; /* static text */
    uint64_t at;      /* 0: every call */
} kn_fake_fault;

typedef struct kn_fake_faults {
    kn_fake_fault rows[FAKE_FAULTS_MAX];
    size_t count;
    _Atomic uint64_t calls[FAKE_OP_COUNT];
    _Atomic uintptr_t thread;   /* of the first call */
    _Atomic bool other_threads; /* some call came from another one */
} kn_fake_faults;

/* Reads a script (NULL: no faults). KILN_E_INVALID names what is wrong with it. */
kiln_status kn_fake_faults_init(kn_fake_faults *faults, const char *script, kiln_diag *diag);

/* Counts a call, and does or returns what is scripted for it. `*out_empty` (may be NULL) is set
 * when the call is to give an empty result. */
kiln_status kn_fake_call(kn_fake_faults *faults, kn_fake_op op, bool *out_empty, kiln_diag *diag);

#endif
