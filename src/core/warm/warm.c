/* Warming: a plan (keys, uses, order) made by the first task, then as many tasks as there are jobs,
 * each of which builds the next item and posts itself again. All on the runtime's thread pool. */
#include "kiln/unstable/warm.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "core/build/build.h"
#include "core/build/program.h"
#include "core/build/source_copy.h"
#include "sized/sized.h"

typedef struct item {
    kn_source_copy copy; /* of the source that counts; a zeroed one: none does */
    bool taken;
    size_t index; /* as it was given */
    kiln_key key; /* of its first stage */
    uint64_t uses;
    int64_t last_use_ns;
    kiln_program *program;
} item;

typedef struct job {
    kn_thread_pool_task task;
    kiln_warm *warm;
} job;

struct kiln_warm {
    kiln_device *device;
    kn_thread_pool *pool;
    kiln_warm_options options;
    item *items;
    job *jobs;
    uint32_t job_count;

    kn_mutex mutex;  /* what follows */
    kn_cond ended;   /* a job finished */
    size_t next;     /* item */
    uint32_t active; /* jobs that are posted or run */
    bool cancelled;
    kiln_warm_state state;
    kn_mutex telling; /* one call of `progress` at a time; taken before `mutex`, never inside */
};

/* --- one program ------------------------------------------------------------------------------ */

static void take_walk(void *user, const kn_build *build)
{
    *(bool *)user = build->info.compiles > 0;
}

static kiln_status build_item(kiln_warm *warm, item *it, bool *out_compiled, kiln_diag *diag)
{
    kn_build_extra extra = {.seen = take_walk, .user = out_compiled};
    kn_trace *trace = warm->device->runtime->trace;
    const uint64_t start = kn_trace_begin(trace);
    if (!it->taken) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "add a source in a language it takes",
                             "warming a program", "%s takes none of its sources",
                             warm->device->info.backend);
    }
    kiln_status status =
        kn_build_program(warm->device, &it->copy.source, NULL, &extra, &it->program, diag);
    kn_trace_end(trace, start, "warm",
                 &(kn_trace_about){.what = it->copy.source.name, .device = warm->device});
    if (warm->options.release) {
        kiln_program_release(it->program);
        it->program = NULL;
    }
    return status;
}

/* Counts what became of an item, and reports it. */
static void account_item(kiln_warm *warm, const item *it, kiln_status status, bool compiled,
                         const kiln_diag *diag)
{
    kn_mutex_lock(&warm->telling);
    kn_mutex_lock(&warm->mutex);
    kiln_warm_state *state = &warm->state;
    state->running -= status != KILN_E_CANCELLED;
    state->built += status == KILN_OK;
    state->compiled += status == KILN_OK && compiled;
    state->cancelled += status == KILN_E_CANCELLED;
    state->failed += status != KILN_OK && status != KILN_E_CANCELLED;
    const kiln_warm_state now = *state;
    kn_mutex_unlock(&warm->mutex);
    if (warm->options.progress != NULL) {
        warm->options.progress(warm->options.user, it->index, status, diag, &now);
    }
    kn_mutex_unlock(&warm->telling);
}

/* The next item to build; NULL: there is none, and what was called off is accounted for. */
static item *next_item(kiln_warm *warm, bool called_off)
{
    for (;;) {
        kiln_diag diag = KILN_DIAG_INIT;
        kn_mutex_lock(&warm->mutex);
        warm->cancelled = warm->cancelled || called_off;
        const bool cancelled = warm->cancelled;
        item *it = warm->next < warm->state.total ? &warm->items[warm->next++] : NULL;
        warm->state.running += it != NULL && !cancelled;
        kn_mutex_unlock(&warm->mutex);
        if (it == NULL || !cancelled) {
            return it;
        }
        (void)kiln_diag_set(&diag, KILN_E_CANCELLED, NULL, "warming a program", "it was cancelled");
        account_item(warm, it, KILN_E_CANCELLED, false, &diag);
        kiln_diag_clear(&diag);
    }
}

static void run_job(void *user, bool called_off)
{
    job *j = (job *)user;
    kiln_warm *warm = j->warm;
    kiln_diag diag = KILN_DIAG_INIT;
    bool compiled = false;
    item *it = next_item(warm, called_off);
    if (it == NULL) {
        kn_mutex_lock(&warm->mutex);
        warm->active--;
        kn_cond_broadcast(&warm->ended);
        kn_mutex_unlock(&warm->mutex); /* the job's last touch of the warming */
        return;
    }
    kiln_status status = build_item(warm, it, &compiled, &diag);
    if (status != KILN_OK) {
        kn_log_diag(KILN_LOG_INFO, "warming", &diag);
    }
    account_item(warm, it, status, compiled, &diag);
    kiln_diag_clear(&diag);
    kn_thread_pool_post(warm->pool, &j->task, false); /* after what was posted meanwhile */
}

/* --- the order -------------------------------------------------------------------------------- */

static void find_key(const kiln_warm *warm, item *it)
{
    const kiln_device *device = warm->device;
    kn_build build;
    if (!it->taken) {
        return;
    }
    kiln_status status =
        kn_build_init(&build, device->runtime->cache, device->driver, &device->target,
                      device->handle, &it->copy.source, NULL, NULL);
    if (status == KILN_OK && build.stage_count > 0 && kn_stage_key(&build, 0, NULL) == KILN_OK &&
        build.runs[0].bypass[0] == '\0') {
        it->key = build.runs[0].key;
        kiln_cache_uses(device->runtime->cache, &it->key, 1, &it->uses, &it->last_use_ns);
    }
    kn_build_deinit(&build);
}

/* Used most, then used last, then as given. */
static int compare_items(const void *left, const void *right)
{
    const item *a = (const item *)left;
    const item *b = (const item *)right;
    if (a->uses != b->uses) {
        return a->uses > b->uses ? -1 : 1;
    }
    if (a->last_use_ns != b->last_use_ns) {
        return a->last_use_ns > b->last_use_ns ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

/* The first job's first run: nobody else looks at the items yet. */
static void plan_items(void *user, bool called_off)
{
    job *j = (job *)user;
    kiln_warm *warm = j->warm;
    kn_trace *trace = warm->device->runtime->trace;
    const uint64_t start = kn_trace_begin(trace);
    if (!called_off && !warm->options.in_order) {
        for (size_t i = 0; i < warm->state.total; i++) {
            find_key(warm, &warm->items[i]);
        }
        qsort(warm->items, warm->state.total, sizeof(item), compare_items);
        kn_trace_end(trace, start, "order by use", &(kn_trace_about){.device = warm->device});
    }
    kn_mutex_lock(&warm->mutex);
    warm->active = warm->job_count;
    kn_mutex_unlock(&warm->mutex);
    for (uint32_t i = 0; i < warm->job_count; i++) {
        warm->jobs[i].task.run = run_job;
    }
    for (uint32_t i = warm->job_count; i > 1; i--) {
        kn_thread_pool_post(warm->pool, &warm->jobs[i - 1].task, false);
    }
    run_job(&warm->jobs[0], called_off); /* the warming may be gone when this returns */
}

/* --- outside ---------------------------------------------------------------------------------- */

static void destroy_warm(kiln_warm *warm)
{
    for (size_t i = 0; warm->items != NULL && i < warm->state.total; i++) {
        kiln_program_release(warm->items[i].program);
        kn_source_copy_deinit(&warm->items[i].copy);
    }
    kn_mutex_deinit(&warm->telling);
    kn_cond_deinit(&warm->ended);
    kn_mutex_deinit(&warm->mutex);
    free(warm->items);
    free(warm->jobs);
    free(warm);
}

/* Copies the source that counts. */
static kiln_status take_item(kiln_device *device, const kiln_warm_item *given, item *it,
                             kiln_diag *diag)
{
    const void *list = NULL;
    void *copy = NULL;
    kiln_status status = kn_sized_list(KN_SIZED(kiln_source), given->sources, given->source_count,
                                       &list, &copy, diag);
    if (status == KILN_OK) {
        const kiln_source *source =
            kn_source_taken(device, (const kiln_source *)list, given->source_count);
        it->taken = source != NULL;
        if (it->taken && !kn_source_copy_init(&it->copy, source, true)) {
            status = kn_no_memory(diag, "warming programs");
        }
    }
    free(copy);
    return status;
}

static kiln_status take_items(kiln_warm *warm, const kiln_warm_item *items, size_t count,
                              kiln_diag *diag)
{
    warm->items = (item *)calloc(count + 1, sizeof(item));
    warm->jobs = (job *)calloc(warm->job_count, sizeof(job));
    if (warm->items == NULL || warm->jobs == NULL) {
        return kn_no_memory(diag, "warming programs");
    }
    for (uint32_t i = 0; i < warm->job_count; i++) {
        warm->jobs[i] = (job){.task = {.user = &warm->jobs[i]}, .warm = warm};
    }
    for (size_t i = 0; i < count; i++) {
        item *it = &warm->items[i];
        warm->state.total++;
        it->index = i;
        kiln_status status = take_item(warm->device, &items[i], it, diag);
        if (status != KILN_OK) {
            return status;
        }
    }
    return KILN_OK;
}

kiln_status kiln_warm_start(kiln_device *device, const kiln_warm_item *items, size_t count,
                            const kiln_warm_options *options, kiln_warm **out_warm, kiln_diag *diag)
{
    static const kiln_warm_options none = {.struct_size = sizeof(kiln_warm_options)};
    kiln_warm_options room;
    void *handle = NULL;
    *out_warm = NULL;
    options =
        kn_sized_view(KN_SIZED(kiln_warm_options), options != NULL ? options : &none, &room, diag);
    kiln_status status = options != NULL ? kn_device_handle(device, &handle, diag) : KILN_E_INVALID;
    if (status != KILN_OK) {
        return status;
    }
    kn_thread_pool *pool = kn_runtime_thread_pool(device->runtime, diag);
    if (pool == NULL) {
        return diag != NULL && diag->status != KILN_OK ? diag->status : KILN_E_NOMEM;
    }
    kiln_warm *warm = (kiln_warm *)calloc(1, sizeof(*warm));
    if (warm == NULL) {
        return kn_no_memory(diag, "warming programs");
    }
    const uint32_t most = kn_thread_pool_jobs(pool);
    kn_mutex_init(&warm->mutex);
    kn_mutex_init(&warm->telling);
    kn_cond_init(&warm->ended);
    warm->device = device;
    warm->pool = pool;
    warm->options = *options;
    warm->job_count = options->jobs == 0 || options->jobs > most ? most : options->jobs;
    warm->state.struct_size = sizeof(warm->state);
    status = take_items(warm, items, count, diag);
    if (status != KILN_OK) {
        destroy_warm(warm);
        return status;
    }
    *out_warm = warm;
    warm->active = 1;
    warm->jobs[0].task.run = plan_items;
    kn_thread_pool_post(pool, &warm->jobs[0].task, false);
    return KILN_OK;
}

void kiln_warm_cancel(kiln_warm *warm)
{
    kn_mutex_lock(&warm->mutex);
    warm->cancelled = true;
    kn_mutex_unlock(&warm->mutex);
}

void kiln_warm_wait(kiln_warm *warm)
{
    kn_mutex_lock(&warm->mutex);
    while (warm->active > 0) {
        kn_cond_wait(&warm->ended, &warm->mutex);
    }
    kn_mutex_unlock(&warm->mutex);
}

kiln_status kiln_warm_get_state(kiln_warm *warm, kiln_warm_state *out_state, kiln_diag *diag)
{
    kn_mutex_lock(&warm->mutex);
    const kiln_warm_state state = warm->state;
    kn_mutex_unlock(&warm->mutex);
    return kn_sized_give(KN_SIZED(kiln_warm_state), &state, out_state, diag);
}

void kiln_warm_destroy(kiln_warm *warm)
{
    if (warm != NULL) {
        kiln_warm_cancel(warm);
        kiln_warm_wait(warm);
        destroy_warm(warm);
    }
}
