/* See job.h. This file must not know what is compiled, nor who asks. */
#include "engine/job.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "record/recorder.h"
#include "store/format/blob.h"
#include "sys/clock.h"

#define REFUSALS_MAX 2u

static const char not_kept[] = "its result could not be kept";

static const char *const change_reasons[] = {
    [KN_CHANGED_HEADER] = "a header changed during the compile",
    [KN_CHANGED_COMPILER] = "the compiler changed during the compile",
    [KN_CHANGED_LIBRARY] = "the compiler was replaced while this process was running",
    [KN_CHANGED_ENVIRONMENT] = "the environment changed during the compile",
};

/* --- the end: record, count, report ----------------------------------------------------------- */

/* A compile past the cache that failed is one, too. */
static bool is_bypassed(const kn_job *job)
{
    return job->outcome == KN_OUTCOME_PRIVATE || (job->request.bypass != NULL && job->ran);
}

const char *kn_job_origin(const kn_job *job)
{
    if (is_bypassed(job)) {
        return "bypassed";
    }
    if (job->outcome == KN_OUTCOME_FAILED) {
        return "failed";
    }
    return job->outcome == KN_OUTCOME_REFUSED ? "refused" : kiln_origin_name(job->origin);
}

uint64_t kn_job_saved_ns(const kn_job *job)
{
    return job->outcome == KN_OUTCOME_HIT && job->blob != NULL ? kiln_blob_compile_ns(job->blob)
                                                               : 0;
}

void kn_job_tally(const kn_job *job)
{
    if (is_bypassed(job)) {
        kn_cache_count_bypass(job->request.cache, job->request.name, job->reason, job->compile_ns);
    }
    if (job->frontend->report != NULL) {
        job->frontend->report(job->call, job);
    }
}

static void record_job(const kn_job *job)
{
    kn_draft draft;
    char target[128] = "";
    if (job->frontend->record == NULL || !kn_draft_begin(&draft, job->request.cache, &job->key)) {
        return;
    }
    job->frontend->record(job->call, &draft, target, sizeof(target));
    kn_draft_end(&draft, target,
                 job->blob != NULL ? kiln_blob_compile_ns(job->blob) : job->compile_ns);
}

static kn_outcome end_job(kn_job *job, kn_outcome outcome)
{
    const bool stands =
        outcome == KN_OUTCOME_HIT || outcome == KN_OUTCOME_STORED || outcome == KN_OUTCOME_DEFERRED;
    job->state = KN_JOB_ENDED;
    job->outcome = outcome;
    job->took_ns = kn_clock_now() - job->began;
    if (stands && job->frontend->keep != NULL) {
        job->frontend->keep(job->call);
    }
    if (stands) {
        record_job(job);
    }
    if (!job->frontend->is_step) {
        kn_job_tally(job);
    }
    return outcome;
}

static kn_begun fail_job(kn_job *job, kiln_status status)
{
    job->status = status;
    (void)end_job(job, KN_OUTCOME_FAILED);
    return KN_FAILED;
}

/* --- begin: lookup and flight ----------------------------------------------------------------- */

static kn_begun open_job(kn_job *job, kn_begun begun)
{
    job->state = begun == KN_BYPASS ? KN_JOB_BYPASS : KN_JOB_TICKET;
    job->compile_began = kn_clock_now();
    return begun;
}

/* The one point where a compile that must not run is refused. */
static kn_begun refuse_compile(kn_job *job)
{
    job->status = KILN_MISS;
    const bool bypass = job->reason != NULL;
    (void)kiln_diag_set(&job->why, KILN_MISS, "allow compiling", job->request.name, "%s %s%s",
                        job->request.what, bypass ? "bypasses the cache: " : "is not in the cache",
                        bypass ? job->reason : "");
    (void)end_job(job, KN_OUTCOME_REFUSED);
    return KN_REFUSED;
}

/* A compile that nobody waits for. Its result is stored, too. */
static kn_begun compile_alone(kn_job *job)
{
    if (job->request.only_cached) {
        return refuse_compile(job);
    }
    kn_fetch_alone(&job->fetch);
    if (job->refusals > 0) {
        kn_fetch_restart(&job->fetch);
    } else {
        kn_fetch_start(&job->fetch);
    }
    return open_job(job, KN_COMPILE);
}

typedef enum found { FOUND, NOT_FOUND, CLAIMED, NOTHING_SHARED, BROKEN } found;

static bool is_made_here(const kn_job *job)
{
    return job->frontend->is_made != NULL && job->frontend->is_made(job->call);
}

/* False where another one has compiled it. */
static bool claim_ticket(kn_job *job, kiln_status *out_status)
{
    const uint32_t wait_ms = job->request.cache->options.wait_ms;
    if (job->frontend->wait != NULL) {
        job->frontend->wait(job->call);
    }
    return job->request.elsewhere ? kn_fetch_reserve(&job->fetch, wait_ms, out_status, &job->why)
                                  : kn_fetch_claim(&job->fetch, out_status, &job->why);
}

static found find_cached(kn_job *job)
{
    kiln_cache *cache = job->request.cache;
    job->status = job->request.glance
                      ? kn_cache_glance(cache, &job->key, NULL, false, &job->blob, &job->origin)
                      : kiln_cache_get(cache, &job->key, &job->blob, &job->origin, &job->why);
    if (job->status == KILN_OK) {
        return FOUND;
    }
    return job->status == KILN_MISS ? NOT_FOUND : BROKEN;
}

static found find_entry(kn_job *job)
{
    kn_fetch *fetch = &job->fetch;
    kiln_diag_clear(&job->why);
    job->status = kn_fetch_begin(fetch, job->request.cache, job->request.recipe, &job->why);
    job->key = fetch->key;
    if (job->status == KILN_OK && is_made_here(job)) {
        job->status = KILN_E_CANCELLED;
        return NOTHING_SHARED;
    }
    if (job->status != KILN_OK) {
        return BROKEN;
    }
    if (job->request.only_cached) {
        return find_cached(job);
    }
    if (!kn_fetch_look_up(fetch) && claim_ticket(job, &job->status)) {
        /* Another thread's compile may have ended since this one looked, and have left no entry. */
        if (fetch->seat == NULL || !is_made_here(job)) {
            kn_fetch_start(fetch);
            return CLAIMED;
        }
        (void)kiln_diag_set(&fetch->why, KILN_E_CANCELLED, NULL, job->request.name,
                            "another thread has made it and stores it later");
        job->status = kn_fetch_publish(fetch, KILN_E_CANCELLED, &job->why);
    }
    job->blob = fetch->blob;
    job->origin = fetch->origin;
    fetch->blob = NULL;
    if (job->status == KILN_OK) {
        return FOUND;
    }
    return job->status == KILN_E_CANCELLED || job->frontend->own_failures ? NOTHING_SHARED : BROKEN;
}

/* KN_HIT: there is a blob to load, or the call has adopted what another thread made. */
static kn_begun find_or_open(kn_job *job)
{
    for (;;) {
        const found where = find_entry(job);
        const bool cancelled = job->status == KILN_E_CANCELLED;
        if (where == FOUND) {
            return KN_HIT;
        }
        if (where == CLAIMED) {
            return open_job(job, KN_COMPILE);
        }
        if (where == NOT_FOUND) {
            return refuse_compile(job);
        }
        if (where == BROKEN) {
            return fail_job(job, job->status);
        }
        kiln_diag_clear(&job->why);
        job->status = KILN_OK;
        if (cancelled && job->frontend->adopt != NULL && job->frontend->adopt(job->call)) {
            job->origin = KILN_ORIGIN_SHARED;
            return KN_HIT;
        }
        if (!cancelled || job->tries++ >= job->frontend->retries) {
            return compile_alone(job);
        }
    }
}

/* --- load ------------------------------------------------------------------------------------- */

bool kn_job_load_begin(kn_job *job, kn_load *out_watch)
{
    job->quarantined =
        !kn_cache_load_begin(job->request.cache, &job->key, job->request.name, out_watch);
    return !job->quarantined;
}

void kn_job_load_end(kn_job *job, const kn_load *watch)
{
    kn_cache_load_end(job->request.cache, &job->key, watch);
}

static kn_loaded load_blob(kn_job *job)
{
    const kn_frontend *frontend = job->frontend;
    kn_load watch;
    if (job->blob == NULL || frontend->load == NULL) {
        return KN_LOADED;
    }
    if (!frontend->driver_loads) {
        return frontend->load(job->call, job->blob, &job->why);
    }
    if (!kn_job_load_begin(job, &watch)) {
        return KN_LOAD_REFUSED;
    }
    const kn_loaded loaded = frontend->load(job->call, job->blob, &job->why);
    kn_job_load_end(job, &watch);
    return loaded;
}

/* What is quarantined stays, so that no other process tries it, and is not the driver's refusal. */
static void drop_entry(kn_job *job, kn_loaded why)
{
    kiln_diag_clear(&job->why);
    if (job->quarantined) {
        return;
    }
    if (why == KN_LOAD_REFUSED) {
        kn_cache_count_rejected(job->request.cache);
    }
    if (why == KN_LOAD_REFUSED && !job->ran) {
        kn_log(KILN_LOG_WARN, "%s: the driver refused the cached binary; it is compiled again",
               job->request.name);
    } else if (!job->ran) {
        kn_log(KILN_LOG_WARN, "%s: the entry is not a result of %s; it is compiled again",
               job->request.name, job->request.what);
    }
    kn_ignore(kiln_cache_remove(job->request.cache, &job->key, NULL)); /* the new one replaces it */
}

static bool same_bytes(const kiln_blob *a, const kiln_blob *b)
{
    return kiln_blob_size(a) == kiln_blob_size(b) &&
           memcmp(kiln_blob_data(a), kiln_blob_data(b), kiln_blob_size(a)) == 0;
}

/* Looks again for what was not loaded. A tier that cannot be written may give it again. */
static kn_begun find_another(kn_job *job, kn_loaded why)
{
    kiln_blob *refused = job->blob;
    drop_entry(job, why);
    job->blob = NULL;
    job->refusals++;
    kn_begun begun =
        job->quarantined || job->refusals >= REFUSALS_MAX ? compile_alone(job) : find_or_open(job);
    if (begun == KN_HIT && job->blob != NULL && same_bytes(job->blob, refused)) {
        kiln_blob_release(job->blob);
        job->blob = NULL;
        begun = compile_alone(job);
    }
    kiln_blob_release(refused);
    return begun;
}

static kn_begun load_or_open(kn_job *job, kn_begun begun)
{
    while (begun == KN_HIT) {
        const kn_loaded loaded = load_blob(job);
        if (loaded == KN_LOADED) {
            (void)end_job(job, KN_OUTCOME_HIT);
            return KN_HIT;
        }
        if (loaded == KN_LOAD_FAILED) {
            return fail_job(job, job->why.status);
        }
        begun = find_another(job, loaded);
    }
    return begun;
}

kn_begun kn_job_begin(kn_job *job, const kn_frontend *frontend, const kn_request *request,
                      void *call)
{
    memset(job, 0, sizeof(*job));
    job->frontend = frontend;
    job->request = *request;
    job->call = call;
    job->began = kn_clock_now();
    if (request->bypass != NULL) {
        job->reason = request->bypass;
        return request->only_cached ? refuse_compile(job) : open_job(job, KN_BYPASS);
    }
    return load_or_open(job, find_or_open(job));
}

/* --- finish: check, publish, load ------------------------------------------------------------- */

/* What was compiled for a key that no longer describes it is the caller's alone. */
static kn_outcome check_output(kn_job *job, kn_outcome outcome)
{
    const bool shared = outcome == KN_OUTCOME_STORED || outcome == KN_OUTCOME_DEFERRED;
    const kn_change change = shared && job->frontend->still_true != NULL
                                 ? job->frontend->still_true(job->call)
                                 : KN_UNCHANGED;
    if (change != KN_UNCHANGED) {
        job->reason = change_reasons[change];
        return KN_OUTCOME_PRIVATE;
    }
    if (outcome == KN_OUTCOME_DEFERRED && job->frontend->defer != NULL) {
        job->frontend->defer(job->call); /* before those who wait look for it */
    }
    return outcome;
}

/* To every tier that stores, and to every waiter. */
static kn_outcome publish_output(kn_job *job, kn_outcome outcome)
{
    kn_fetch *fetch = &job->fetch;
    kiln_status status = KILN_OK;
    if (outcome == KN_OUTCOME_STORED) {
        fetch->blob = kiln_blob_retain(job->blob);
    } else if (outcome == KN_OUTCOME_FAILED) {
        kn_diag_move(&fetch->why, &job->why);
        status = job->status;
    } else {
        status = kiln_diag_set(&fetch->why, KILN_E_CANCELLED, NULL, job->request.name, "%s",
                               job->reason != NULL ? job->reason : "its bytes come later");
    }
    status = kn_fetch_publish(fetch, status, &job->why);
    kiln_blob_release(fetch->blob);
    fetch->blob = NULL;
    if (outcome == KN_OUTCOME_PRIVATE || outcome == KN_OUTCOME_DEFERRED) {
        kiln_diag_clear(&job->why);
        return outcome;
    }
    job->status = status;
    return status == KILN_OK ? KN_OUTCOME_STORED : KN_OUTCOME_FAILED;
}

/* What the caller cannot use is not kept, either. */
static kn_outcome load_output(kn_job *job)
{
    kiln_diag why = KILN_DIAG_INIT;
    const kn_loaded loaded = job->frontend->load(job->call, job->blob, &why);
    if (loaded == KN_LOAD_FAILED) {
        job->status = why.status;
        kn_diag_move(&job->why, &why);
        return KN_OUTCOME_FAILED;
    }
    kiln_diag_clear(&why);
    if (loaded == KN_LOADED) {
        return KN_OUTCOME_STORED;
    }
    kn_ignore(kiln_cache_remove(job->request.cache, &job->key, NULL)); /* it cannot be used */
    job->reason = not_kept;
    return KN_OUTCOME_PRIVATE;
}

/* A blob says what its compile took, stored or not. */
static void time_blob(const kn_job *job)
{
    uint64_t unknown = 0;
    if (job->blob != NULL) {
        (void)atomic_compare_exchange_strong(&job->blob->compile_ns, &unknown,
                                             job->compile_ns > 0 ? job->compile_ns : 1);
    }
}

kn_outcome kn_job_finish(kn_job *job, const kn_output *output)
{
    const bool bypass = job->state == KN_JOB_BYPASS;
    kn_outcome outcome = output->outcome;
    if (outcome == KN_OUTCOME_NONE) {
        job->status = KILN_E_CANCELLED;
        kn_job_abandon(job);
        return outcome;
    }
    job->ran = true;
    job->compile_ns = kn_clock_now() - job->compile_began;
    job->blob = output->blob;
    job->origin = KILN_ORIGIN_COMPILED;
    time_blob(job);
    if (outcome == KN_OUTCOME_FAILED) {
        job->status = job->why.status != KILN_OK ? job->why.status : KILN_E_COMPILE;
    }
    if (bypass) {
        return end_job(job, outcome == KN_OUTCOME_FAILED ? outcome : KN_OUTCOME_PRIVATE);
    }
    if (outcome == KN_OUTCOME_STORED && job->blob == NULL) {
        outcome = KN_OUTCOME_PRIVATE;
    }
    if (outcome == KN_OUTCOME_PRIVATE) {
        job->reason = output->reason != NULL ? output->reason : not_kept;
    }
    outcome = publish_output(job, check_output(job, outcome));
    if (outcome == KN_OUTCOME_STORED && job->frontend->loads_output) {
        outcome = load_output(job);
    }
    return end_job(job, outcome);
}

void kn_job_abandon(kn_job *job)
{
    if (job->state == KN_JOB_TICKET) {
        kn_fetch_abandon(&job->fetch);
    }
    job->state = KN_JOB_ENDED;
}

void kn_job_deinit(kn_job *job)
{
    kn_job_abandon(job);
    kiln_blob_release(job->blob);
    job->blob = NULL;
    kiln_diag_clear(&job->why);
}

/* --- all steps in one call -------------------------------------------------------------------- */

static kn_outcome compile_if_open(kn_job *job, kn_begun begun)
{
    if (begun == KN_COMPILE || begun == KN_BYPASS) {
        kn_output output = {.outcome = KN_OUTCOME_NONE};
        job->frontend->compile(job->call, &output, &job->why);
        return kn_job_finish(job, &output);
    }
    return job->outcome;
}

kn_outcome kn_job_run(kn_job *job, const kn_frontend *frontend, const kn_request *request,
                      void *call)
{
    return compile_if_open(job, kn_job_begin(job, frontend, request, call));
}

kn_outcome kn_job_redo(kn_job *job)
{
    if (!job->ran) {
        return compile_if_open(job, load_or_open(job, find_another(job, KN_LOAD_REFUSED)));
    }
    if (job->outcome == KN_OUTCOME_STORED) {
        drop_entry(job, KN_LOAD_REFUSED);
    }
    job->status = KILN_E_REJECTED;
    job->outcome = KN_OUTCOME_FAILED;
    return job->outcome;
}
