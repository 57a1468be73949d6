/* See build.h: the walk of a program through the cache. Knows keys and entries; not what an
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

bool kn_layer_walk_init(kn_layer_walk *walk, kn_opencl_wish *wish, bool compile_only)
{
    kiln_cache *cache = kn_session_cache();
    *walk = (kn_layer_walk){.compile_only = compile_only};
    walk->base.request = &walk->request;
    walk->base.recorded = KN_RECORDED_LAYER | (compile_only ? KN_RECORDED_COMPILE : 0);
    if (cache == NULL) {
        walk->reason = "the cache cannot be opened";
        return false;
    }
    if (!kn_fp_is_default()) {
        walk->reason = KN_FP_REASON;
        return false;
    }
    if (kn_opencl_request_init_under(&walk->request, cache, wish, kn_layer_api(), NULL) !=
        KILN_OK) {
        walk->request = (kn_opencl_request){0};
        walk->reason = "no key can be made of it";
        return false;
    }
    if (walk->request.bypass[0] != '\0') {
        walk->reason = walk->request.bypass;
        return false;
    }
    return kn_opencl_request_mark_layer(&walk->request, compile_only, NULL) == KILN_OK;
}

void kn_layer_walk_deinit(kn_layer_walk *walk)
{
    kn_job_deinit(&walk->job);
    if (walk->request.wish != NULL) {
        kn_opencl_request_deinit(&walk->request);
    }
}

/* --- the frontend ----------------------------------------------------------------------------- */

static kiln_status read_built(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    const kn_layer_walk *walk = (const kn_layer_walk *)user;
    const kn_opencl_request *request = &walk->request;
    return walk->compile_only
               ? kn_opencl_make_unit_answers(&request->site, request->wish, walk->program, out_blob,
                                             diag)
               : kn_opencl_make_answered(&request->site, request->wish, request->unit.is_pocl,
                                         walk->program, out_blob, diag);
}

static bool ask_driver(kn_layer_walk *walk)
{
    walk->ran = true;
    walk->code = walk->build(walk->user, &walk->program);
    return walk->code == CL_SUCCESS && walk->program != NULL;
}

static void build_walk(void *user, kn_output *output, kiln_diag *diag)
{
    kn_layer_walk *walk = (kn_layer_walk *)user;
    if (!ask_driver(walk)) {
        (void)kiln_diag_set(diag, KILN_E_COMPILE, NULL, what, "the driver returned %d",
                            (int)walk->code);
        output->outcome = KN_OUTCOME_FAILED;
    } else if (!walk->compile_only && walk->request.unit.is_pocl) {
        output->outcome = KN_OUTCOME_DEFERRED;
    } else if (kn_late_read(&walk->job.request, read_built, walk, &output->blob, NULL) == KILN_OK) {
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

static kn_loaded load_walk(void *user, kiln_blob *blob, kiln_diag *diag)
{
    return load_answers(user, blob, diag) == KN_LOADED ? kn_opencl_load_call(user, blob, diag)
                                                       : KN_LOAD_UNSOUND;
}

/* A hit of what is only compiled is reported with what is linked of it. */
static void report_walk(void *user, const kn_job *job)
{
    const kn_layer_walk *walk = (const kn_layer_walk *)user;
    if (job->ran || (job->outcome == KN_OUTCOME_HIT && !walk->compile_only)) {
        kn_session_report_job(user, job);
    }
}

/* A failure's log is in the program itself. */
static const kn_frontend walks = {.compile = build_walk,
                                  .load = load_walk,
                                  .report = report_walk,
                                  .driver_loads = true,
                                  .own_failures = true};
static const kn_frontend unit_walks = {
    .compile = build_walk, .load = load_answers, .report = report_walk, .own_failures = true};

/* --- the walk --------------------------------------------------------------------------------- */

/* There was no memory to look it up, or to load it: the driver's answer stands. */
static void build_past(kn_layer_walk *walk)
{
    const uint64_t start = kn_clock_now();
    (void)ask_driver(walk);
    kn_layer_count_bypass("it could not be looked up or loaded", kn_clock_now() - start);
}

void kn_layer_walk_go(kn_layer_walk *walk)
{
    const kn_outcome outcome =
        kn_opencl_run(&walk->job, walk->compile_only ? &unit_walks : &walks, &walk->base, what);
    if (outcome == KN_OUTCOME_FAILED && !walk->ran) {
        build_past(walk);
    }
    /* A first start pays nothing for the next ones. */
    if (outcome == KN_OUTCOME_HIT && !walk->compile_only &&
        kn_opencl_kept_assemble(&walk->request, walk->job.blob, true)) {
        kn_layer_capture_assembles();
    }
}

/* --- what is kept ----------------------------------------------------------------------------- */

static void keep_unread(kn_layer_walk *walk, kn_layer_build *build)
{
    build->recipe = walk->request.recipe;
    walk->request.recipe = NULL;
    build->takes_linker = walk->request.unit.takes_linker;
    build->compile_ns = walk->job.compile_ns;
    kn_opencl_budget_earn(build->compile_ns, kn_clock_now());
    kn_session_report(&(kn_session_event){.what = "opencl",
                                          .name = what,
                                          .origin = "left",
                                          .took_ns = build->compile_ns,
                                          .key = &walk->job.key});
    kn_layer_capture_expect();
}

kn_layer_build *kn_layer_walk_take(kn_layer_walk *walk)
{
    const bool built = walk->ran && walk->code == CL_SUCCESS;
    /* A read is for other processes: this one has the program. */
    const bool unread =
        walk->job.outcome == KN_OUTCOME_DEFERRED && kn_cache_outlasts(walk->request.cache);
    if (!(unread || !walk->ran || (built && walk->compile_only))) {
        return NULL;
    }
    kn_layer_build *build = calloc(1, sizeof(*build));
    if (build == NULL) {
        return NULL;
    }
    build->wish = kn_opencl_wish_retain(walk->request.wish);
    build->unit = walk->compile_only && walk->job.outcome != KN_OUTCOME_PRIVATE;
    if (!walk->ran) {
        build->deferred = walk->compile_only;
        build->loaded = walk->base.loaded;
        build->answers = kiln_blob_retain(walk->job.blob);
    } else if (unread) {
        keep_unread(walk, build);
    }
    return build;
}
