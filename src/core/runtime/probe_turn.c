/* Whose child is asked: this process's, or another's that has just been. */
#include "core/runtime/probe_turn.h"

#include "core/runtime/isolate.h"
#include "core/runtime/recall.h"
#include "store/cache/cache.h"
#include "sys/clock.h"

typedef struct result_search {
    const kiln_cache *cache;
    const kiln_backend *backend;
    const uint8_t *key;
    kiln_probe_report *report;
    char *left_out;
    bool waits; /* it has looked before: what it finds now was said while it waited */
} result_search;

static bool find_result(void *user)
{
    result_search *search = (result_search *)user;
    const bool lasting = !search->waits;
    search->waits = true;
    return kn_recall_get_result(search->cache, search->backend, search->key, lasting,
                                search->report, search->left_out);
}

static kiln_status ask_own_child(const kiln_runtime *runtime, const kiln_backend *backend,
                                 kiln_probe_report *out_report, char left_out[KN_LEFT_OUT_SIZE],
                                 kiln_diag *diag)
{
    const uint64_t start = kn_trace_begin(runtime->trace);
    kiln_status status = kn_isolate_probe(backend->name, runtime->backend_path, runtime->probe_ms,
                                          out_report, left_out, diag);
    kn_trace_end(runtime->trace, start, "probe in a child",
                 &(kn_trace_about){.what = backend->name});
    return status;
}

kiln_status kn_turn_probe(const kiln_runtime *runtime, const kiln_backend *backend,
                          kiln_probe_report *out_report, char left_out[KN_LEFT_OUT_SIZE],
                          kiln_diag *diag)
{
    uint8_t key[KN_DIGEST_SIZE];
    kn_turn turn;
    result_search search = {.cache = runtime->cache,
                            .backend = backend,
                            .key = key,
                            .report = out_report,
                            .left_out = left_out};
    if (runtime->fresh_probe || runtime->isolate_probe ||
        !kn_recall_works(runtime->cache, backend) || !kn_recall_key(backend, key)) {
        return ask_own_child(runtime, backend, out_report, left_out, diag);
    }
    const uint64_t deadline = kn_clock_now() + kn_isolate_longest_ns(runtime->probe_ms);
    const uint64_t start = kn_trace_begin(runtime->trace);
    if (!kn_cache_turn_begin(runtime->cache, key, deadline, find_result, &search, &turn)) {
        kn_trace_end(runtime->trace, start, "probe in another's child",
                     &(kn_trace_about){.what = backend->name});
        return KILN_OK;
    }
    kiln_status status = ask_own_child(runtime, backend, out_report, left_out, diag);
    if (status == KILN_OK) {
        kn_recall_put_result(runtime->cache, backend, key, out_report, left_out);
    }
    kn_cache_turn_end(&turn);
    return status;
}
