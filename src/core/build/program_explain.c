/* What a compile would look up, without compiling: the build up to the first stage that misses; and
 * the files that a source includes. */
#include "base/stages.h"
#include "core/build/plan.h"

#include <string.h>

#include <kiln/unstable/explain.h>

typedef struct telling {
    kiln_cache *cache;
    bool misses; /* explain them */
    kiln_explanation_fn *visit;
    void *user;
} telling;

static kiln_status report_stage(const telling *t, const char *stage, kiln_why why,
                                const kn_stage_run *run)
{
    const kiln_explanation explanation = {
        .struct_size = sizeof(explanation),
        .stage = stage,
        .why = why,
        .key = run->key,
        .recipe = run->recipe != NULL ? kiln_recipe_text(run->recipe) : NULL,
        .detail = run->bypass,
        .nearest_target = ""};
    return t->visit(t->user, &explanation);
}

/* The list of headers that goes with a stage, where it is in the cache: a pack with it spares the
 * machine that opens the pack the scanning. */
static kiln_status tell_headers(const telling *t, const kn_stage_run *run)
{
    kiln_explanation list = {
        .stage = kn_stage_headers, .why = KILN_WHY_HIT, .detail = "", .nearest_target = ""};
    bool there = false;
    if (t->misses || run->closure == NULL || !kn_closure_shared_key(run->closure, &list.key)) {
        return KILN_OK;
    }
    kiln_cache_contains(t->cache, &list.key, 1, &there);
    return there ? t->visit(t->user, &list) : KILN_OK;
}

/* One stage whose key is known. */
static kiln_status tell_stage(const telling *t, const char *stage, const kn_stage_run *run,
                              bool *out_there, kiln_diag *diag)
{
    *out_there = false;
    if (run->bypass[0] != '\0') {
        return report_stage(t, stage, KILN_WHY_BYPASS, run);
    }
    kiln_cache_contains(t->cache, &run->key, 1, out_there);
    if (!*out_there && t->misses) {
        return kiln_cache_explain(t->cache, run->recipe, t->visit, t->user, diag);
    }
    return report_stage(t, stage, *out_there ? KILN_WHY_HIT : KILN_WHY_NEW, run);
}

static kiln_status explain_stages(kn_build *build, const telling *t, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    bool known = true; /* the stage before is there */
    for (size_t i = 0; status == KILN_OK && i < build->stage_count; i++) {
        const kiln_stage *stage = &build->stages[i];
        kn_stage_run *run = &build->runs[i];
        if (!known) {
            status = report_stage(t, stage->name, KILN_WHY_NOT_YET, run);
            continue;
        }
        status = kn_stage_key(build, i, diag);
        if (status == KILN_OK) {
            status = tell_stage(t, stage->name, run, &known, diag);
        }
        if (status == KILN_OK && known) {
            status = tell_headers(t, run);
        }
        if (status == KILN_OK && known && i + 1 < build->stage_count) {
            status = kn_stage_get(build, i, diag);
            if (status == KILN_MISS) { /* it was damaged, or went this moment */
                known = false;
                status = KILN_OK;
            }
        }
    }
    return status;
}

static kiln_status plan_and_walk(kiln_runtime *runtime, const char *target,
                                 const kiln_source *source, telling *t, kiln_diag *diag)
{
    const kiln_build_options options = {.struct_size = sizeof(options), .cache_only = true};
    kn_plan plan;
    kiln_status status = kn_plan_open(runtime, target, source, &options, &plan, diag);
    t->cache = kiln_runtime_cache(runtime);
    if (status == KILN_OK) {
        status = explain_stages(&plan.build, t, diag);
    }
    kn_plan_close(&plan);
    return status;
}

kiln_status kiln_explain(kiln_runtime *runtime, const char *target, const kiln_source *source,
                         kiln_explanation_fn *visit, void *user, kiln_diag *diag)
{
    telling t = {.misses = true, .visit = visit, .user = user};
    return plan_and_walk(runtime, target, source, &t, diag);
}

kiln_status kiln_compile_plan(kiln_runtime *runtime, const char *target, const kiln_source *source,
                              kiln_explanation_fn *visit, void *user, kiln_diag *diag)
{
    telling t = {.visit = visit, .user = user};
    return plan_and_walk(runtime, target, source, &t, diag);
}

/* --- headers ---------------------------------------------------------------------------------- */

typedef struct header_visit {
    kiln_header_fn *visit;
    void *user;
} header_visit;

/* A place where nothing is found is looked at too, and is not a header. */
static kiln_status visit_header(void *user, const char *path, const kn_stamp *stamp)
{
    const header_visit *visit = user;
    return stamp != NULL ? visit->visit(visit->user, path) : KILN_OK;
}

kiln_status kiln_compile_headers(kiln_runtime *runtime, const char *target,
                                 const kiln_source *source, kiln_header_fn *visit, void *user,
                                 kiln_diag *diag)
{
    const kiln_build_options options = {.struct_size = sizeof(options), .cache_only = true};
    header_visit headers = {visit, user};
    kn_plan plan;
    kiln_status status = kn_plan_open(runtime, target, source, &options, &plan, diag);
    if (status == KILN_OK) {
        status = kn_stage_key(&plan.build, 0, diag);
    }
    const kn_stage_run *first = &plan.build.runs[0];
    if (status == KILN_OK && first->bypass[0] != '\0') {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, "use the compiler's own list",
                               source->name != NULL ? source->name : "source",
                               "its headers cannot be known: %s", first->bypass);
    } else if (status == KILN_OK && first->closure != NULL) {
        status = kn_closure_watch(first->closure, visit_header, &headers);
    }
    kn_plan_close(&plan);
    return status;
}
