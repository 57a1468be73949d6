/* See session.h: what is counted and reported in the same way by every shim and layer. This file
 * must not know where the cache and the report are. */
#include "interpose/session.h"

#include "store/cache/cache.h"

void kn_session_report_job(void *call, const kn_job *job)
{
    const bool stands = job->outcome == KN_OUTCOME_HIT || job->outcome == KN_OUTCOME_STORED;
    (void)call;
    kn_session_report(&(kn_session_event){.what = job->request.what,
                                          .name = job->request.name,
                                          .origin = kn_job_origin(job),
                                          .reason = job->reason,
                                          .took_ns = job->took_ns,
                                          .saved_ns = kn_job_saved_ns(job),
                                          .key = stands ? &job->key : NULL});
}

void kn_session_bypass(const char *what, const char *name, const char *reason, uint64_t took_ns)
{
    kiln_cache *cache = kn_session_cache();
    if (cache != NULL) {
        kn_cache_count_bypass(cache, name, reason, took_ns);
    }
    kn_session_report(&(kn_session_event){
        .what = what, .name = name, .origin = "bypassed", .reason = reason, .took_ns = took_ns});
}
