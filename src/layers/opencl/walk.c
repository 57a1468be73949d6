/* See build.h: the walk of a program through the cache. Knows keys and entries; not what an
 * application sees. */
#include "dropin/opencl_answers.h"
#include "layers/opencl/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "dropin/opencl_budget.h"
#include "dropin/opencl_kept.h"
#include "dropin/opencl_make.h"
#include "dropin/opencl_record.h"
#include "interpose/session.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "sys/clock.h"
#include "sys/fpstate.h"

static const char what[] = "an OpenCL program";

static void report_walk(const char *origin, const char *reason, uint64_t took_ns, uint64_t saved_ns)
{
    kn_session_report(&(kn_session_event){.what = "opencl",
                                          .name = what,
                                          .origin = origin,
                                          .reason = reason,
                                          .took_ns = took_ns,
                                          .saved_ns = saved_ns});
}

void kn_layer_count_bypass(const char *reason, uint64_t took_ns)
{
    kn_session_bypass("opencl", what, reason, took_ns);
}

/* --- key -------------------------------------------------------------------------------------- */

bool kn_layer_walk_init(kn_layer_walk *walk, kn_opencl_wish *wish, bool compile_only)
{
    kiln_cache *cache = kn_session_cache();
    *walk = (kn_layer_walk){.compile_only = compile_only};
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
    kiln_blob_release(walk->blob);
    if (walk->request.wish != NULL) {
        kn_opencl_request_deinit(&walk->request);
    }
}

/* --- a miss ----------------------------------------------------------------------------------- */

static kiln_status read_built(const kn_layer_walk *walk, kiln_blob **out_blob, kiln_diag *diag)
{
    const kn_opencl_request *request = &walk->request;
    const kiln_key key = kiln_recipe_key(request->recipe);
    kn_cache_work work;
    if (!kn_cache_work_begin(request->cache, &key, what, &work)) {
        return KILN_MISS;
    }
    const kiln_status status =
        walk->compile_only
            ? kn_opencl_make_unit_answers(&request->site, request->wish, walk->program, out_blob,
                                          diag)
            : kn_opencl_make_answered(&request->site, request->wish, request->unit.is_pocl,
                                      walk->program, out_blob, diag);
    kn_cache_work_end(request->cache, &work);
    return status;
}

static kiln_status ask_driver(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    kn_layer_walk *walk = (kn_layer_walk *)user;
    const uint64_t start = kn_clock_now();
    walk->ran = true;
    walk->code = walk->build(walk->user, &walk->program);
    walk->took_ns = kn_clock_now() - start;
    if (walk->code != CL_SUCCESS || walk->program == NULL) {
        return kiln_diag_set(diag, KILN_E_COMPILE, NULL, what, "the driver returned %d",
                             (int)walk->code);
    }
    if (!kn_opencl_request_still_true(&walk->request)) {
        walk->reason = "a header changed during the compile";
    } else if (!walk->compile_only && walk->request.unit.is_pocl) {
        /* A read is for other processes: this one has the program. */
        walk->later = kn_cache_outlasts(walk->request.cache);
    } else if (read_built(walk, out_blob, diag) != KILN_OK) {
        kiln_diag_clear(diag);
        walk->reason = "the driver returns no binary of it";
    } else {
        return KILN_OK;
    }
    return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, what, "it is not stored now");
}

/* --- a hit ------------------------------------------------------------------------------------ */

static kn_span answers_of(const kiln_blob *blob)
{
    return kn_span_of(kiln_blob_facts(blob), kiln_blob_facts_size(blob));
}

typedef enum hit_outcome {
    HIT_LOADED,
    HIT_UNSOUND, /* the entry was not made for a program */
    HIT_BARRED,  /* processes died of it (kn_cache_load_begin): it stays, and is not loaded */
    HIT_REFUSED, /* by the driver */
} hit_outcome;

static hit_outcome load_hit(kn_layer_walk *walk)
{
    const kiln_key key = kiln_recipe_key(walk->request.recipe);
    kn_load watch;
    if (!kn_answers_are_sound(answers_of(walk->blob))) {
        return HIT_UNSOUND;
    }
    if (walk->compile_only) {
        return HIT_LOADED;
    }
    if (!kn_cache_load_begin(walk->request.cache, &key, what, &watch)) {
        return HIT_BARRED;
    }
    const kiln_status status =
        kn_opencl_make_loaded(&walk->request, walk->blob, &walk->loaded, NULL);
    kn_cache_load_end(walk->request.cache, &key, &watch);
    return status == KILN_OK ? HIT_LOADED : HIT_REFUSED;
}

/* What the cache had was not loaded: it is built again, and the new one replaces it. */
static void redo_walk(kn_layer_walk *walk, hit_outcome why)
{
    const kiln_key key = kiln_recipe_key(walk->request.recipe);
    kiln_blob *fresh = NULL;
    if (why == HIT_REFUSED) {
        kn_cache_count_rejected(walk->request.cache);
        kn_log(KILN_LOG_WARN, "OpenCL: the driver refused a cached binary; it is compiled again");
    } else if (why == HIT_UNSOUND) {
        kn_log(KILN_LOG_WARN, "OpenCL: an entry is not a program's; it is compiled again");
    }
    if (why != HIT_BARRED) { /* what is barred stays, also where nothing new is stored now */
        kn_ignore(kiln_cache_remove(walk->request.cache, &key, NULL));
    }
    kiln_blob_release(walk->blob);
    walk->blob = NULL;
    if (ask_driver(walk, &fresh, NULL) == KILN_OK) {
        /* The store logs its own errors. */
        kn_ignore(
            kiln_cache_put(walk->request.cache, walk->request.recipe, fresh, walk->took_ns, NULL));
    }
    kiln_blob_release(fresh);
}

/* --- the walk --------------------------------------------------------------------------------- */

static void report_driver(const kn_layer_walk *walk)
{
    if (walk->code != CL_SUCCESS || walk->program == NULL) {
        report_walk("failed", NULL, walk->took_ns, 0);
    } else if (walk->reason != NULL) {
        kn_layer_count_bypass(walk->reason, walk->took_ns);
    } else {
        report_walk("compiled", NULL, walk->took_ns, 0);
    }
}

void kn_layer_walk_go(kn_layer_walk *walk)
{
    kiln_origin origin = KILN_ORIGIN_NONE;
    const uint64_t start = kn_clock_now();
    const kiln_key key = kiln_recipe_key(walk->request.recipe);
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *fresh = NULL;
    kiln_status status = kiln_cache_get_or_compile(walk->request.cache, walk->request.recipe,
                                                   ask_driver, walk, &walk->blob, &origin, &diag);
    kiln_diag_clear(&diag);
    if (!walk->ran && status == KILN_OK) {
        const hit_outcome outcome = load_hit(walk);
        if (outcome != HIT_LOADED) {
            redo_walk(walk, outcome);
        }
    } else if (!walk->ran) {
        /* Another's build failed, or has left nothing in the cache. */
        kn_ignore(ask_driver(walk, &fresh, NULL));
        kiln_blob_release(fresh);
    }
    if (!walk->ran || walk->code == CL_SUCCESS) {
        kn_opencl_request_save(&walk->request);
        kn_opencl_record(&walk->request, &key,
                         KN_RECORDED_LAYER | (walk->compile_only ? KN_RECORDED_COMPILE : 0),
                         walk->ran ? walk->took_ns : kiln_blob_compile_ns(walk->blob));
    }
    /* A first start pays nothing for the next ones. */
    if (!walk->ran && walk->blob != NULL && !walk->compile_only &&
        kn_opencl_kept_assemble(&walk->request, walk->blob, true)) {
        kn_layer_capture_assembles();
    }
    if (walk->ran) {
        kiln_blob_release(walk->blob); /* the program itself is at hand */
        walk->blob = NULL;
        report_driver(walk);
    } else if (!walk->compile_only) {
        report_walk(kiln_origin_name(origin), NULL, kn_clock_now() - start,
                    atomic_load(&walk->blob->compile_ns));
    }
}

/* --- what is kept ----------------------------------------------------------------------------- */

static void keep_unread(kn_layer_walk *walk, kn_layer_build *build)
{
    build->recipe = walk->request.recipe;
    walk->request.recipe = NULL;
    build->takes_linker = walk->request.unit.takes_linker;
    build->compile_ns = walk->took_ns;
    const kiln_key key = kiln_recipe_key(build->recipe);
    kn_opencl_budget_earn(walk->took_ns, kn_clock_now());
    kn_session_report(&(kn_session_event){
        .what = "opencl", .name = what, .origin = "left", .took_ns = walk->took_ns, .key = &key});
    kn_layer_capture_expect();
}

kn_layer_build *kn_layer_walk_take(kn_layer_walk *walk)
{
    const bool built = walk->ran && walk->code == CL_SUCCESS;
    const bool unread = built && walk->later;
    if (!(unread || !walk->ran || (built && walk->compile_only))) {
        return NULL;
    }
    kn_layer_build *build = calloc(1, sizeof(*build));
    if (build == NULL) {
        return NULL;
    }
    build->wish = kn_opencl_wish_retain(walk->request.wish);
    build->unit = walk->compile_only && walk->reason == NULL;
    if (!walk->ran) {
        build->deferred = walk->compile_only;
        build->loaded = walk->loaded;
        build->answers = walk->blob;
        walk->blob = NULL;
    } else if (unread) {
        keep_unread(walk, build);
    }
    return build;
}
