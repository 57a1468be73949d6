/* kiln warm: compiles the kernels of manifests for named targets, into the cache and into a pack. A
 * target that needs a device that is not here is reported, and the others are made. */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/compile.h>
#include <kiln/unstable/counters.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "cli/parallel.h"
#include "cli/session.h"
#include "manifest/manifest.h"
#include "warm/targets.h"
#include "warm/warm.h"
#include "warm/warm_list.h"
#include "warm/warm_order.h"
#include "warm/warm_pack.h"
#include "warm/warm_recorded.h"

typedef struct warm_options {
    session_options session;
    opt_list targets;
    const char *pack, *shard;
    opt_number jobs, most, within, time;
    bool all, used, variants, drop_in, stale;
} warm_options;

static const opt_spec specs[] = {
    {"target", 't', OPT_LIST, offsetof(warm_options, targets), "T[,T...]",
     "for these: vulkan:spirv, cuda:sm_90, cpu:x86-64-v3, opencl:0"},
    {"pack", 'p', OPT_TEXT, offsetof(warm_options, pack), "FILE",
     "write a pack of exactly these entries, too"},
    {"jobs", 'j', OPT_COUNT, offsetof(warm_options, jobs), "N",
     "compile N at once (default: one per processor, at most one per GiB of memory)"},
    {"used", 'u', OPT_FLAG, offsetof(warm_options, used), NULL,
     "compile the most used first, by the cache's records"},
    {"variants", 0, OPT_FLAG, offsetof(warm_options, variants), NULL,
     "every variant that kiln tune would measure, too"},
    {"max", 'm', OPT_COUNT, offsetof(warm_options, most), "N", "make only the first N of all"},
    {"shard", 0, OPT_TEXT, offsetof(warm_options, shard), "I/N",
     "make only the I-th of N parts, which are the same on every machine"},
    {"drop-in", 0, OPT_FLAG, offsetof(warm_options, drop_in), NULL,
     "for a program that calls kiln's drop-in (OpenCL, CUDA, HIP)"},
    {"stale", 0, OPT_FLAG, offsetof(warm_options, stale), NULL,
     "what the cache's own recording has, used most first: after a driver has changed"},
    {"within", 0, OPT_DURATION, offsetof(warm_options, within), "AGE",
     "of a recording, only what was used in the last AGE (30d)"},
    {"for", 0, OPT_DURATION, offsetof(warm_options, time), "TIME",
     "start no compile after TIME (10m)"},
    {"all", 0, OPT_FLAG, offsetof(warm_options, all), NULL, "fail if anything had to be skipped"},
    SESSION_CACHE_ROW(warm_options),
    SESSION_JSON_ROW(warm_options),
    OPT_END};

typedef struct warm_work {
    const cmd_context *context;
    const warm_options *options;
    kiln_cache *cache;
    cli_targets targets;
    const char *names[TARGETS_MAX];
    cli_manifest *manifests;
    size_t manifest_count, done;
    warm_recorded recorded; /* its recording is NULL for manifests */
    warm_list list;
    warm_shard shard;
    warm_pack *pack;      /* NULL: none */
    host_mutex *mutex;    /* pool, console, pack and `done`, while compiles run side by side */
    uint64_t deadline_ns; /* no compile begins after it; 0: none */
    exit_code code;
} warm_work;

/* --- one kernel for one target ---------------------------------------------------------------- */

/* One language. */
static kiln_status make_form(warm_work *work, warm_item *item, size_t index, kiln_diag *diag)
{
    const cli_target *target = &work->targets.items[item->target];
    kernel_source own;
    kiln_build_info info = {.struct_size = sizeof(info)};
    kiln_blob *blob = NULL;
    kiln_status status = warm_source_read(item, index, &own, diag);
    if (status == KILN_OK) {
        status = (work->options->drop_in ? kiln_dropin_compile : kiln_compile_measured)(
            target->runtime, target->name, &own.source, &blob, &info, diag);
    }
    if (status == KILN_OK && blob != NULL) {
        item->outcome = info.origin == KILN_ORIGIN_COMPILED ? WARM_COMPILED : WARM_THERE;
        item->language = own.form->language;
        item->size = kiln_blob_size(blob);
        item->compile_ns = info.compile_ns;
        item->saved_ns = info.origin == KILN_ORIGIN_COMPILED ? 0 : kiln_blob_compile_ns(blob);
        if (work->pack != NULL) {
            status = work->options->drop_in ? warm_pack_note_key(work->pack, &info.key, item, diag)
                                            : warm_pack_note(work->pack, target, &own, item, diag);
        }
    }
    kiln_blob_release(blob);
    kernel_source_deinit(&own);
    return status;
}

static bool cannot_be_made(kiln_status status)
{
    return status == KILN_E_UNSUPPORTED || status == KILN_E_UNAVAILABLE;
}

/* Tries the languages in their order; of those that do not work here the last word is kept, but
 * that a compiler is missing says more than that a language is not taken. */
static kiln_status make_item(warm_work *work, warm_item *item, kiln_diag *diag)
{
    if (item->use != NULL) {
        return warm_recorded_make(&work->recorded, &work->targets.items[item->target], item,
                                  work->pack, diag);
    }
    kiln_status status = KILN_E_UNSUPPORTED;
    for (size_t i = 0; cannot_be_made(status) && i < warm_form_count(item); i++) {
        kiln_diag own = KILN_DIAG_INIT;
        kiln_status one = make_form(work, item, i, &own);
        if (diag->status == KILN_OK || one != KILN_E_UNSUPPORTED) {
            diag_move(diag, &own);
            status = one;
        }
        kiln_diag_clear(&own);
    }
    return status;
}

static void finish_item(warm_work *work, warm_item *item, kiln_status status, kiln_diag *diag)
{
    char line[1536];
    work->done++;
    if (status == KILN_OK) {
        return;
    }
    (void)kiln_diag_format(diag, line, sizeof(line));
    item->reason = pool_text(work->context->pool, line, strlen(line));
    item->reason = item->reason != NULL ? item->reason : kiln_status_text(status);
    item->outcome = cannot_be_made(status) ? WARM_SKIPPED : WARM_FAILED;
    if (status == KILN_E_UNSUPPORTED && item->form != NULL && item->use == NULL) {
        item->outcome = WARM_PASSED_OVER;
    }
    if (item->outcome == WARM_FAILED) {
        work->code = work->code == EXIT_FINE ? exit_of(status) : work->code;
        item->trouble = pool_alloc(work->context->pool, sizeof(*diag));
        if (item->trouble != NULL) {
            *item->trouble = (kiln_diag)KILN_DIAG_INIT;
            diag_move(item->trouble, diag);
        } else {
            (void)cmd_fail(work->context, diag);
        }
    }
}

static void warm_one(void *user, size_t index)
{
    warm_work *work = user;
    warm_item *item = &work->list.items[index];
    const cli_target *target = &work->targets.items[item->target];
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = KILN_E_UNAVAILABLE;
    const bool late = work->deadline_ns > 0 && host_now() >= work->deadline_ns;
    host_mutex_lock(work->mutex);
    console_progress(work->context->console, work->done, work->list.count, item->name, 0);
    host_mutex_unlock(work->mutex);
    if (late) {
        (void)kiln_diag_set(&diag, KILN_E_UNAVAILABLE, NULL, "--for", "the time was over");
    } else if (target->runtime != NULL || item->use != NULL) {
        status = make_item(work, item, &diag);
    }
    host_mutex_lock(work->mutex);
    finish_item(work, item, status, &diag);
    if (target->runtime == NULL && item->use == NULL) {
        item->reason = target->reason;
    }
    host_mutex_unlock(work->mutex);
    kiln_diag_clear(&diag);
}

/* --- gathering -------------------------------------------------------------------------------- */

static kiln_status read_manifests(warm_work *work, const opt_list *paths, kiln_diag *diag)
{
    cli_pool *pool = work->context->pool;
    work->manifests = pool_array(pool, paths->count, sizeof(*work->manifests));
    if (work->manifests == NULL) {
        return diag_no_memory(diag, "reading manifests");
    }
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < paths->count && status == KILN_OK; i++) {
        status = manifest_read_to_compile(paths->items[i], pool, &work->manifests[i], diag);
    }
    work->manifest_count = paths->count;
    return status;
}

static kiln_status open_targets(warm_work *work, kiln_diag *diag)
{
    cli_pool *pool = work->context->pool;
    host_pass_on_interrupts(); /* from here on there may be compilers */
    kiln_status status = targets_open(&work->targets, work->cache, pool, diag);
    if (status == KILN_OK && work->recorded.recording != NULL) {
        status = warm_recorded_adopt(&work->recorded, &work->targets, pool, diag);
        if (status == KILN_OK) {
            status = exec_helpers_create(pool, work->mutex, kiln_cache_root(work->cache),
                                         work->recorded.path, &work->recorded.helpers, diag);
        }
        return status == KILN_OK
                   ? warm_recorded_list(&work->recorded, &work->targets, pool, &work->list, diag)
                   : status;
    }
    if (status == KILN_OK) {
        status = warm_list_make(work->manifests, work->manifest_count, &work->targets,
                                work->options->variants, pool, &work->list, diag);
    }
    return status;
}

/* --- the command ------------------------------------------------------------------------------ */

/* Programs go on with what they compiled, stored or not; here storing is all that was wanted. */
static bool is_kept(const warm_work *work)
{
    const uint64_t failures = kiln_cache_counter(work->cache, KILN_COUNTER_PUT_FAILURES) +
                              exec_helpers_put_failures(work->recorded.helpers);
    if (session_only_reads(work->cache)) {
        console_say(work->context->console,
                    "compiled kernels are not kept: the disk cache is read-only");
        return false;
    }
    if (failures > 0) {
        console_say(work->context->console, "%llu %s could not be stored",
                    (unsigned long long)failures, failures == 1 ? "entry" : "entries");
        return false;
    }
    return true;
}

static void report_repeats(const warm_work *work, size_t count)
{
    if (count > 0) {
        console_say(work->context->console, "the same for %zu more %s", count,
                    count == 1 ? "kernel" : "kernels");
    }
}

/* After the table: the last lines are what is read. A target that does not exist fails for each
 * kernel in the same words. */
static void report_failures(const warm_work *work, const warm_result *result)
{
    const char *last = NULL;
    size_t repeats = 0;
    (void)fflush(stdout);
    for (size_t i = 0; i < result->count; i++) {
        const warm_item *item = &result->items[i];
        if (item->trouble == NULL) {
            continue;
        }
        if (last != NULL && item->trouble->log == NULL && strcmp(last, item->reason) == 0) {
            repeats++;
            continue;
        }
        report_repeats(work, repeats);
        repeats = 0;
        last = item->reason;
        (void)cmd_fail(work->context, item->trouble);
    }
    report_repeats(work, repeats);
}

static exit_code print_result(const warm_work *work, const warm_result *result)
{
    bool good = work->options->session.json ? warm_print_json(result)
                                            : warm_print_table(result, work->context->pool);
    report_failures(work, result);
    if (!good) {
        return cmd_no_memory(work->context);
    }
    if (work->code == EXIT_FINE && warm_count(result, WARM_COMPILED) > 0 && !is_kept(work)) {
        return EXIT_CACHE;
    }
    if (work->code == EXIT_FINE && work->options->all && warm_count(result, WARM_SKIPPED) > 0) {
        return EXIT_UNAVAILABLE;
    }
    return work->code;
}

/* Puts what is used most first, and leaves the rest out where only so many are wanted. A recording
 * has its own counts. */
static void choose_items(warm_work *work)
{
    const warm_options *options = work->options;
    warm_list *list = &work->list;
    warm_list_take_shard(list, &work->shard);
    for (size_t i = 0; options->used && work->recorded.recording == NULL && i < list->count; i++) {
        const cli_target *target = &work->targets.items[list->items[i].target];
        warm_find_uses(target->runtime, target->name, work->cache, &list->items[i]);
    }
    if (options->used) {
        warm_order(list->items, list->count);
    }
    if (options->most.given && options->most.value < list->count) {
        list->count = (size_t)options->most.value;
    }
}

static exit_code compile_all(warm_work *work)
{
    choose_items(work);
    for (size_t i = 0; i < work->targets.count; i++) {
        work->names[i] = work->targets.items[i].name;
    }
    kiln_diag diag = KILN_DIAG_INIT;
    size_t jobs = 1;
    warm_result result = {
        .targets = work->names, .target_count = work->targets.count, .pack = work->options->pack};
    uint64_t begin = host_now();
    work->deadline_ns = work->options->time.given ? begin + work->options->time.value : 0;
    kiln_status status = parallel_choose(&work->options->jobs, &jobs, &diag);
    if (status == KILN_OK && result.pack != NULL) {
        status = warm_pack_create(result.pack, work->cache, work->context->pool, work->mutex,
                                  &work->pack, &diag);
    }
    if (status == KILN_OK) {
        parallel_each(work->list.count, jobs, warm_one, work);
        if (work->pack != NULL && work->code != EXIT_FINE) {
            console_say(work->context->console, "no pack is written: a kernel failed");
            result.pack = NULL;
        } else if (work->pack != NULL) {
            console_progress(work->context->console, work->done, work->done, "writing the pack", 0);
            result.info.struct_size = sizeof(result.info);
            status = warm_pack_write(work->pack, &result.info, &diag);
        }
        console_progress_end(work->context->console);
    }
    warm_pack_destroy(work->pack);
    if (work->recorded.recording == NULL) {
        warm_list_settle(&work->list);
    }
    result.items = work->list.items;
    result.count = work->list.count;
    result.total_ns = host_now() - begin;
    if (status != KILN_OK) {
        return cmd_fail(work->context, &diag);
    }
    const exit_code code = print_result(work, &result);
    const size_t skipped = warm_count(&result, WARM_SKIPPED);
    if (code == EXIT_FINE && skipped > 0 && skipped == result.count) {
        console_say(work->context->console,
                    "warm: nothing is in the cache: all of it was skipped (name other targets "
                    "with --target, or run where their devices are)");
        return EXIT_UNAVAILABLE;
    }
    return code;
}

/* The recording that is named, or with --stale the cache's own; NULL: there are manifests. */
static kiln_status find_recording(const warm_work *work, const opt_list *arguments,
                                  const char **out_path, kiln_diag *diag)
{
    const bool stale = work->options->stale;
    *out_path = NULL;
    if (arguments->count == 0 && !stale) {
        return kiln_diag_set(diag, KILN_E_INVALID, "name manifests, or a recording", "arguments",
                             "there is nothing to compile");
    }
    if (arguments->count == 0) {
        *out_path = pool_format(work->context->pool, "%s/recording", kiln_cache_root(work->cache));
        if (*out_path == NULL) {
            return diag_no_memory(diag, "warm");
        }
        return kiln_recording_is(*out_path)
                   ? KILN_OK
                   : kiln_diag_set(diag, KILN_E_INVALID,
                                   "set KILN_KEEP_SOURCES=1 where programs run", *out_path,
                                   "the cache has kept no sources yet");
    }
    if (arguments->count == 1 && kiln_recording_is(arguments->items[0])) {
        *out_path = arguments->items[0];
    }
    return *out_path != NULL || !stale
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, "name none: the cache has its own", "--stale",
                               "%s is not a recording", arguments->items[0]);
}

static kiln_status read_recording(warm_work *work, const char *path, kiln_diag *diag)
{
    const warm_options *options = work->options;
    cli_pool *pool = work->context->pool;
    work->recorded.within_ns = options->within.given ? options->within.value : 0;
    work->recorded.stale = options->stale;
    kiln_status status = warm_recorded_open(path, work->context->console, &work->recorded, diag);
    if (status != KILN_OK) {
        return status;
    }
    return options->targets.count == 0
               ? warm_recorded_targets(&work->recorded, pool, &work->targets, diag)
               : targets_read(&options->targets, pool, &work->targets, diag);
}

static kiln_status read_arguments(warm_work *work, const opt_list *arguments, kiln_diag *diag)
{
    const warm_options *options = work->options;
    const char *path = NULL;
    kiln_status status = find_recording(work, arguments, &path, diag);
    if (status == KILN_OK) {
        status = path != NULL
                     ? read_recording(work, path, diag)
                     : targets_read(&options->targets, work->context->pool, &work->targets, diag);
    }
    if (status == KILN_OK && options->shard != NULL) {
        status = warm_shard_read(options->shard, &work->shard, diag);
    }
    return status == KILN_OK && path == NULL ? read_manifests(work, arguments, diag) : status;
}

static exit_code run_warm(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const warm_options *options = fields;
    warm_work work = {.context = context, .options = options, .code = EXIT_FINE};
    kiln_diag diag = KILN_DIAG_INIT;
    work.mutex = host_mutex_create();
    if (work.mutex == NULL) {
        return cmd_no_memory(context);
    }
    session_options session = options->session;
    session.no_record = arguments->count == 0 || kiln_recording_is(arguments->items[0]);
    /* Without a disk there is nothing that could be warmed, nor packed. */
    exit_code code = session_open_disk(context, &session, &work.cache);
    if (code == EXIT_FINE) {
        kiln_status status = read_arguments(&work, arguments, &diag);
        if (status == KILN_OK) {
            status = open_targets(&work, &diag);
        }
        code = status == KILN_OK ? compile_all(&work) : cmd_fail(context, &diag);
    }
    targets_close(&work.targets);
    warm_recorded_close(&work.recorded);
    kiln_cache_destroy(work.cache);
    host_mutex_destroy(work.mutex);
    return code;
}

const cli_command cmd_warm = {
    .name = "warm",
    .usage = "MANIFEST...|RECORDING",
    .summary = "Compiles manifests' kernels, or a recording, for named targets, ahead of time",
    .details =
        "Fills the cache, and with --pack a pack, when an app or an image is built. SPIR-V\n"
        "(vulkan:spirv), CUBIN (cuda:sm_90) and CPU code (cpu:x86-64-v3) need no GPU; what does\n"
        "need a device that is not here is reported and skipped. A second run compiles nothing.\n"
        "With --used the kernels that programs built most often on this machine are made first, "
        "and\n"
        "with --max only so many. Of a kernel with variants the variant that kiln tune chose for "
        "a\n"
        "target's device is made, too; with --variants all are, in the languages that a target\n"
        "takes. With --shard I/N each of N machines makes its part, and kiln pack merge, or a\n"
        "remote, brings the parts together. KILN_COMPILE_JOBS is the default of --jobs.\n\n"
        "A recording is a directory that kiln filled: each program that went through kiln "
        "is\n"
        "compiled again, under the key that its own call has, in order of first use; without\n"
        "--target for the targets that were recorded. With --stale it is the recording that the "
        "cache\n"
        "keeps by itself, what was used most first: after a driver or compiler has changed.",
    .options = specs,
    .options_size = sizeof(warm_options),
    .min_arguments = 0,
    .max_arguments = 10000,
    .run = run_warm,
};
