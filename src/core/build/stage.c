/* The steps of the build for one stage: its key, and its artifact, which the engine gets. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "core/build/build.h"
#include "core/build/precompile.h"
#include "core/build/program.h"
#include "core/runtime/target.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/fpstate.h"

#define SYSTEM_DIRS_MAX 64
#define IMPLIED_MAX 16
#define RETRIES 3 /* where a leader's headers changed during its compile */

void kn_stage_run_deinit(kn_stage_run *run)
{
    kn_artifact_deinit(&run->artifact);
    kiln_blob_release(run->blob);
    kn_closure_destroy(run->closure);
    kiln_recipe_destroy(run->recipe);
    memset(run, 0, sizeof(*run));
    kn_artifact_init(&run->artifact);
}

static const char *source_name(const kn_build *build)
{
    return build->source.source.name != NULL ? build->source.source.name : "a kernel";
}

void kn_build_label(const kn_build *build, char out[KN_LABEL_SIZE])
{
    const kiln_source *source = &build->source.source;
    kn_label_make(out, source->name,
                  kn_span_of(source->text, source->text != NULL ? source->length : 0));
}

/* --- key -------------------------------------------------------------------------------------- */

static bool ships_header(void *user, const char *name)
{
    const kn_build *build = (const kn_build *)user;
    return kn_hal_ships_header(&build->driver->in, build->driver->in.handle, build->target, name);
}

/* Follows the includes of the source and adds what they reach. */
static kiln_status add_headers(kn_build *build, kn_stage_run *run, kiln_diag *diag)
{
    const kn_instance *in = &build->driver->in;
    const kiln_include_rules *rules = in->backend->compiler->include_rules;
    const char *system_dirs[SYSTEM_DIRS_MAX];
    size_t count = 0;
    while (count < SYSTEM_DIRS_MAX && (system_dirs[count] = kn_hal_system_include_dir(
                                           in, in->handle, build->target, count)) != NULL) {
        count++;
    }
    const char *implied[IMPLIED_MAX];
    size_t implied_count = 0;
    while (rules->implied_include != NULL && implied_count < IMPLIED_MAX &&
           (implied[implied_count] =
                kn_hal_implied_include(in, in->handle, build->target, implied_count)) != NULL) {
        implied_count++;
    }
    kn_closure_request request = {
        .source = &build->source.searched,
        .dir = build->source.not_beside ? NULL : build->source.dir,
        .rules = rules,
        .effects = build->effects,
        .implied = implied,
        .implied_count = implied_count,
        .system_dirs = system_dirs,
        .system_dir_count = count,
        .ships_header = ships_header,
        .user = build,
        .cache = build->cache,
        .first = run->recipe,
        .list_vouches = true,
        .memo = build->driver->headers,
        .assume = build->assume,
    };
    kiln_status status = kn_closure_find(&request, &run->closure, diag);
    if (status == KILN_OK && run->closure->bypass) {
        kn_text_put(run->bypass, sizeof(run->bypass), run->closure->reason);
        return KILN_OK;
    }
    return status == KILN_OK ? kn_closure_add_to(run->closure, run->recipe, diag) : status;
}

/* The input of a later stage is the artifact before: its bytes and its facts, not its log. */
static void add_input(const kn_artifact *input, kiln_recipe *recipe)
{
    kiln_recipe_add_bytes(recipe, "input", input->base.data, input->base.size);
    kiln_recipe_add_bytes(recipe, "input.facts", input->facts.data, input->facts.length);
}

static void find_bypass(kn_build *build, kn_stage_run *run)
{
    const kn_instance *in = &build->driver->in;
    const char *reason = kn_hal_uncacheable_option(in, in->handle, &build->source.source);
    if (reason != NULL) {
        kn_text_put(run->bypass, sizeof(run->bypass), reason);
        return;
    }
    for (size_t i = 0; build->target->searches_current && i < build->source.source.header_count;
         i++) {
        /* Found before the one in memory, which is what the key would hold. */
        const char *name = build->source.source.headers[i].name;
        kn_file_facts facts;
        if (kn_file_stat(name, true, &facts, NULL) != KILN_MISS) {
            kn_text_putf(run->bypass, sizeof(run->bypass),
                         "the compiler searches the current directory first, and that has %s",
                         name);
        }
    }
}

kiln_status kn_stage_key(kn_build *build, size_t index, kiln_diag *diag)
{
    const kiln_stage *stage = &build->stages[index];
    kn_stage_run *run = &build->runs[index];
    uint64_t start = kn_clock_now();
    kiln_status status = kiln_recipe_create(stage->name, stage->revision, &run->recipe, diag);
    if (status == KILN_OK) {
        kiln_recipe_set_target(run->recipe, stage->portable ? "portable" : build->target->name);
        kiln_recipe_add_u64(run->recipe, "artifact", KN_ARTIFACT_REVISION);
        if (stage->takes_source) {
            kn_source_add_to(&build->source.source, run->recipe);
            find_bypass(build, run);
        } else {
            add_input(&build->runs[index - 1].artifact, run->recipe);
        }
        if (!kn_instance_can(&build->driver->in, KILN_CAP_WHOLE_PROGRAMS)) {
            kn_source_add_entries(&build->source.source, run->recipe);
        }
        status = kn_target_add_to(build->driver, stage, build->target, run->recipe, diag);
    }
    if (status == KILN_OK && stage->takes_source && run->bypass[0] == '\0') {
        status = add_headers(build, run, diag);
    }
    if (status == KILN_OK) {
        run->key = kiln_recipe_key(run->recipe);
    }
    build->info.key_ns += kn_clock_now() - start;
    kn_trace_end(build->trace, start, "key",
                 &(kn_trace_about){.what = source_name(build), .detail = stage->name});
    return status;
}

kiln_status kn_stage_settle(kn_build *build)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < build->stage_count; i++) {
        if (build->runs[i].closure != NULL) {
            const kiln_status one = kn_closure_settle(build->runs[i].closure);
            status = status == KILN_OK ? one : status;
        }
    }
    build->mistaken = build->mistaken || status != KILN_OK;
    return status;
}

/* --- compile ---------------------------------------------------------------------------------- */

static void tell_compiled(kn_build *build, const kiln_stage *stage, kiln_status status,
                          uint64_t took)
{
    build->info.compile_ns += took;
    if (status == KILN_OK) {
        build->info.compiles++;
        kn_log(KILN_LOG_INFO, "compiled %s (%s) in %.3f s", source_name(build), stage->name,
               (double)took / 1e9);
    }
}

/* A compile without an error and without bytes: a loaded program, or the backend's fault. Where the
 * bytes come later, the stage takes the rest of the artifact: its log and facts are known. */
static kn_outcome take_nothing(kn_build *build, kn_artifact *artifact, kn_output *output,
                               kiln_diag *diag)
{
    kn_stage_run *run = &build->runs[build->at];
    if (build->live == NULL) {
        (void)kiln_diag_set(diag, KILN_E_INTERNAL, "report this to the compiler's vendor",
                            source_name(build), "%s returned an empty result and no error",
                            build->stages[build->at].name);
        return KN_OUTCOME_FAILED;
    }
    if (!artifact->base.later || !kn_instance_can(&build->driver->in, KILN_CAP_CAPTURE)) {
        output->reason = "the driver returns no binary of it";
        return KN_OUTCOME_PRIVATE;
    }
    kn_artifact_deinit(&run->artifact);
    run->artifact = *artifact;
    run->later = true;
    kn_artifact_init(artifact);
    return KN_OUTCOME_DEFERRED;
}

static kiln_status run_backend(kn_build *build, kn_artifact *artifact, kiln_diag *diag)
{
    const kn_instance *in = &build->driver->in;
    const size_t index = build->at;
    const kiln_stage *stage = &build->stages[index];
    kiln_compile_request request = {
        .stage = stage,
        .target = build->target,
        .source = stage->takes_source ? &build->source.source : &build->source.reduced,
        .input = stage->takes_source ? NULL : &build->runs[index - 1].artifact.base,
        .device = build->device,
        .want_live = index + 1 == build->stage_count && build->want_live && build->live == NULL &&
                     kn_instance_can(in, KILN_CAP_LIVE_COMPILE),
    };
    kn_precompile precompile;
    kn_fp_state fp;
    kn_precompile_init(&precompile, build, &build->runs[index], stage);
    request.precompile = precompile.view.path != NULL ? &precompile.view : NULL;
    kn_ticker_compile(build->ticker);
    const uint64_t start = kn_clock_now();
    kn_fp_enter(&fp);
    const kiln_status status = kn_hal_compile(in, in->handle, &request, &artifact->base,
                                              request.want_live ? &build->live : NULL, diag);
    kn_fp_leave(&fp);
    tell_compiled(build, stage, status, kn_clock_now() - start);
    kn_trace_end(
        build->trace, start, "compile",
        &(kn_trace_about){.what = source_name(build), .detail = stage->name, .device = build->on});
    kn_precompile_deinit(&precompile);
    return status;
}

/* The backend's compile, checked and made a blob. */
static void compile_stage(void *call, kn_output *output, kiln_diag *diag)
{
    kn_build *build = (kn_build *)call;
    const kn_instance *in = &build->driver->in;
    kn_artifact artifact;
    if (kn_stage_settle(build) != KILN_OK) {
        return; /* the build starts over */
    }
    kn_artifact_init(&artifact);
    kiln_status status = run_backend(build, &artifact, diag);
    if (status == KILN_OK && artifact.base.size == 0) {
        output->outcome = take_nothing(build, &artifact, output, diag);
    } else if (status == KILN_OK) {
        char label[KN_LABEL_SIZE];
        kn_build_label(build, label);
        status = kn_artifact_to_blob(&artifact, label, &output->blob, diag);
        output->outcome = KN_OUTCOME_STORED;
    }
    if (status != KILN_OK) {
        output->outcome = KN_OUTCOME_FAILED;
    }
    const char *reason = output->outcome != KN_OUTCOME_FAILED && build->at == 0
                             ? kn_hal_uncacheable_option(in, in->handle, &build->source.source)
                             : NULL;
    if (reason != NULL) {
        /* another thread's compile changed what the compiler does with this one */
        output->outcome = KN_OUTCOME_PRIVATE;
        output->reason = reason;
    }
    kn_artifact_deinit(&artifact);
}

/* Whether toolchain, driver and variables are what the key says: a compiler may be replaced while
 * a compile waits for its turn, or runs. What the backend emits follows one another in a recipe. */
static bool identity_holds(const kn_build *build, size_t index)
{
    const kiln_stage *stage = &build->stages[index];
    kiln_recipe *now = NULL;
    kiln_status status = kiln_recipe_create(stage->name, stage->revision, &now, NULL);
    const size_t begin = status == KILN_OK ? strlen(kiln_recipe_text(now)) : 0;
    if (status == KILN_OK) {
        status = kn_target_add_to(build->driver, stage, build->target, now, NULL);
    }
    const bool holds = status == KILN_OK && strstr(kiln_recipe_text(build->runs[index].recipe),
                                                   kiln_recipe_text(now) + begin) != NULL;
    kiln_recipe_destroy(now);
    return holds;
}

/* Whether what has just been compiled belongs to the stage's key. */
static kn_change find_change(void *call)
{
    const kn_build *build = (const kn_build *)call;
    kn_closure *closure = build->runs[build->at].closure;
    if (closure != NULL && !kn_closure_still_true(closure)) {
        return KN_CHANGED_HEADER;
    }
    return identity_holds(build, build->at) ? KN_UNCHANGED : KN_CHANGED_COMPILER;
}

/* --- get -------------------------------------------------------------------------------------- */

/* Reads the blob as an artifact. One that is whole and yet none was put under this key by something
 * else. */
static kn_loaded load_artifact(void *call, kiln_blob *blob, kiln_diag *diag)
{
    kn_build *build = (kn_build *)call;
    (void)diag;
    return kn_artifact_of_blob(&build->runs[build->at].artifact, blob) == KILN_OK ? KN_LOADED
                                                                                  : KN_LOAD_UNSOUND;
}

static void wait_for_others(void *call)
{
    kn_ticker_wait(((kn_build *)call)->ticker);
}

static void expect_program(void *call)
{
    kn_program_expect((kn_build *)call);
}

/* Whether another build has got a program without bytes since this one looked for it. */
static bool is_made(void *call)
{
    const kn_build *build = (const kn_build *)call;
    return build->at + 1 == build->stage_count && build->want_live && kn_program_is_made(build);
}

/* A leader that had no bytes to share has the program itself, which is as good. */
static bool adopt_program(void *call)
{
    kn_build *build = (kn_build *)call;
    build->shared = kn_program_await(build);
    return build->shared != NULL;
}

static void trace_bypass(void *call, const kn_job *job)
{
    const kn_build *build = (const kn_build *)call;
    if (job->reason != NULL && job->ran) {
        kn_trace_end(build->trace, kn_clock_now() - job->compile_ns, "bypass",
                     &(kn_trace_about){
                         .what = source_name(build), .detail = job->reason, .device = build->on});
    }
}

static const kn_frontend stages = {.compile = compile_stage,
                                   .still_true = find_change,
                                   .load = load_artifact,
                                   .report = trace_bypass,
                                   .wait = wait_for_others,
                                   .defer = expect_program,
                                   .is_made = is_made,
                                   .adopt = adopt_program,
                                   .loads_output = true,
                                   .retries = RETRIES};

/* What the job came to, as the stage's result. */
static kiln_status take_result(kn_build *build, kiln_diag *diag)
{
    kn_job *job = &build->job;
    kn_stage_run *run = &build->runs[build->at];
    run->origin = job->origin;
    kiln_blob_release(run->blob);
    run->blob = kiln_blob_retain(job->blob);
    if (job->status != KILN_OK) {
        kn_diag_move(diag, &job->why);
        return job->status;
    }
    if (job->outcome != KN_OUTCOME_PRIVATE) {
        return KILN_OK;
    }
    if (job->request.bypass == NULL) { /* not stored, now or later */
        run->later = false;
        kn_text_put(run->bypass, sizeof(run->bypass), job->reason);
    }
    return run->blob != NULL ? kn_artifact_of_blob(&run->artifact, run->blob) : KILN_OK;
}

kiln_status kn_stage_get(kn_build *build, size_t index, kiln_diag *diag)
{
    kn_stage_run *run = &build->runs[index];
    const kn_request request = {
        .cache = build->cache,
        .recipe = run->recipe,
        .what = build->stages[index].name,
        .name = source_name(build),
        .bypass = run->bypass[0] != '\0' ? run->bypass : NULL,
        .only_cached = build->options->cache_only,
    };
    kn_ticker ticker;
    const uint64_t start = kn_clock_now();
    const uint64_t compiled = build->info.compile_ns;
    kn_ticker_start(&ticker, build->options, build->stages[index].name, source_name(build));
    kn_job_deinit(&build->job);
    build->at = index;
    build->ticker = &ticker;
    (void)kn_job_run(&build->job, &stages, &request, build);
    const kiln_status status = take_result(build, diag);
    build->ticker = NULL;
    kn_ticker_stop(&ticker);
    build->info.lookup_ns += kn_clock_now() - start - (build->info.compile_ns - compiled);
    kn_trace_end(build->trace, start, "lookup",
                 &(kn_trace_about){.what = source_name(build),
                                   .detail = kiln_origin_name(run->origin),
                                   .bytes = run->blob != NULL ? kiln_blob_size(run->blob) : 0});
    return status;
}

kiln_status kn_stage_redo(kn_build *build, kiln_diag *diag)
{
    kn_artifact_deinit(&build->runs[build->at].artifact); /* what it borrows from goes */
    (void)kn_job_redo(&build->job);
    return take_result(build, diag);
}
