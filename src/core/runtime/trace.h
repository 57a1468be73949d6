/* What happened when, on which thread and device, as Chrome trace events (docs/advanced.md). A
 * runtime that traces has a kn_trace; one that does not has NULL, and every point costs a branch:
 *
 *     uint64_t start = kn_trace_begin(trace);
 *     ... the work ...
 *     kn_trace_end(trace, start, "load", &(kn_trace_about){.what = name, .device = device});
 *
 * The file is whole JSON after every flush: at least each quarter of a second while events come,
 * and when the runtime goes. Memory is bounded; a file that cannot be written ends the trace, not
 * the work. */
#ifndef KILN_CORE_TRACE_H
#define KILN_CORE_TRACE_H

#include <stdint.h>

#include "kiln/device.h"
#include "kiln/status.h"

#include "sys/clock.h"

typedef struct kn_trace kn_trace;

/* Details of a span; what is NULL or 0 is left out. */
typedef struct kn_trace_about {
    const char *what;   /* the kernel, the source, the backend */
    const char *detail; /* the stage, the origin */
    const kiln_device *device;
    uint64_t bytes;
} kn_trace_about;

/* Creates the file, or empties it; *out_trace is NULL if another runtime is writing it. KILN_E_IO
 * says why it cannot be. */
kiln_status kn_trace_open(const char *path, kn_trace **out_trace, kiln_diag *diag);
void kn_trace_close(kn_trace *trace); /* NULL is allowed */

/* Names the calling thread's track. */
void kn_trace_thread(kn_trace *trace, const char *name);

/* A span of the calling thread. */
void kn_trace_put(kn_trace *trace, uint64_t start_ns, uint64_t end_ns, const char *name,
                  const kn_trace_about *about);
/* A span of about->device itself, on a track of its own. */
void kn_trace_put_device(kn_trace *trace, uint64_t start_ns, uint64_t end_ns, const char *name,
                         const kn_trace_about *about);

static inline uint64_t kn_trace_begin(const kn_trace *trace)
{
    return trace != NULL ? kn_clock_now() : 0;
}

static inline void kn_trace_end(kn_trace *trace, uint64_t start_ns, const char *name,
                                const kn_trace_about *about)
{
    if (trace != NULL) {
        kn_trace_put(trace, start_ns, kn_clock_now(), name, about);
    }
}

#endif
