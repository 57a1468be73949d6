/* This file must not know how a program is built: only how its binary is read and stored. */
#include "apis/opencl/dropin/kept.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/admin.h"
#include "kiln/unstable/probe.h"

#include "apis/opencl/backend/status.h"
#include "apis/opencl/dropin/assemble.h"
#include "apis/opencl/dropin/budget.h"
#include "apis/opencl/dropin/make.h"
#include "base/checked.h"
#include "base/log.h"
#include "store/cache/cache.h"
#include "sys/clock.h"

#define RELEASED_MAX 256 /* programs that nobody else holds and that wait for the end */

typedef struct kept_program {
    struct kept_program *next;
    kn_opencl_site site; /* its api is the list's */
    cl_program program;  /* retained */
    kiln_recipe *recipe;
    kiln_key key;
    kn_opencl_wish *wish; /* retained */
    uint64_t compile_ns;
    bool takes_linker;
    bool unread;   /* the cache has nothing of it */
    bool busy;     /* a capture works on it */
    bool one_call; /* built with the default cache, which goes before anything is launched */
    uint64_t cost; /* when the cache goes: what reading it is expected to take */
} kept_program;

/* A build that its owner does not wait for. */
typedef struct kept_job {
    struct kept_job *next;
    kiln_cache *cache;
    kn_opencl_wish *wish; /* retained */
    kiln_opencl_notify_fn *notify;
    void *user;
    kn_thread *thread;
    atomic_bool ended;
} kept_job;

typedef struct kept_list {
    kn_cache_companion companion; /* first */
    kn_mutex mutex;               /* programs and their flags, jobs */
    kept_job *jobs;
    kn_mutex reading; /* one capture at a time */
    kn_dylib *lib;
    kn_opencl_api api;
    kept_program *programs;
    kn_opencl_assembler *assembler; /* NULL until something is to be assembled */
} kept_list;

bool kn_opencl_reads_later(const kn_opencl_request *request)
{
    return request->unit.is_pocl;
}

static void destroy_program(kept_list *list, kept_program *kept)
{
    if (kept->program != NULL) {
        (void)list->api.clReleaseProgram(kept->program);
    }
    kiln_recipe_destroy(kept->recipe);
    kn_opencl_wish_release(kept->wish);
    free(kept);
}

/* --- storing ---------------------------------------------------------------------------------- */

/* Reads what PoCL has of the program now. Slow: PoCL may compile all kernels. */
static kiln_status read_kept(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    const kept_program *kept = (const kept_program *)user;
    kiln_status status = kn_pocl_check_linker(kept->takes_linker, diag);
    if (status == KILN_OK) {
        status = kn_opencl_make_bytes(&kept->site, kept->wish, true, kept->program, out_blob, diag);
    }
    if (status == KILN_MISS) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "capturing an OpenCL program",
                               "PoCL gives no binary");
    }
    return status;
}

static void mark_stored(kept_list *list, const kiln_key *key)
{
    kn_mutex_lock(&list->mutex);
    for (kept_program *kept = list->programs; kept != NULL; kept = kept->next) {
        if (memcmp(&kept->key, key, sizeof(*key)) == 0) {
            kept->unread = false;
        }
    }
    kn_mutex_unlock(&list->mutex);
}

static void join_job(kept_job *job)
{
    kn_thread_join(job->thread);
    kn_opencl_wish_release(job->wish);
    free(job);
}

/* The unread program that costs least: each that is stored is one less to compile at the next
 * start. NULL if there is none. */
static kept_program *find_cheapest(const kept_list *list)
{
    kept_program *cheapest = NULL;
    for (kept_program *kept = list->programs; kept != NULL; kept = kept->next) {
        if (kept->unread && kept->cost > 0 && (cheapest == NULL || kept->cost < cheapest->cost)) {
            cheapest = kept;
        }
    }
    return cheapest;
}

/* 0 for what is not to be read: it was not launched, as far as that is known. Which files PoCL
 * loads is known of those that link them; with the default cache nothing can have been launched
 * yet. */
static uint64_t expect_cost(const kept_list *list, const kept_program *kept, bool all)
{
    const uint64_t cost =
        kept->one_call ? 0 : kn_opencl_budget_cost(&list->api, kept->program, kept->takes_linker);
    return cost == 0 && all ? kn_opencl_budget_guess(&list->api, kept->program) : cost;
}

static void log_left_out(const kept_list *list)
{
    size_t count = 0;
    for (const kept_program *kept = list->programs; kept != NULL; kept = kept->next) {
        count += kept->unread;
    }
    if (count > 0) {
        kn_log(
            KILN_LOG_INFO,
            "OpenCL programs not stored: %zu. PoCL would compile all their kernels first (run it "
            "once with KILN_CAPTURE=1, or call kiln_opencl_capture_program)",
            count);
    }
}

/* PoCL compiles for a read what nobody may want: so what reading may take is bounded, unless the
 * user has asked for it. */
static void read_unread(kept_list *list, kiln_cache *cache)
{
    const bool all = kn_opencl_budget_is_lifted();
    for (kept_program *kept = list->programs; kept != NULL; kept = kept->next) {
        kept->cost = kept->unread ? expect_cost(list, kept, all) : 0;
    }
    kept_program *kept = find_cheapest(list);
    while (kept != NULL && (all || kn_opencl_budget_allows(kept->cost, kn_opencl_budget_now()))) {
        const kn_request request = {
            .cache = cache, .recipe = kept->recipe, .name = "an OpenCL program"};
        mark_stored(list, &kept->key); /* one that fails is not tried again */
        kn_ignore(
            kn_opencl_budget_publish(&request, kept->compile_ns, read_kept, kept, kept->cost));
        kept = find_cheapest(list);
    }
    log_left_out(list);
}

static void destroy_list(kept_list *list)
{
    kn_dylib_retire(list->lib);
    kn_mutex_deinit(&list->reading);
    kn_mutex_deinit(&list->mutex);
    free(list);
}

/* The cache goes, and nobody begins to build or capture any more. */
static void end_list(kn_cache_companion *companion, kiln_cache *cache)
{
    kept_list *list = (kept_list *)(void *)companion;
    while (list->jobs != NULL) {
        kept_job *job = list->jobs;
        list->jobs = job->next;
        join_job(job);
    }
    if (kn_cache_outlasts(cache)) { /* what nobody finds again is not read */
        read_unread(list, cache);
    }
    kn_opencl_assembler_destroy(list->assembler);
    while (list->programs != NULL) {
        kept_program *kept = list->programs;
        list->programs = kept->next;
        destroy_program(list, kept);
    }
    destroy_list(list);
}

/* --- the list --------------------------------------------------------------------------------- */

static kept_list *find_list(kiln_cache *cache)
{
    return (kept_list *)(void *)kn_cache_companion_of(cache, KN_COMPANION_KEPT);
}

static kept_list *create_list(kiln_cache *cache)
{
    char path[512];
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kept_list *list = calloc(1, sizeof(*list));
    if (list == NULL || kn_opencl_library_open(&list->lib, &list->api, path, sizeof(path), &outcome,
                                               NULL) != KILN_OK) {
        free(list);
        return NULL;
    }
    kn_mutex_init(&list->mutex);
    kn_mutex_init(&list->reading);
    list->companion.end = end_list;
    kept_list *there =
        (kept_list *)(void *)kn_cache_companion_set(cache, KN_COMPANION_KEPT, &list->companion);
    if (there != list) {
        destroy_list(list);
    }
    return there;
}

/* NULL: no memory, or no library. */
static kept_list *use_list(kiln_cache *cache)
{
    kept_list *list = find_list(cache);
    return list != NULL ? list : create_list(cache);
}

/* With the mutex held: of the programs that nobody else holds, drops those that the cache has, and
 * the oldest where there are too many. */
static void drop_released(kept_list *list)
{
    kept_program **at = &list->programs;
    size_t released = 0;
    while (*at != NULL) {
        kept_program *kept = *at;
        cl_uint references = 0;
        const bool known =
            list->api.clGetProgramInfo(kept->program, CL_PROGRAM_REFERENCE_COUNT,
                                       sizeof(references), &references, NULL) == CL_SUCCESS;
        released += known && references == 1;
        if (known && references == 1 && !kept->busy && (!kept->unread || released > RELEASED_MAX)) {
            *at = kept->next;
            destroy_program(list, kept);
        } else {
            at = &kept->next;
        }
    }
}

static kept_program *create_kept_program(kept_list *list, kn_opencl_request *request,
                                         cl_program program)
{
    kept_program *kept = calloc(1, sizeof(*kept));
    if (kept == NULL) {
        return NULL;
    }
    kept->site = (kn_opencl_site){&list->api, request->site.context, request->site.device};
    kept->wish = kn_opencl_wish_retain(request->wish);
    if (list->api.clRetainProgram(program) != CL_SUCCESS) {
        destroy_program(list, kept);
        return NULL;
    }
    kept->takes_linker = request->unit.takes_linker;
    kept->program = program;
    kept->recipe = request->recipe;
    request->recipe = NULL;
    kept->key = kiln_recipe_key(kept->recipe);
    return kept;
}

void kn_opencl_kept_add(kn_opencl_request *request, cl_program program, bool unread,
                        uint64_t compile_ns)
{
    kept_list *list = use_list(request->cache);
    kept_program *kept = list != NULL ? create_kept_program(list, request, program) : NULL;
    if (kept == NULL) {
        return;
    }
    kept->unread = unread;
    kept->one_call = request->own_cache != NULL;
    kept->compile_ns = compile_ns;
    kn_opencl_budget_earn(compile_ns, kn_clock_now());
    kn_mutex_lock(&list->mutex);
    drop_released(list);
    kept->next = list->programs;
    list->programs = kept;
    kn_mutex_unlock(&list->mutex);
}

bool kn_opencl_kept_waits(kiln_cache *cache, const kiln_key *key)
{
    kept_list *list = find_list(cache);
    bool waits = false;
    if (list != NULL) {
        kn_mutex_lock(&list->mutex);
        for (const kept_program *kept = list->programs; kept != NULL; kept = kept->next) {
            waits = waits || (kept->unread && memcmp(&kept->key, key, sizeof(*key)) == 0);
        }
        kn_mutex_unlock(&list->mutex);
    }
    return waits;
}

void kn_opencl_kept_stored(kiln_cache *cache, const kiln_key *key)
{
    kept_list *list = find_list(cache);
    if (list != NULL) {
        mark_stored(list, key);
    }
}

bool kn_opencl_kept_assemble(kn_opencl_request *request, kiln_blob *blob, bool hit)
{
    /* A cache that goes with this call would hold it up. */
    if (request->own_cache != NULL || !kn_opencl_assemble_wanted(request, blob)) {
        return false;
    }
    kept_list *list = use_list(request->cache);
    if (list == NULL) {
        return false;
    }
    kn_mutex_lock(&list->mutex);
    if (list->assembler == NULL) {
        (void)kn_opencl_assembler_create(request->cache, &list->assembler, NULL);
    }
    if (list->assembler != NULL) {
        kn_opencl_assembler_add(list->assembler, request, blob,
                                hit ? kiln_blob_compile_ns(blob) : 0);
    }
    const bool assembles = list->assembler != NULL;
    kn_mutex_unlock(&list->mutex);
    return assembles;
}

void kn_opencl_kept_finish(kiln_cache *cache)
{
    kept_list *list = find_list(cache);
    kn_opencl_assembler *assembler = NULL;
    if (list != NULL) {
        kn_mutex_lock(&list->mutex);
        assembler = list->assembler; /* stays as long as the list */
        kn_mutex_unlock(&list->mutex);
    }
    kn_opencl_assembler_finish(assembler);
}

/* --- capture ---------------------------------------------------------------------------------- */

/* The program's record, which stays until it is left; NULL if it is not kept. */
static kept_program *enter_program(kept_list *list, cl_program program)
{
    kn_mutex_lock(&list->mutex);
    kept_program *kept = list->programs;
    while (kept != NULL && kept->program != program) {
        kept = kept->next;
    }
    if (kept != NULL) {
        kept->busy = true;
    }
    kn_mutex_unlock(&list->mutex);
    return kept;
}

kiln_status kn_opencl_kept_capture(kiln_cache *cache, cl_program program, kiln_diag *diag)
{
    kept_list *list = find_list(cache);
    kiln_status status = KILN_MISS;
    if (list == NULL || !kn_cache_stores(cache)) {
        return status;
    }
    kn_mutex_lock(&list->reading);
    kept_program *kept = enter_program(list, program);
    if (kept != NULL && kept->unread) {
        kiln_blob *blob = NULL;
        status = read_kept(kept, &blob, diag);
        if (status == KILN_OK) {
            status = kiln_cache_put(cache, kept->recipe, blob, kept->compile_ns, diag);
        }
        if (status == KILN_OK) {
            mark_stored(list, &kept->key);
        }
        kiln_blob_release(blob);
    } else if (kept != NULL) {
        status = kn_opencl_capture_wish(cache, kept->wish, diag);
    }
    if (kept != NULL) {
        kn_mutex_lock(&list->mutex);
        kept->busy = false;
        kn_mutex_unlock(&list->mutex);
    }
    kn_mutex_unlock(&list->reading);
    return status;
}

/* --- builds that nobody waits for ------------------------------------------------------------- */

static void build_in_background(void *user)
{
    kept_job *job = (kept_job *)user;
    kiln_diag diag = KILN_DIAG_INIT;
    struct _cl_program *program = NULL;
    kiln_status status = kn_opencl_build_wish(job->cache, job->wish, &program, &diag);
    job->notify(job->user, status, program, &diag);
    kiln_diag_clear(&diag);
    atomic_store(&job->ended, true);
}

/* With the mutex held: takes the finished jobs off the list. */
static kept_job *take_ended(kept_list *list)
{
    kept_job *ended = NULL;
    kept_job **at = &list->jobs;
    while (*at != NULL) {
        kept_job *job = *at;
        if (atomic_load(&job->ended)) {
            *at = job->next;
            job->next = ended;
            ended = job;
        } else {
            at = &job->next;
        }
    }
    return ended;
}

kiln_status kn_opencl_kept_start(kiln_cache *cache, kn_opencl_wish *wish,
                                 kiln_opencl_notify_fn *notify, void *user, kiln_diag *diag)
{
    static const char what[] = "building an OpenCL program in the background";
    if (cache == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "open a cache and pass it", what,
                             "the default cache cannot wait for it");
    }
    kept_list *list = use_list(cache);
    kept_job *job = list != NULL ? calloc(1, sizeof(*job)) : NULL;
    if (job == NULL) {
        return kiln_diag_set(diag, list != NULL ? KILN_E_NOMEM : KILN_E_UNAVAILABLE, NULL, what,
                             NULL);
    }
    *job = (kept_job){.cache = cache, .notify = notify, .user = user};
    job->wish = kn_opencl_wish_retain(wish);
    atomic_init(&job->ended, false);
    kn_mutex_lock(&list->mutex);
    kept_job *ended = take_ended(list);
    kiln_status status = kn_thread_start(build_in_background, job, &job->thread, diag);
    if (status == KILN_OK) {
        job->next = list->jobs;
        list->jobs = job;
    }
    kn_mutex_unlock(&list->mutex);
    if (status != KILN_OK) {
        kn_opencl_wish_release(job->wish);
        free(job);
    }
    while (ended != NULL) {
        kept_job *next = ended->next;
        join_job(ended);
        ended = next;
    }
    return status;
}
