/* THE WALK of a kernel: source, then for each stage its key, the store or a compile, then the load.
 * Nothing else in kiln knows both backends and the store.
 *
 * THE OPTIMISTIC WALK (docs/decisions/0008). To look at each place of a long list of headers takes
 * as long as to load the program, so the two are done at once. A build begins with `assume` set:
 *
 *     START --- the list is short, or `assume` is clear: each place is looked at first --> CERTAIN
 *       |                                                                                   ^  ^
 *       | the list is long: it is taken as true (closure->assumed), a thread looks          |  |
 *       v                                                                                   |  |
 *     ASSUMED: look up, load eagerly --- kn_stage_settle: all is as the list says ----------+  |
 *       |                                                                                      |
 *       | kn_stage_settle: a place is not (`mistaken`)                                         |
 *       v                                                                                      |
 *     MISTAKEN: start_over unloads and drops everything --- START again, `assume` clear ---+
 *
 * Only a CERTAIN build compiles, publishes, or gives a program to its caller or to other threads:
 * stage.c settles before a compile begins, kn_build_program before it ends. So a stale binary may
 * be loaded, and is never run. Callers that want one key and no other (`extra->expected`), and
 * builds without a load, assume nothing. */
#include "core/build/build.h"

#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "core/build/program.h"
#include "core/build/program_kernels.h"
#include "core/runtime/runtime.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "sys/fpstate.h"

/* Names the languages that the target does take; what is built into a program is not in a file. */
static kiln_status refuse_language(kn_driver *driver, const kiln_target *target,
                                   kiln_language language, kiln_diag *diag)
{
    static const kiln_language languages[] = {
#define KN_LANGUAGE(id, ...) KILN_LANG_##id,
#define KN_LANGUAGE_INTERNAL(id, ...) KILN_LANG_##id,
#include "base/languages.def"
    };
    char fix[160] = "";
    for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
        size_t stages = 0;
        const size_t used = strlen(fix);
        if (languages[i] != KILN_LANG_BUILTIN &&
            kn_hal_stages(&driver->in, driver->in.handle, target, languages[i], &stages) != NULL) {
            kn_text_putf(fix + used, sizeof(fix) - used, "%s%s", used > 0 ? ", " : "it takes ",
                         kiln_language_name(languages[i]));
        }
    }
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, fix, "building a program",
                         "%s does not take %s for %s", driver->in.backend->name,
                         kiln_language_name(language), target->name);
}

kiln_status kn_build_init(kn_build *build, kiln_cache *cache, kn_driver *driver,
                          const kiln_target *target, void *device, const kiln_source *source,
                          const kiln_build_options *options, kiln_diag *diag)
{
    static const kiln_build_options no_options = {.struct_size = sizeof(kiln_build_options)};
    memset(build, 0, sizeof(*build));
    build->cache = cache;
    build->driver = driver;
    build->target = target;
    build->device = device;
    build->options = kn_sized_view(KN_SIZED(kiln_build_options),
                                   options != NULL ? options : &no_options, &build->room, diag);
    for (size_t i = 0; i < KILN_STAGE_MAX; i++) {
        kn_artifact_init(&build->runs[i].artifact);
    }
    if (build->options == NULL) {
        build->options = &no_options;
        return KILN_E_INVALID;
    }
    kiln_status status = kn_source_resolve(source, &build->source, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (driver->in.backend->compiler->include_rules->option_effects != NULL) {
        build->effects =
            kn_hal_option_effects(&driver->in, driver->in.handle, &build->source.source);
    }
    if ((build->effects & KILN_OPTION_NOT_BESIDE) != 0) {
        kn_source_search_not_beside(&build->source);
    }
    if (target->searches_current) {
        status = kn_source_search_current(&build->source, diag);
        if (status != KILN_OK) {
            return status;
        }
    }
    build->stages = kn_hal_stages(&driver->in, driver->in.handle, target, source->language,
                                  &build->stage_count);
    if (build->stages == NULL || build->stage_count > KILN_STAGE_MAX) {
        build->stage_count = 0; /* there are no such runs to end */
        return refuse_language(driver, target, source->language, diag);
    }
    build->info.struct_size = sizeof(build->info);
    build->info.stage_count = (uint32_t)build->stage_count;
    return KILN_OK;
}

/* Backwards: a later stage borrows from the one before. */
static void drop_runs(kn_build *build)
{
    for (size_t i = KILN_STAGE_MAX; i > 0; i--) {
        kn_stage_run_deinit(&build->runs[i - 1]);
    }
}

void kn_build_deinit(kn_build *build)
{
    kn_build_record(build);
    for (size_t i = 0; i < build->stage_count; i++) {
        /* A list of headers is worth keeping only for a stage that gave something. */
        const bool gave = build->runs[i].blob != NULL || build->runs[i].later;
        if (build->runs[i].closure != NULL && gave) {
            kn_closure_save(build->runs[i].closure);
        }
    }
    kn_job_deinit(&build->job);
    kiln_program_release(build->shared);
    if (build->live != NULL) {
        kn_hal_program_unload(&build->driver->in, build->device, build->live);
    }
    drop_runs(build);
    kn_resolved_deinit(&build->source);
}

kiln_status kn_build_artifacts(kn_build *build, kiln_diag *diag)
{
    for (size_t i = 0; i < build->stage_count; i++) {
        if (build->stages[i].needs_device && build->device == NULL) {
            return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "compile on a machine that has it",
                                 build->target->name, "%s can only run where the device is",
                                 build->stages[i].name);
        }
        kiln_status status = kn_stage_key(build, i, diag);
        status = status == KILN_OK ? kn_stage_get(build, i, diag) : status;
        if (status != KILN_OK) {
            return status;
        }
    }
    return kn_kernels_check(kn_kernels_of(build), &build->source.source, diag);
}

static const char *name_of(const kn_build *build)
{
    return build->source.source.name != NULL ? build->source.source.name : "a kernel";
}

/* NULL for a build without stages. */
static const kn_stage_run *last_run(const kn_build *build)
{
    return build->stage_count > 0 ? &build->runs[build->stage_count - 1] : NULL;
}

/* Whether the driver gets bytes that an earlier process may have died of. */
static bool is_cached(const kn_build *build)
{
    const kn_stage_run *last = last_run(build);
    return last != NULL && last->bypass[0] == '\0' && last->origin != KILN_ORIGIN_NONE &&
           last->origin != KILN_ORIGIN_COMPILED;
}

/* Hands the artifacts to the driver; *out_handle is a loaded program. */
static kiln_status load_program(kn_build *build, void **out_handle, kiln_diag *diag)
{
    const kn_instance *in = &build->driver->in;
    const kiln_artifact *artifacts[KILN_STAGE_MAX];
    for (size_t i = 0; i < build->stage_count; i++) {
        artifacts[i] = &build->runs[i].artifact.base;
    }
    kiln_load_request request = {
        .target = build->target,
        .source = &build->source.source,
        .artifacts = artifacts,
        .artifact_count = build->stage_count,
        .eager = build->runs[0].closure != NULL && build->runs[0].closure->assumed,
    };
    /* the program keeps the blob (kn_program_adopt); a build that fails unloads before it lets go
     */
    const kn_stage_run *last = last_run(build);
    request.stays = last != NULL && last->blob != NULL &&
                    last->artifact.base.data == kiln_blob_data(last->blob) &&
                    kn_instance_can(in, KILN_CAP_LENT_ARTIFACT);
    if (build->live != NULL) {
        /* the compile left a loaded program behind */
        *out_handle = build->live;
        build->live = NULL;
        return KILN_OK;
    }
    kn_load watch = {.cell = 0};
    if (is_cached(build) && !kn_job_load_begin(&build->job, &watch)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, "allow compiling", name_of(build),
                             "the driver did not come back from loading its cached binary");
    }
    uint64_t start = kn_clock_now();
    kn_fp_state fp;
    kn_fp_enter(&fp); /* drivers compile what they load */
    kiln_status status = kn_hal_program_load(in, build->device, &request, out_handle, diag);
    kn_fp_leave(&fp);
    build->info.load_ns += kn_clock_now() - start;
    if (is_cached(build)) {
        kn_job_load_end(&build->job, &watch);
    }
    kn_trace_end(build->trace, start, "load",
                 &(kn_trace_about){.what = build->source.source.name, .device = build->on});
    return status;
}

/* The driver refused the binary: another one is made and loaded, once. What is refused again is not
 * kept. */
static kiln_status redo_and_load(kn_build *build, void **out_handle, kiln_diag *refusal)
{
    kiln_diag failure = KILN_DIAG_INIT;
    kiln_status status = kn_stage_redo(build, &failure);
    if (status == KILN_OK) {
        kiln_diag_clear(refusal);
        status = load_program(build, out_handle, refusal);
        if (status == KILN_E_REJECTED) {
            kn_ignore(kiln_cache_remove(build->cache, &last_run(build)->key, NULL)); /* no use */
        }
    } else if (status != KILN_E_REJECTED) {
        kn_diag_move(refusal, &failure);
    }
    kiln_diag_clear(&failure);
    return status;
}

/* Loads; what the driver refuses is dropped, made again, and published. */
static kiln_status load_or_redo(kn_build *build, void **out_handle, kiln_diag *diag)
{
    kiln_diag why = KILN_DIAG_INIT;
    kiln_status status = load_program(build, out_handle, &why);
    if (status == KILN_E_REJECTED && build->stage_count > 0 && build->options->cache_only) {
        if (!build->job.quarantined) {
            kn_ignore(kiln_cache_remove(build->cache, &last_run(build)->key, NULL)); /* no use */
        }
        status = KILN_MISS;
    } else if (status == KILN_E_REJECTED && build->stage_count > 0) {
        status = redo_and_load(build, out_handle, &why);
    }
    if (status != KILN_OK) {
        why.status = status;
        kn_diag_move(diag, &why);
    }
    kiln_diag_clear(&why);
    return status;
}

/* Whether a build that knows the key of its first stage is the one that is wanted. */
static bool is_expected_key(const kn_build *build, kn_build_extra *extra)
{
    const kn_stage_run *first = &build->runs[0];
    extra->changed = extra->expected != NULL &&
                     (first->bypass[0] != '\0' || memcmp(first->key.bytes, extra->expected->bytes,
                                                         sizeof(first->key.bytes)) != 0);
    return !extra->changed;
}

/* The stages, first to last, then the load. With KILN_OK *out_program is a program that this
 * process has already, or *out_loaded is a new one. */
static kiln_status walk_stages(kiln_device *device, kn_build *build, kn_build_extra *extra,
                               kiln_program **out_program, void **out_loaded, kiln_diag *diag)
{
    for (size_t i = 0; i < build->stage_count; i++) {
        /* why this and nothing else: the key */
        kiln_status status = kn_stage_key(build, i, diag);
        if (status != KILN_OK) {
            return status;
        }
        if (i == 0 && !is_expected_key(build, extra)) {
            return KILN_MISS;
        }
        if (i + 1 == build->stage_count) {
            /* already loaded in this process: share it, done */
            *out_program = kn_program_find(device, build);
            if (*out_program != NULL) {
                return KILN_OK;
            }
        }
        /* the store; on a miss one compile, however many ask, and publish */
        status = kn_stage_get(build, i, diag);
        if (build->shared != NULL) {
            /* another thread compiled it meanwhile, and has a program but no bytes */
            *out_program = build->shared;
            build->shared = NULL;
            return status;
        }
        if (status != KILN_OK) {
            return status;
        }
    }
    /* the driver loads it; what it refuses is made again */
    return load_or_redo(build, out_loaded, diag);
}

/* Drops all that a build has made of headers that are not what it took them for. */
static void start_over(kn_build *build, kiln_program **program, void **loaded, kiln_diag *diag)
{
    if (*loaded != NULL) {
        kn_hal_program_unload(&build->driver->in, build->device, *loaded);
        *loaded = NULL;
    }
    kiln_program_release(*program);
    *program = NULL;
    drop_runs(build);
    kiln_diag_clear(diag);
    build->assume = false;
    build->mistaken = false;
}

kiln_status kn_build_program(kiln_device *device, const kiln_source *source,
                             const kiln_build_options *options, kn_build_extra *extra,
                             kiln_program **out_program, kiln_diag *diag)
{
    kn_build build;
    kn_build_extra none = {0};
    void *handle = NULL;
    void *loaded = NULL;
    const uint64_t start = kn_clock_now();
    kiln_status status = kn_device_handle(device, &handle, diag);
    if (status != KILN_OK) {
        return status;
    }
    extra = extra != NULL ? extra : &none;

    /* what will be compiled, and through which stages */
    status = kn_build_init(&build, device->runtime->cache, device->driver, &device->target, handle,
                           source, options, diag);
    build.want_live = true;
    build.assume = extra->expected == NULL;
    build.trace = device->runtime->trace;
    build.on = device;
    while (status == KILN_OK) {
        status = walk_stages(device, &build, extra, out_program, &loaded, diag);
        /* the headers are what they were taken for; else again, without taking anything */
        const kiln_status settled = kn_stage_settle(&build);
        if (!build.mistaken) {
            status = settled == KILN_OK ? status : settled;
            break;
        }
        start_over(&build, out_program, &loaded, diag);
        status = KILN_OK;
    }
    if (status == KILN_OK && *out_program == NULL) {
        build.info.total_ns = kn_clock_now() - start;
        status = kn_program_adopt(device, &build, loaded, out_program, diag);
    }
    kn_program_expected(&build);
    if (status == KILN_OK) {
        status = kn_program_check_entries(out_program, &build.source.source, diag);
    }
    if (extra->seen != NULL) {
        extra->seen(extra->user, &build);
    }
    kn_trace_end(build.trace, start, "build",
                 &(kn_trace_about){.what = build.source.source.name, .device = device});
    kn_build_deinit(&build);
    return status;
}
