/* The public cache: making and ending one, get, put, remove, statistics. get_or_compile is in
 * get_or_compile.c. */
#include "store/cache/cache.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/binding.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "key/recipe.h"
#include "sized/sized.h"
#include "store/format/blob.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/paths.h"

#define MS UINT64_C(1000000)
#define FLUSH_PATIENCE (20 * MS)

static void *retain_blob(void *blob)
{
    return kiln_blob_retain(blob);
}

static void release_blob(void *blob)
{
    kiln_blob_release(blob);
}

bool kn_cache_stores(const kiln_cache *cache)
{
    return (cache->options.flags & KILN_CACHE_READONLY) == 0;
}

bool kn_cache_writes(const kiln_cache *cache)
{
    return cache->disk != NULL && !cache->disk->read_only;
}

bool kn_cache_outlasts(const kiln_cache *cache)
{
    return kn_cache_writes(cache) || (cache->remotes != NULL && kn_cache_stores(cache));
}

bool kn_cache_root_stands(const kiln_cache *cache)
{
    return kn_cache_writes(cache) && kn_disk_root_stands(cache->disk);
}

/* --- create ----------------------------------------------------------------------------------- */

/* Zero means the default in every number, so that a caller can fill in only what matters. */
static kiln_status take_cache_options(const kiln_cache_options *given, kiln_cache_options *out,
                                      kiln_diag *diag)
{
    kiln_cache_options defaults;
    kiln_cache_options room;
    if (given == NULL) {
        return kiln_cache_options_init(out, diag);
    }
    given = kn_sized_view(KN_SIZED(kiln_cache_options), given, &room, diag);
    if (given == NULL) {
        return KILN_E_INVALID;
    }
    if (given->root != NULL && !kn_path_is_absolute(given->root)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give an absolute path", "opening a cache",
                             "options.root \"%s\" is a relative path", given->root);
    }
    if (given->record != NULL && !kn_path_is_absolute(given->record)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give an absolute path", "opening a cache",
                             "options.record \"%s\" is a relative path", given->record);
    }
    if (!kn_cache_namespace_valid(given->name_space)) {
        return kiln_diag_set(diag, KILN_E_INVALID, KN_NAMESPACE_RULE, "opening a cache",
                             "options.name_space \"%.80s\" cannot name a namespace",
                             given->name_space);
    }
    *out = *given;
    kn_cache_defaults(&defaults);
    out->disk_max_bytes = out->disk_max_bytes != 0 ? out->disk_max_bytes : defaults.disk_max_bytes;
    out->disk_max_files = out->disk_max_files != 0 ? out->disk_max_files : defaults.disk_max_files;
    out->memory_max_bytes =
        out->memory_max_bytes != 0 ? out->memory_max_bytes : defaults.memory_max_bytes;
    out->memory_max_count =
        out->memory_max_count != 0 ? out->memory_max_count : defaults.memory_max_count;
    out->wait_ms = out->wait_ms != 0 ? out->wait_ms : defaults.wait_ms;
    out->record_max_bytes =
        out->record_max_bytes != 0 ? out->record_max_bytes : defaults.record_max_bytes;
    return KILN_OK;
}

static int64_t age_ns(uint64_t seconds)
{
    const uint64_t most = INT64_MAX / 1000000000;
    return (int64_t)(seconds < most ? seconds : most) * 1000000000;
}

static bool is_pinned(void *memory, const kiln_key *key)
{
    return kn_mem_is_pinned(memory, key);
}

static kiln_status open_disk(kiln_cache *cache, kiln_diag *diag)
{
    const bool read_only =
        (cache->options.flags & KILN_CACHE_READONLY) != 0 || cache->disk_reason[0] != '\0';
    const kn_disk_options options = {.root = cache->root,
                                     .max_bytes = cache->options.disk_max_bytes,
                                     .max_files = cache->options.disk_max_files,
                                     .min_free = cache->options.disk_min_free,
                                     .max_age_ns = age_ns(cache->options.disk_max_age_s),
                                     .read_only = read_only,
                                     .sync = !cache->options.no_fsync};
    kn_disk *disk = NULL;
    kiln_status status = kn_stats_attach(cache->stats, cache->root, diag);
    if (status == KILN_OK) {
        status = kn_disk_open(&options, cache->stats, &disk, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    disk->is_pinned = is_pinned;
    disk->pinned_user = cache->stack.memory;
    disk->progress = cache->progress;
    disk->progress_user = cache->progress_user;
    cache->disk = disk;
    return kn_stack_add(&cache->stack, kn_disk_tier(disk), diag);
}

static kiln_status open_packs(kiln_cache *cache, kiln_diag *diag)
{
    kn_packs *packs = NULL;
    kiln_status status = kn_packs_open(cache->pack_list, &packs, diag);
    if (status != KILN_OK || packs == NULL) {
        return status;
    }
    cache->packs = packs;
    return kn_stack_add(&cache->stack, (kn_tier){&kn_packs_ops, packs}, diag);
}

/* NULL: nothing is kept on disk. */
const char *kn_cache_disk_root(const kiln_cache *cache)
{
    return cache->disk != NULL ? cache->disk->root : NULL;
}

static kiln_status open_remotes(kiln_cache *cache, kiln_diag *diag)
{
    kiln_status status = kn_remotes_open(cache->remote_list, cache->stats,
                                         kn_cache_disk_root(cache), &cache->remotes, diag);
    size_t given = 0;
    while (status == KILN_OK && cache->remotes != NULL && given < cache->remotes->count) {
        /* The stack closes what it is given, even what it does not take. */
        status = kn_stack_add(&cache->stack, kn_remotes_tier(cache->remotes, given++), diag);
    }
    kn_remotes_given(cache->remotes, given, status == KILN_OK);
    return status;
}

static void count_memory_hits(const void *memory, uint64_t *out_hits, uint64_t *out_saved_ns)
{
    kn_mem_hits((const kn_mem *)memory, out_hits, out_saved_ns);
}

/* Everything that a child makes afresh: statistics, memory, disk, packs, remotes, flight. The root
 * is claimed. */
static kiln_status open_parts(kiln_cache *cache, kiln_diag *diag)
{
    memset(&cache->stack, 0, sizeof cache->stack);
    cache->disk = NULL;
    cache->packs = NULL;
    cache->remotes = NULL;
    cache->flight = NULL;
    atomic_store(&cache->stamped_at, kn_clock_now());
    atomic_store(&cache->loads, NULL);
    cache->loads_tried = false;
    kn_mutex_init(&cache->loads_mutex);
    cache->stats = calloc(1, sizeof *cache->stats);
    if (cache->stats == NULL) {
        return kn_no_memory(diag, "opening a cache");
    }
    kn_stats_init(cache->stats);
    cache->stack.stats = cache->stats;
    kiln_status status = kn_mem_create(cache->options.memory_max_bytes,
                                       cache->options.memory_max_count, &cache->stack.memory, diag);
    if (status != KILN_OK) {
        return status;
    }
    cache->stats->memory = cache->stack.memory;
    cache->stats->memory_hits = count_memory_hits;
    if (cache->root[0] != '\0') {
        status = open_disk(cache, diag);
    }
    if (status == KILN_OK) {
        status = open_packs(cache, diag);
    }
    if (status == KILN_OK) {
        status = open_remotes(cache, diag);
    }
    if (status == KILN_OK) {
        status = kn_flight_create(kn_cache_writes(cache) ? cache->stats->lock_path : NULL,
                                  retain_blob, release_blob, &cache->flight, diag);
    }
    return status;
}

/* Whatever there is of them: opening may have failed half-way. */
static void close_parts(kiln_cache *cache)
{
    kn_flight_destroy(cache->flight);
    kn_stack_deinit(&cache->stack);
    kn_remotes_destroy(cache->remotes);
    kn_loads_close(atomic_exchange(&cache->loads, NULL));
    cache->flight = NULL;
    cache->disk = NULL;
    cache->packs = NULL;
    cache->remotes = NULL;
    if (cache->stats != NULL) {
        kn_stats_deinit(cache->stats);
        free(cache->stats);
    }
    cache->stats = NULL;
}

/* A root that cannot be written to (a read-only mount) still answers, and is logged once. */
static void check_writable(kiln_cache *cache)
{
    kiln_diag reason = KILN_DIAG_INIT;
    if (!(cache->options.flags & KILN_CACHE_READONLY) &&
        kn_file_writable(cache->root, &reason) != KILN_OK) {
        (void)kiln_diag_format(&reason, cache->disk_reason, sizeof cache->disk_reason);
        kn_log_once(KILN_LOG_WARN, "the disk cache is read-only: %s", cache->disk_reason);
    }
    kiln_diag_clear(&reason);
}

/* The root, or why there is none: the one warning that says that nothing will be kept. */
static kiln_status choose_root(kiln_cache *cache, kiln_diag *diag)
{
    kiln_diag reason = KILN_DIAG_INIT;
    kiln_status status = KILN_OK;
    if (cache->options.flags & KILN_CACHE_DISABLED) {
        (void)kiln_diag_set(&reason, KILN_E_UNAVAILABLE, NULL, "the cache is turned off",
                            "KILN_NO_CACHE or KILN_CACHE_DISABLED is set");
    } else if (cache->options.flags & KILN_CACHE_NO_DISK) {
        (void)kiln_diag_set(&reason, KILN_E_UNAVAILABLE, NULL, "the cache is in memory only",
                            "KILN_CACHE_NO_DISK is set");
    } else {
        status = kn_cache_find_root(&cache->options, &cache->root, &reason);
        if (status == KILN_OK && strlen(cache->root) > KN_DISK_ROOT) {
            (void)kiln_diag_set(&reason, KILN_E_UNAVAILABLE, "choose a shorter path",
                                "the cache's path is too long", "it has more than %d bytes",
                                KN_DISK_ROOT);
            free(cache->root);
            cache->root = NULL;
        }
        if (cache->root != NULL) {
            check_writable(cache);
        }
        if (cache->root == NULL && status != KILN_E_NOMEM && status != KILN_E_INVALID) {
            kn_log_once(KILN_LOG_WARN, "continuing without a disk cache: %s: %s%s%s", reason.what,
                        reason.why, reason.fix[0] != '\0' ? "; " : "", reason.fix);
            status = KILN_OK;
        }
    }
    if (cache->root == NULL && status == KILN_OK) {
        (void)kiln_diag_format(&reason, cache->disk_reason, sizeof cache->disk_reason);
        cache->root = kn_text_copy("");
        status = cache->root != NULL ? KILN_OK : KILN_E_NOMEM;
    }
    if (status != KILN_OK) {
        kn_diag_move(diag, &reason);
        return status;
    }
    kiln_diag_clear(&reason);
    return status;
}

/* Where programs are recorded, if they are: the directory that was named, or the cache's own. */
static kiln_status choose_recording(kiln_cache *cache, const kiln_cache_options *taken,
                                    kiln_diag *diag)
{
    const bool own = taken->record == NULL && (taken->flags & KILN_CACHE_KEEP_SOURCES) != 0 &&
                     (taken->flags & KILN_CACHE_READONLY) == 0 && cache->root[0] != '\0' &&
                     cache->disk_reason[0] == '\0';
    if (taken->record != NULL) {
        cache->recording = kn_text_copy(taken->record);
    } else if (own) {
        cache->recording = kn_path_join(cache->root, "recording");
    }
    return (taken->record != NULL || own) && cache->recording == NULL
               ? kn_no_memory(diag, "opening a cache")
               : KILN_OK;
}

static kiln_status copy_lists(kiln_cache *cache, const kiln_cache_options *taken, kiln_diag *diag)
{
    cache->pack_list = taken->packs != NULL ? kn_text_copy(taken->packs) : NULL;
    cache->remote_list = taken->remote != NULL ? kn_text_copy(taken->remote) : NULL;
    return (taken->packs != NULL && cache->pack_list == NULL) ||
                   (taken->remote != NULL && cache->remote_list == NULL)
               ? kn_no_memory(diag, "opening a cache")
               : KILN_OK;
}

kiln_status kiln_cache_create(const kiln_cache_options *options, kiln_cache **out_cache,
                              kiln_diag *diag)
{
    *out_cache = NULL;
    kiln_cache_options taken;
    kiln_status status = take_cache_options(options, &taken, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) {
        return kn_no_memory(diag, "opening a cache");
    }
    cache->options = taken;
    kn_fork_guard_init(&cache->guard);
    status = choose_root(cache, diag);
    cache->options.root = cache->root;
    cache->options.name_space = NULL; /* the root has it */
    if (status == KILN_OK && !(taken.flags & KILN_CACHE_DISABLED)) {
        status = copy_lists(cache, &taken, diag);
        if (status == KILN_OK) {
            status = choose_recording(cache, &taken, diag);
        }
    }
    cache->options.packs = cache->pack_list;
    cache->options.remote = cache->remote_list;
    cache->options.record = cache->recording;
    if (status == KILN_OK) {
        status = open_parts(cache, diag);
    }
    if (status != KILN_OK) {
        kiln_cache_destroy(cache);
        return status;
    }
    kn_cache_enlist(cache);
    *out_cache = cache;
    return KILN_OK;
}

void kn_cache_renew(kiln_cache *cache)
{
    if (!kn_fork_renew(&cache->guard)) {
        return;
    }
    /* The old parts are left where they are: their locks may be held by threads that exist only in
     * the parent. */
    for (size_t i = 0; i < KN_COMPANIONS; i++) {
        atomic_store(&cache->companions[i], NULL);
    }
    if (open_parts(cache, NULL) != KILN_OK) {
        kn_log(KILN_LOG_WARN,
               "no memory for the cache in a forked process: it is turned off there");
        cache->options.flags |= KILN_CACHE_DISABLED;
        close_parts(cache); /* a reader finds none, and not half of them */
    }
    kn_fork_renewed(&cache->guard);
}

kn_cache_companion *kn_cache_companion_of(kiln_cache *cache, kn_companion_kind kind)
{
    kn_cache_check_fork(cache);
    return atomic_load(&cache->companions[kind]);
}

kn_cache_companion *kn_cache_companion_set(kiln_cache *cache, kn_companion_kind kind,
                                           kn_cache_companion *companion)
{
    kn_cache_companion *there = NULL;
    return atomic_compare_exchange_strong(&cache->companions[kind], &there, companion) ? companion
                                                                                       : there;
}

static void end_companions(kiln_cache *cache)
{
    for (size_t i = 0; i < KN_COMPANIONS; i++) {
        kn_cache_companion *companion = kn_cache_companion_of(cache, (kn_companion_kind)i);
        if (companion != NULL) {
            companion->end(companion, cache);
        }
    }
}

void kiln_cache_destroy(kiln_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    if (cache->flight != NULL) {
        end_companions(cache);
    }
    kn_cache_delist(cache);
    if (cache->flight != NULL) { /* else it was never whole */
        kn_cache_check_fork(cache);
        kn_remotes_finish(cache->remotes);
        if (kn_cache_root_stands(cache)) {
            kn_cache_stamp(cache, true);
            (void)kn_stats_flush(cache->stats, KN_CACHE_PATIENCE, NULL, NULL);
        }
    }
    close_parts(cache);
    kn_fork_guard_deinit(&cache->guard);
    free(cache->pack_list);
    free(cache->remote_list);
    free(cache->recording);
    free(cache->root);
    free(cache);
}

void kiln_cache_flush(kiln_cache *cache)
{
    kn_cache_check_fork(cache);
    kn_remotes_flush(cache->remotes);
    if (kn_cache_root_stands(cache)) {
        (void)kn_stats_flush(cache->stats, KN_CACHE_PATIENCE, NULL, NULL);
    }
}

const char *kiln_cache_root(const kiln_cache *cache)
{
    return cache->root;
}

const char *kiln_cache_disk_reason(const kiln_cache *cache)
{
    return cache->disk_reason;
}

/* --- get, put, remove ------------------------------------------------------------------------- */

static kiln_status look_up_entry(kiln_cache *cache, const kiln_key *key, const char *target,
                                 bool note, kiln_blob **out_blob, kiln_origin *out_origin)
{
    kiln_origin origin = KILN_ORIGIN_NONE;
    *out_blob = NULL;
    kn_cache_check_fork(cache);
    kiln_status status = KILN_MISS;
    if (!(cache->options.flags & (KILN_CACHE_DISABLED | KILN_CACHE_RECACHE))) {
        status = note ? kn_stack_get_note(&cache->stack, key, target, false, out_blob, &origin)
                      : kn_stack_get(&cache->stack, key, target, out_blob, &origin);
    }
    if (status != KILN_OK) {
        kn_cache_count_miss(cache, key, kn_span_of(NULL, 0), note);
    } else if (origin != KILN_ORIGIN_MEMORY && kn_cache_writes(cache)) {
        kn_cache_flush_rarely(cache);
    }
    if (out_origin != NULL) {
        *out_origin = origin;
    }
    return status;
}

kiln_status kiln_cache_get(kiln_cache *cache, const kiln_key *key, kiln_blob **out_blob,
                           kiln_origin *out_origin, kiln_diag *diag)
{
    (void)diag; /* an error is a miss */
    return look_up_entry(cache, key, NULL, false, out_blob, out_origin);
}

kiln_status kn_cache_get_note(kiln_cache *cache, const kiln_key *key, const char *target,
                              kiln_blob **out_blob)
{
    return look_up_entry(cache, key, target, true, out_blob, NULL);
}

kiln_status kiln_cache_use(kiln_cache *cache, const kiln_key *key, kiln_blob_fn *use, void *user,
                           kiln_origin *out_origin, kiln_diag *diag)
{
    const uint32_t never = KILN_CACHE_DISABLED | KILN_CACHE_RECACHE;
    kn_cache_check_fork(cache);
    if (!(cache->options.flags & never) && kn_mem_visit(cache->stack.memory, key, use, user)) {
        if (out_origin != NULL) {
            *out_origin = KILN_ORIGIN_MEMORY;
        }
        return KILN_OK;
    }
    kiln_blob *blob = NULL;
    kiln_status status = kiln_cache_get(cache, key, &blob, out_origin, diag);
    if (status == KILN_OK) {
        use(user, blob);
        kiln_blob_release(blob);
    }
    return status;
}

static kiln_status put_blob(kiln_cache *cache, const kiln_recipe *recipe, kiln_blob *blob,
                            uint64_t compile_ns, bool below, kiln_diag *diag)
{
    kn_cache_check_fork(cache);
    const kiln_key key = kiln_recipe_key(recipe); /* the last that can break a recipe */
    const kiln_status broken = kiln_recipe_status(recipe, diag);
    if (broken != KILN_OK) {
        return broken;
    }
    if (blob == NULL || kiln_blob_size(blob) == 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "storing an entry", "it is empty");
    }
    uint64_t unknown = 0;
    (void)atomic_compare_exchange_strong(&blob->compile_ns, &unknown, compile_ns);
    if (cache->options.flags & KILN_CACHE_DISABLED) {
        return KILN_OK;
    }
    const kn_tier_put what = {.key = &key,
                              .target = kn_recipe_target(recipe),
                              .recipe = kn_recipe_span(recipe),
                              .blob = blob,
                              .below = below};
    kn_stack_put(&cache->stack, &what, kn_cache_stores(cache));
    kn_cache_flush(cache);
    return KILN_OK;
}

kiln_status kiln_cache_put(kiln_cache *cache, const kiln_recipe *recipe, kiln_blob *blob,
                           uint64_t compile_ns, kiln_diag *diag)
{
    return put_blob(cache, recipe, blob, compile_ns, false, diag);
}

kiln_status kn_cache_put_below(kiln_cache *cache, const kiln_recipe *recipe, kiln_blob *blob,
                               kiln_diag *diag)
{
    return put_blob(cache, recipe, blob, 0, true, diag);
}

kiln_status kiln_cache_remove(kiln_cache *cache, const kiln_key *key, kiln_diag *diag)
{
    kn_cache_check_fork(cache);
    return kn_stack_remove(&cache->stack, key, diag);
}

/* --- counting --------------------------------------------------------------------------------- */

void kn_cache_flush(kiln_cache *cache)
{
    /* Below a root that was exchanged for a stranger's nothing is written, statistics neither. */
    if (!kn_cache_writes(cache) || kn_disk_check_root(cache->disk, NULL) != KILN_OK) {
        return;
    }
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = kn_stats_flush(cache->stats, FLUSH_PATIENCE, NULL, &diag);
    if (status == KILN_E_IO) {
        kn_stats_add(cache->stats, KN_COUNT_io_errors, 1);
        kn_log_once(KILN_LOG_INFO, "the cache's statistics could not be written: %s", diag.why);
    }
    kiln_diag_clear(&diag);
    kn_cache_stamp(cache, false);
}

void kn_cache_count_rejected(kiln_cache *cache)
{
    kn_cache_check_fork(cache);
    kn_stats_add(cache->stats, KN_COUNT_rejected, 1);
}
