/* Asks the children of several backends at once. This file must not know what a driver is. */
#include "core/runtime/probe_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/runtime/probe_turn.h"
#include "core/runtime/recall.h"
#include "sys/thread.h"

typedef struct kn_child_answer {
    const kiln_runtime *runtime;
    const kiln_backend *backend;
    kn_thread *thread; /* NULL: asked by the thread that lists */
    kiln_status status;
    kiln_probe_report report;
    char left_out[KN_LEFT_OUT_SIZE];
} kn_child_answer;

void kn_ahead_deinit(kn_ahead *ahead)
{
    free(ahead->answers);
    ahead->answers = NULL;
    ahead->answer_count = 0;
}

bool kn_ahead_wants_child(const kiln_runtime *runtime, const kiln_backend *backend, bool remembered)
{
    return runtime->isolate_probe ||
           (!remembered && kn_recall_works(runtime->cache, backend) && backend->basis->foreign);
}

bool kn_ahead_skips(const kiln_runtime *runtime, const kiln_backend *backend)
{
    return !runtime->isolate_probe && !runtime->fresh_probe && runtime->skip_probe != NULL &&
           kn_request_position(runtime->skip_probe, backend->name) != SIZE_MAX;
}

static bool is_remembered(const kiln_runtime *runtime, const kiln_backend *backend)
{
    kn_recall recall;
    if (runtime->fresh_probe || runtime->isolate_probe ||
        !kn_recall_get(runtime->cache, backend, &recall)) {
        return false;
    }
    kn_recall_deinit(&recall);
    return true;
}

static void ask_one(void *user)
{
    kn_child_answer *answer = (kn_child_answer *)user;
    answer->status =
        kn_turn_probe(answer->runtime, answer->backend, &answer->report, answer->left_out, NULL);
}

/* Less than two are asked when their turn comes. */
static void ask_all(kiln_runtime *runtime, kn_ahead *ahead)
{
    size_t count = 0;
    if (ahead->count < 2) {
        return;
    }
    kn_child_answer *answers = (kn_child_answer *)calloc(ahead->count + 1, sizeof(*answers));
    for (size_t i = 0; answers != NULL && i < ahead->count; i++) {
        const kiln_backend *backend = ahead->backends[i];
        if (!kn_ahead_skips(runtime, backend) &&
            kn_ahead_wants_child(runtime, backend, is_remembered(runtime, backend))) {
            answers[count++] = (kn_child_answer){.runtime = runtime, .backend = backend};
        }
    }
    if (count < 2) {
        free(answers);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        if (kn_thread_start(ask_one, &answers[i], &answers[i].thread, NULL) != KILN_OK) {
            answers[i].thread = NULL;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (answers[i].thread == NULL) {
            ask_one(&answers[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (answers[i].thread != NULL) {
            kn_thread_join(answers[i].thread);
        }
    }
    ahead->answers = answers;
    ahead->answer_count = count;
}

bool kn_ahead_take(kiln_runtime *runtime, const kiln_backend *backend, kiln_status *out_status,
                   kiln_probe_report *out_report, char left_out[KN_LEFT_OUT_SIZE])
{
    kn_ahead *ahead = runtime->ahead;
    if (ahead == NULL) {
        return false;
    }
    if (!ahead->asked) {
        ahead->asked = true;
        ask_all(runtime, ahead);
    }
    for (size_t i = 0; i < ahead->answer_count; i++) {
        const kn_child_answer *answer = &ahead->answers[i];
        if (answer->backend == backend) {
            *out_status = answer->status;
            *out_report = answer->report;
            kn_text_put(left_out, KN_LEFT_OUT_SIZE, answer->left_out);
            return true;
        }
    }
    return false;
}
