/* What the interposed libraries of one process share: the cache, the identity of the compiler, and
 * the report that `kiln exec --stats` reads. It lives as long as the process: the programs that it
 * serves end in every way there is. */
#ifndef KILN_INTERPOSE_SESSION_H
#define KILN_INTERPOSE_SESSION_H

#include <stdint.h>

#include "kiln/cache.h"

#include "engine/job.h"
#include "headers/header_memo.h"

/* The default cache, opened at the first call; NULL if it cannot be opened, which is logged once.
 * Threads: any. */
kiln_cache *kn_session_cache(void);

/* What this process has read of headers, for all of its compiles; NULL when out of memory.
 * Threads: any. */
kn_header_memo *kn_session_headers(void);

/* What became of one compile. */
typedef struct kn_session_event {
    const char *what;   /* "nvrtc" */
    const char *name;   /* of the source */
    const char *origin; /* kiln_origin_name, or "bypassed", "failed" */
    const char *reason; /* of a bypass; NULL: none */
    uint64_t took_ns;
    uint64_t saved_ns;   /* what the compile took that a hit spared */
    const kiln_key *key; /* NULL: none was made */
} kn_session_event;

/* Appends one line to $KILN_EXEC_REPORT, if that is set: in one write of at most 4,096 bytes, so
 * that lines of several processes do not mix. Its fields have tabs between them: what, origin,
 * took_ns, saved_ns, name, reason, key. Python's adapters write the same, as "triton", "inductor",
 * "jax". Four kinds of line are no compile: "core" or "cache" with the origin "off" or "read-only"
 * (its name is the library or directory), "binary loaded" (the program keeps OpenCL binaries
 * itself; its name is "pyopencl" where that does), "opencl left" (compiled and not stored) and
 * "opencl stored" (stored later). Readers skip incomplete lines. Threads: any. Fails: never. */
void kn_session_report(const kn_session_event *event);

/* The line of a job, as a frontend's `report` (session_tally.c). */
void kn_session_report_job(void *call, const kn_job *job);

/* Counts and reports a compile that no job stands for and no key describes (session_tally.c). */
void kn_session_bypass(const char *what, const char *name, const char *reason, uint64_t took_ns);

#endif
