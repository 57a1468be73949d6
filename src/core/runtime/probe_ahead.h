/* Probing in children, all at once: a first start asks a child for each backend that it lists, and
 * waits for the slowest of them instead of for one after the other.
 *
 * All children have exited before the first driver is opened in this process: no thread of kiln's
 * reads the environment while a driver may change it. */
#ifndef KILN_CORE_PROBE_AHEAD_H
#define KILN_CORE_PROBE_AHEAD_H

#include "core/runtime/runtime.h"

struct kn_child_answer;

/* The backends that are listed one after the other, and what their children say. Zeroed at first,
 * then `backends` and `count` filled. */
typedef struct kn_ahead {
    const kiln_backend *backends[KN_DRIVERS_MAX];
    size_t count;
    bool asked;
    struct kn_child_answer *answers;
    size_t answer_count;
} kn_ahead;

void kn_ahead_deinit(kn_ahead *ahead);

/* Whether a backend that is not remembered has to show itself in a child first. */
bool kn_ahead_wants_child(const kiln_runtime *runtime, const kiln_backend *backend,
                          bool remembered);

/* Whether it is opened without a child's look all the same, unless an opening did not end. */
bool kn_ahead_skips(const kiln_runtime *runtime, const kiln_backend *backend);

/* What the child of `backend` says: kn_isolate_probe's status, report and `left_out`. The first
 * call asks for all of runtime->ahead. False: nothing was asked ahead for this one. Blocks: child
 * processes. */
bool kn_ahead_take(kiln_runtime *runtime, const kiln_backend *backend, kiln_status *out_status,
                   kiln_probe_report *out_report, char left_out[KN_LEFT_OUT_SIZE]);

#endif
