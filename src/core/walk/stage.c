/* The steps of the walk for one stage: its key, its artifact, and another one where the driver
 * refuses that. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/text.h"
#include "core/runtime/target.h"
#include "core/walk/build.h"
#include "core/walk/precompile.h"
#include "core/walk/program.h"
#include "core/walk/progress.h"
#include "store/cache/cache.h"
#include "store/cache/get_or_compile.h"
#include "store/format/blob.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/fpstate.h"

#define SYSTEM_DIRS_MAX 64
#define IMPLIED_MAX 16
#define TRIES_MAX 3

static const char no_binary[] = "the driver returns no binary of it";
static const char binary_later[] = "the driver returns its binary only after a launch";

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
    const char *system_dirs[SYSTEM_DIRS_MAX];
    size_t count = 0;
    while (count < SYSTEM_DIRS_MAX && (system_dirs[count] = kn_hal_system_include_dir(
                                           in, in->handle, build->target, count)) != NULL) {
        count++;
    }
    const char *implied[IMPLIED_MAX];
    size_t implied_count = 0;
    while (kn_instance_can(in, KILN_CAP_IMPLIED_INCLUDES) && implied_count < IMPLIED_MAX &&
           (implied[implied_count] =
                kn_hal_implied_include(in, in->handle, build->target, implied_count)) != NULL) {
        implied_count++;
    }
    kn_closure_request request = {
        .source = &build->source.searched,
        .folder = build->source.not_beside ? NULL : build->source.folder,
        .not_beside = build->source.not_beside,
        .names = (build->effects & (KILN_OPTION_NAMES | KILN_OPTION_NAMES_GIVEN)) != 0,
        .names_given = (build->effects & KILN_OPTION_NAMES_GIVEN) != 0,
        .names_relative = kn_instance_can(in, KILN_CAP_NAMES_RELATIVE),
        .implied = implied,
        .implied_count = implied_count,
        .system_dirs = system_dirs,
        .system_dir_count = count,
        .dirs_in_order = kn_instance_can(in, KILN_CAP_DIRS_IN_ORDER),
        .search_path_complete = kn_instance_can(in, KILN_CAP_SEARCH_KNOWN),
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
static kiln_status add_input(const kn_artifact *input, kiln_recipe *recipe, kiln_diag *diag)
{
    kiln_status status =
        kiln_recipe_add_bytes(recipe, "input", input->base.data, input->base.size, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_add_bytes(recipe, "input.facts", input->facts.data,
                                       input->facts.length, diag);
    }
    return status;
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
        status = kiln_recipe_set_target(run->recipe,
                                        stage->portable ? "portable" : build->target->name, diag);
    }
    if (status == KILN_OK) {
        status = kiln_recipe_add_u64(run->recipe, "artifact", KN_ARTIFACT_REVISION, diag);
    }
    if (status == KILN_OK && stage->takes_source) {
        status = kn_source_add_to(&build->source.source, run->recipe, diag);
        find_bypass(build, run);
    } else if (status == KILN_OK) {
        status = add_input(&build->runs[index - 1].artifact, run->recipe, diag);
    }
    if (status == KILN_OK && !kn_instance_can(&build->driver->in, KILN_CAP_WHOLE_PROGRAMS)) {
        status = kn_source_add_entries(&build->source.source, run->recipe, diag);
    }
    if (status == KILN_OK) {
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

/* One compile of a stage, and what came of it besides an entry. */
typedef struct compile_call {
    kn_build *build;
    size_t index;
    kn_ticker *ticker;
    kiln_blob *unpublished; /* made, but not to be stored: `reason` says why */
    bool live_only;         /* there is a loaded program, and nothing that could be stored */
    bool later;             /* the same, but a capture will store it */
    const char *reason;
} compile_call;

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
static kiln_status take_nothing(compile_call *call, kn_artifact *artifact, kiln_diag *diag)
{
    kn_build *build = call->build;
    kn_stage_run *run = &build->runs[call->index];
    call->live_only = build->live != NULL;
    call->later = call->live_only && artifact->base.later &&
                  kn_instance_can(&build->driver->in, KILN_CAP_CAPTURE);
    if (call->later) {
        kn_artifact_deinit(&run->artifact);
        run->artifact = *artifact;
        run->later = true;
        kn_artifact_init(artifact);
    }
    return call->live_only
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INTERNAL, "report this to the compiler's vendor",
                               source_name(build), "%s returned an empty result and no error",
                               build->stages[call->index].name);
}

/* The backend's compile, checked and made a blob. */
static kiln_status run_compiler(compile_call *call, kiln_blob **out_blob, kiln_diag *diag)
{
    kn_build *build = call->build;
    const kn_instance *in = &build->driver->in;
    const kiln_stage *stage = &build->stages[call->index];
    bool last = call->index + 1 == build->stage_count;
    kn_artifact artifact;
    kiln_status status = kn_stage_settle(build);
    if (status != KILN_OK) {
        return status;
    }
    kn_artifact_init(&artifact);
    kiln_compile_request request = {
        .stage = stage,
        .target = build->target,
        .source = stage->takes_source ? &build->source.source : &build->source.reduced,
        .input = stage->takes_source ? NULL : &build->runs[call->index - 1].artifact.base,
        .device = build->device,
        .want_live = last && build->want_live && build->live == NULL &&
                     kn_instance_can(in, KILN_CAP_LIVE_COMPILE),
    };
    kn_precompile precompile;
    kn_fp_state fp;
    kn_precompile_init(&precompile, build, &build->runs[call->index], stage);
    request.precompile = precompile.view.path != NULL ? &precompile.view : NULL;
    kn_ticker_compile(call->ticker);
    uint64_t start = kn_clock_now();
    kn_fp_enter(&fp);
    status = kn_hal_compile(in, in->handle, &request, &artifact.base,
                            request.want_live ? &build->live : NULL, diag);
    kn_fp_leave(&fp);
    tell_compiled(build, stage, status, kn_clock_now() - start);
    kn_trace_end(
        build->trace, start, "compile",
        &(kn_trace_about){.what = source_name(build), .detail = stage->name, .device = build->on});
    if (status == KILN_OK && artifact.base.size == 0) {
        status = take_nothing(call, &artifact, diag);
    }
    if (status == KILN_OK && !call->live_only) {
        char label[KN_LABEL_SIZE];
        kn_build_label(build, label);
        status = kn_artifact_to_blob(&artifact, label, out_blob, diag);
    }
    kn_artifact_deinit(&artifact);
    kn_precompile_deinit(&precompile);
    return status;
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

/* Why what has just been compiled does not belong to the stage's key: right for this caller, wrong
 * for a later one that finds it. NULL if it does. */
static const char *find_change(const kn_build *build, size_t index)
{
    kn_closure *closure = build->runs[index].closure;
    if (closure != NULL && !kn_closure_still_true(closure)) {
        return "a header changed during the compile";
    }
    const kn_instance *in = &build->driver->in;
    const char *reason =
        index == 0 ? kn_hal_uncacheable_option(in, in->handle, &build->source.source) : NULL;
    if (reason != NULL) {
        return reason; /* another thread's compile changed what the compiler does with this one */
    }
    return identity_holds(build, index) ? NULL : "the compiler changed during the compile";
}

/* Compiles what may be stored. KILN_E_CANCELLED: the walk has what it wanted (in `call`), and
 * nobody else is to get it. */
static kiln_status compile_for_store(compile_call *call, kiln_blob **out_blob, kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    kiln_status status = run_compiler(call, &blob, diag);
    if (call->build->mistaken) {
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, source_name(call->build),
                             "a header is not what it was at the last start");
    }
    if (status == KILN_OK && call->live_only && !call->later) {
        call->reason = no_binary;
    } else if (status == KILN_OK) {
        call->reason = find_change(call->build, call->index);
    }
    if (status == KILN_OK && call->live_only && call->reason == NULL) {
        /* Threads that wait for this compile take the program: there are no bytes for them. */
        kn_program_expect(call->build);
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, source_name(call->build), "%s",
                             binary_later);
    }
    if (call->reason != NULL) {
        call->unpublished = blob;
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, source_name(call->build), "%s",
                             call->reason);
    }
    *out_blob = status == KILN_OK ? blob : NULL;
    return status;
}

/* Whether another walk has got a program without bytes since this one looked for it. */
static bool is_made(const compile_call *call)
{
    return call->index + 1 == call->build->stage_count && call->build->want_live &&
           kn_program_is_made(call->build);
}

/* Counts it with its time, which the blob says, too, as one from the store does. */
static void count_bypass(kn_build *build, const char *reason, kiln_blob *blob, uint64_t start,
                         uint64_t took)
{
    uint64_t unknown = 0;
    if (blob != NULL) {
        (void)atomic_compare_exchange_strong(&blob->compile_ns, &unknown, took > 0 ? took : 1);
    }
    kn_cache_count_bypass(build->cache, source_name(build), reason, took);
    kn_trace_end(
        build->trace, start, "bypass",
        &(kn_trace_about){.what = source_name(build), .detail = reason, .device = build->on});
}

static kiln_status compile_past_cache(kn_build *build, size_t index, const char *reason,
                                      kn_ticker *ticker, kiln_diag *diag)
{
    kn_stage_run *run = &build->runs[index];
    compile_call call = {.build = build, .index = index, .ticker = ticker};
    if (build->options->cache_only) {
        return kiln_diag_set(diag, KILN_MISS, "allow compiling", source_name(build),
                             "%s bypasses the cache: %s", build->stages[index].name, reason);
    }
    const uint64_t start = kn_clock_now();
    run->origin = KILN_ORIGIN_COMPILED;
    kiln_status status = run_compiler(&call, &run->blob, diag);
    count_bypass(build, reason, run->blob, start, kn_clock_now() - start);
    return status;
}

/* What this stage made is not stored, now or later. */
static void leave_uncached(kn_build *build, kn_stage_run *run, const char *reason, uint64_t took)
{
    run->later = false;
    kn_text_put(run->bypass, sizeof(run->bypass), reason);
    count_bypass(build, reason, run->blob, kn_clock_now() - took, took);
}

/* Puts what this walk compiled by itself in the place of an entry that was dropped. */
static kiln_status replace_entry(kn_build *build, size_t index, uint64_t took)
{
    kn_stage_run *run = &build->runs[index];
    const char *reason = run->blob == NULL && !run->later ? no_binary : find_change(build, index);
    if (reason != NULL) {
        leave_uncached(build, run, reason, took);
    } else if (run->blob != NULL) {
        kn_ignore(
            kiln_cache_put(build->cache, run->recipe, run->blob, took, NULL)); /* we have it */
    }
    return run->blob != NULL ? kn_artifact_of_blob(&run->artifact, run->blob) : KILN_OK;
}

/* --- get -------------------------------------------------------------------------------------- */

static kiln_status get_only(kn_build *build, size_t index, kiln_diag *diag)
{
    kn_stage_run *run = &build->runs[index];
    kiln_status status = kiln_cache_get(build->cache, &run->key, &run->blob, &run->origin, diag);
    if (status == KILN_MISS) {
        (void)kiln_diag_set(diag, status, "allow compiling", source_name(build),
                            "%s is not in the cache", build->stages[index].name);
    }
    return status;
}

/* Waits, with ticks, for a thread or process that makes it already; false where nothing is left. */
static bool claim_flight(const compile_call *call, kn_fetch *fetch, kiln_status *out_status,
                         kiln_diag *diag)
{
    kn_ticker_wait(call->ticker);
    return kn_fetch_claim(fetch, out_status, diag);
}

/* THE STORE'S PART OF THE WALK: lookup, flight, compile, publish. */
static kiln_status look_up_or_compile(compile_call *call, kiln_diag *diag)
{
    kn_stage_run *run = &call->build->runs[call->index];
    kn_fetch fetch;
    kiln_status status = kn_fetch_begin(&fetch, call->build->cache, run->recipe, diag);
    /* lookup: memory, disk, packs, remotes; flight: one of all threads, processes and hosts */
    if (status == KILN_OK && !kn_fetch_look_up(&fetch) &&
        claim_flight(call, &fetch, &status, diag)) {
        if (fetch.seat != NULL && is_made(call)) {
            status = kiln_diag_set(&fetch.why, KILN_E_CANCELLED, NULL, "compiling",
                                   "another thread has made it and stores it later");
        } else {
            kn_fetch_start(&fetch);
            status = compile_for_store(call, &fetch.blob, &fetch.why);
        }
        /* publish: every tier that stores, and every waiter */
        status = kn_fetch_publish(&fetch, status, diag);
    }
    run->blob = fetch.blob;
    run->origin = fetch.origin;
    return status;
}

/* The same, until there is something that this walk can use. */
static kiln_status get_or_compile(kn_build *build, size_t index, kn_ticker *ticker, kiln_diag *diag)
{
    kn_stage_run *run = &build->runs[index];
    for (int tries = 0;; tries++) {
        compile_call call = {.build = build, .index = index, .ticker = ticker};
        const uint64_t before = build->info.compile_ns;
        kiln_status status = look_up_or_compile(&call, diag);
        if (status != KILN_E_CANCELLED || build->mistaken) {
            return status;
        }
        kiln_diag_clear(diag);
        if (call.unpublished != NULL || call.live_only) {
            run->blob = call.unpublished;
            if (call.reason != NULL) {
                leave_uncached(build, run, call.reason, build->info.compile_ns - before);
            }
            run->origin = KILN_ORIGIN_COMPILED;
            return KILN_OK;
        }
        /* We waited for a leader that had no bytes to share: the program itself is as good. */
        build->shared = kn_program_await(build);
        if (build->shared != NULL) {
            run->origin = KILN_ORIGIN_SHARED;
            return KILN_OK;
        }
        /* Or his headers changed under him. */
        if (tries == TRIES_MAX) {
            kn_text_put(run->bypass, sizeof(run->bypass), "headers keep changing");
            return compile_past_cache(build, index, run->bypass, ticker, diag);
        }
    }
}

/* Reads the blob as an artifact. One that is whole and yet none (put under this key by something
 * else) is dropped and made again, like any other damage. */
static kiln_status take_artifact(kn_build *build, size_t index, kn_ticker *ticker, kiln_diag *diag)
{
    kn_stage_run *run = &build->runs[index];
    kiln_status status = kn_artifact_of_blob(&run->artifact, run->blob);
    if (status != KILN_E_CORRUPT || run->origin == KILN_ORIGIN_COMPILED) {
        return status;
    }
    kn_log(KILN_LOG_WARN, "%s: the entry of %s is not an artifact; it is compiled again",
           source_name(build), build->stages[index].name);
    kn_ignore(kiln_cache_remove(build->cache, &run->key, NULL)); /* the new one replaces it */
    kiln_blob_release(run->blob);
    run->blob = NULL;
    const uint64_t before = build->info.compile_ns;
    status = compile_past_cache(build, index, "its entry is not an artifact", ticker, diag);
    return status == KILN_OK ? replace_entry(build, index, build->info.compile_ns - before)
                             : status;
}

kiln_status kn_stage_get(kn_build *build, size_t index, kiln_diag *diag)
{
    kn_stage_run *run = &build->runs[index];
    kn_ticker ticker;
    uint64_t start = kn_clock_now();
    uint64_t compiled = build->info.compile_ns;
    kn_ticker_start(&ticker, build->options, build->stages[index].name, source_name(build));
    kiln_status status = KILN_OK;
    if (run->bypass[0] != '\0') {
        status = compile_past_cache(build, index, run->bypass, &ticker, diag);
    } else if (build->options->cache_only) {
        status = get_only(build, index, diag);
    } else {
        status = get_or_compile(build, index, &ticker, diag);
    }
    if (status == KILN_OK && run->blob != NULL) {
        status = take_artifact(build, index, &ticker, diag);
    }
    kn_ticker_stop(&ticker);
    build->info.lookup_ns += kn_clock_now() - start - (build->info.compile_ns - compiled);
    kn_trace_end(build->trace, start, "lookup",
                 &(kn_trace_about){.what = source_name(build),
                                   .detail = kiln_origin_name(run->origin),
                                   .bytes = run->blob != NULL ? kiln_blob_size(run->blob) : 0});
    return status;
}

/* --- redo ------------------------------------------------------------------------------------- */

static bool same_bytes(const kiln_blob *a, const kiln_blob *b)
{
    return kiln_blob_size(a) == kiln_blob_size(b) &&
           memcmp(kiln_blob_data(a), kiln_blob_data(b), kiln_blob_size(a)) == 0;
}

kiln_status kn_stage_redo(kn_build *build, size_t index, kiln_diag *diag)
{
    kn_stage_run *run = &build->runs[index];
    bool fresh = run->origin == KILN_ORIGIN_COMPILED;
    if (run->bypass[0] == '\0' && !build->barred) {
        kn_cache_count_rejected(build->cache);
        kn_ignore(kiln_cache_remove(build->cache, &run->key, NULL)); /* the new one replaces it */
    }
    if (fresh) {
        return KILN_E_REJECTED;
    }
    if (!build->barred) {
        kn_log(KILN_LOG_WARN, "%s: the driver refused the cached binary; it is compiled again",
               source_name(build));
    }
    kiln_blob *refused = run->blob;
    run->blob = NULL;
    kn_artifact_deinit(&run->artifact);
    kiln_status status = build->barred ? KILN_OK : kn_stage_get(build, index, diag);
    if (status == KILN_OK && (build->barred || (run->origin != KILN_ORIGIN_COMPILED &&
                                                same_bytes(refused, run->blob)))) {
        /* Its writer must not load it, or a tier that cannot be written gave it
         * again: compile by ourselves, and let the tiers above it have the new one. */
        compile_call call = {.build = build, .index = index};
        kn_artifact_deinit(&run->artifact);
        kiln_blob_release(run->blob);
        run->blob = NULL;
        uint64_t before = build->info.compile_ns;
        status = run_compiler(&call, &run->blob, diag);
        run->origin = KILN_ORIGIN_COMPILED;
        if (status == KILN_OK) {
            status = replace_entry(build, index, build->info.compile_ns - before);
        }
    }
    kiln_blob_release(refused);
    return status;
}
