/* See build.h: the lookup of a program through the cache. Knows keys and entries; not what an
 * application sees. */
#include "apis/opencl/dropin/answers.h"
#include "apis/opencl/layer/build.h"

#include <stdlib.h>

#include "apis/opencl/dropin/budget.h"
#include "apis/opencl/dropin/kept.h"
#include "apis/opencl/dropin/make.h"
#include "base/diag.h"
#include "engine/late.h"
#include "interpose/session.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "sys/fpstate.h"

static const char what[] = "an OpenCL program";

void kn_layer_count_bypass(const char *reason, uint64_t took_ns)
{
    kn_session_bypass("opencl", what, reason, took_ns);
}

/* --- key -------------------------------------------------------------------------------------- */

bool kn_layer_lookup_init(kn_layer_lookup *lookup, kn_opencl_wish *wish, bool compile_only)
{
    kiln_cache *cache = kn_session_cache();
    *lookup = (kn_layer_lookup){.compile_only = compile_only};
    lookup->base.request = &lookup->request;
    lookup->base.recorded = KN_RECORDED_LAYER | (compile_only ? KN_RECORDED_COMPILE : 0);
    if (cache == NULL) {
        lookup->reason = "the cache cannot be opened";
        return false;
    }
    if (!kn_fp_is_default()) {
        lookup->reason = KN_FP_REASON;
        return false;
    }
    if (kn_opencl_request_init_under(&lookup->request, cache, wish, kn_layer_api(), NULL) !=
        KILN_OK) {
        lookup->request = (kn_opencl_request){0};
        lookup->reason = "no key can be made of it";
        return false;
    }
    if (lookup->request.bypass[0] != '\0') {
        lookup->reason = lookup->request.bypass;
        return false;
    }
    return kn_opencl_request_mark_layer(&lookup->request, compile_only, NULL) == KILN_OK;
}

void kn_layer_lookup_deinit(kn_layer_lookup *lookup)
{
    kn_job_deinit(&lookup->job);
    if (lookup->request.wish != NULL) {
        kn_opencl_request_deinit(&lookup->request);
    }
}

/* --- the frontend ----------------------------------------------------------------------------- */

static kiln_status read_built(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    const kn_layer_lookup *lookup = (const kn_layer_lookup *)user;
    const kn_opencl_request *request = &lookup->request;
    return lookup->compile_only
               ? kn_opencl_make_unit_answers(&request->site, request->wish, lookup->program,
                                             out_blob, diag)
               : kn_opencl_make_answered(&request->site, request->wish, request->unit.is_pocl,
                                         lookup->program, out_blob, diag);
}

static bool ask_driver(kn_layer_lookup *lookup)
{
    lookup->ran = true;
    lookup->code = lookup->build(lookup->user, &lookup->program);
    return lookup->code == CL_SUCCESS && lookup->program != NULL;
}

static void build_lookup(void *user, kn_output *output, kiln_diag *diag)
{
    kn_layer_lookup *lookup = (kn_layer_lookup *)user;
    if (!ask_driver(lookup)) {
        (void)kiln_diag_set(diag, KILN_E_COMPILE, NULL, what, "the driver returned %d",
                            (int)lookup->code);
        output->outcome = KN_OUTCOME_FAILED;
    } else if (!lookup->compile_only && lookup->request.unit.is_pocl) {
        output->outcome = KN_OUTCOME_DEFERRED;
    } else if (kn_late_read(&lookup->job.request, read_built, lookup, &output->blob, NULL) ==
               KILN_OK) {
        output->outcome = KN_OUTCOME_STORED;
    } else {
        output->outcome = KN_OUTCOME_PRIVATE;
        output->reason = "the driver returns no binary of it";
    }
}

/* Of what is only compiled there is nothing more to load. */
static kn_loaded load_answers(void *user, kiln_blob *blob, kiln_diag *diag)
{
    (void)user;
    (void)diag;
    return kn_answers_are_sound(kn_span_of(kiln_blob_facts(blob), kiln_blob_facts_size(blob)))
               ? KN_LOADED
               : KN_LOAD_UNSOUND;
}

static kn_loaded load_lookup(void *user, kiln_blob *blob, kiln_diag *diag)
{
    return load_answers(user, blob, diag) == KN_LOADED ? kn_opencl_load_call(user, blob, diag)
                                                       : KN_LOAD_UNSOUND;
}

/* A hit of what is only compiled is reported with what is linked of it. */
static void report_lookup(void *user, const kn_job *job)
{
    const kn_layer_lookup *lookup = (const kn_layer_lookup *)user;
    if (job->ran || (job->outcome == KN_OUTCOME_HIT && !lookup->compile_only)) {
        kn_session_report_job(user, job);
    }
}

/* A failure's log is in the program itself. */
static const kn_frontend lookups = {.compile = build_lookup,
                                    .load = load_lookup,
                                    .report = report_lookup,
                                    .driver_loads = true,
                                    .own_failures = true};
static const kn_frontend unit_lookups = {
    .compile = build_lookup, .load = load_answers, .report = report_lookup, .own_failures = true};

/* --- the lookup ------------------------------------------------------------------------------- */

/* There was no memory to look it up, or to load it: the driver's answer stands. */
static void build_past(kn_layer_lookup *lookup)
{
    const uint64_t start = kn_clock_now();
    (void)ask_driver(lookup);
    kn_layer_count_bypass("it could not be looked up or loaded", kn_clock_now() - start);
}

void kn_layer_lookup_go(kn_layer_lookup *lookup)
{
    const kn_outcome outcome = kn_opencl_run(
        &lookup->job, lookup->compile_only ? &unit_lookups : &lookups, &lookup->base, what);
    if (outcome == KN_OUTCOME_FAILED && !lookup->ran) {
        build_past(lookup);
    }
    /* A first start pays nothing for the next ones. */
    if (outcome == KN_OUTCOME_HIT && !lookup->compile_only &&
        kn_opencl_kept_assemble(&lookup->request, lookup->job.blob, true)) {
        kn_layer_capture_assembles();
    }
}

/* --- what is kept ----------------------------------------------------------------------------- */

static void keep_unread(kn_layer_lookup *lookup, kn_layer_build *build)
{
    build->recipe = lookup->request.recipe;
    lookup->request.recipe = NULL;
    build->takes_linker = lookup->request.unit.takes_linker;
    build->compile_ns = lookup->job.compile_ns;
    kn_opencl_budget_earn(build->compile_ns, kn_clock_now());
    kn_session_report(&(kn_session_event){.what = "opencl",
                                          .name = what,
                                          .origin = "left",
                                          .took_ns = build->compile_ns,
                                          .key = &lookup->job.key});
    kn_layer_capture_expect();
}

kn_layer_build *kn_layer_lookup_take(kn_layer_lookup *lookup)
{
    const bool built = lookup->ran && lookup->code == CL_SUCCESS;
    /* A read is for other processes: this one has the program. */
    const bool unread =
        lookup->job.outcome == KN_OUTCOME_DEFERRED && kn_cache_outlasts(lookup->request.cache);
    if (!(unread || !lookup->ran || (built && lookup->compile_only))) {
        return NULL;
    }
    kn_layer_build *build = calloc(1, sizeof(*build));
    if (build == NULL) {
        return NULL;
    }
    build->wish = kn_opencl_wish_retain(lookup->request.wish);
    build->unit = lookup->compile_only && lookup->job.outcome != KN_OUTCOME_PRIVATE;
    if (!lookup->ran) {
        build->deferred = lookup->compile_only;
        build->loaded = lookup->base.loaded;
        build->answers = kiln_blob_retain(lookup->job.blob);
    } else if (unread) {
        keep_unread(lookup, build);
    }
    return build;
}
