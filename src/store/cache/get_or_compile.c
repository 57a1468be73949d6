/* kiln_cache_get_or_compile and kn_cache_get_or_make: a hit, or one compile however many ask. Must
 * not know what a compile does. */
#include "store/cache/cache.h"

#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "key/recipe.h"
#include "store/format/blob.h"
#include "sys/clock.h"

#define MS UINT64_C(1000000)

/* One request on its way. */
typedef struct request {
    kiln_cache *cache;
    const kiln_recipe *recipe;
    kiln_key key;
    const kn_cache_maker *maker;
    uint64_t deadline;
    bool alone;      /* this host's lock of the key is held */
    kiln_blob *blob; /* the answer */
    kiln_origin origin;
} request;

static bool has(const request *r, uint32_t flags)
{
    return (r->cache->options.flags & flags) != 0;
}

static bool look_up(void *user)
{
    request *r = user;
    if (kn_recipe_is_note(kn_recipe_span(r->recipe))) {
        return kn_stack_get_note(&r->cache->stack, &r->key, kn_recipe_target(r->recipe), false,
                                 &r->blob, &r->origin) == KILN_OK;
    }
    return kn_stack_get(&r->cache->stack, &r->key, kn_recipe_target(r->recipe), &r->blob,
                        &r->origin) == KILN_OK;
}

/* While another process of this host is at it: its result comes to the disk, and many who wait must
 * not all ask a server. */
static bool look_near(void *user)
{
    request *r = user;
    if (kn_recipe_is_note(kn_recipe_span(r->recipe))) {
        return look_up(r); /* never asks a remote */
    }
    return kn_stack_get_near(&r->cache->stack, &r->key, kn_recipe_target(r->recipe), &r->blob,
                             &r->origin) == KILN_OK;
}

/* Runs the caller's function. What it gives is an answer only if there are bytes in it. */
static kiln_status run_compile(request *r, kiln_diag *diag)
{
    uint64_t start = kn_clock_now();
    kiln_status status = r->maker->compile(r->maker->user, &r->blob, diag);
    uint64_t took = kn_clock_now() - start;
    kn_cache_check_fork(r->cache); /* the function may return twice, once in a child */
    kn_stats *stats = r->cache->stats;
    kn_stats_add(stats, KN_COUNT_compiles, 1);
    kn_stats_add(stats, KN_COUNT_compile_ns, took);
    if (status == KILN_OK && (r->blob == NULL || kiln_blob_size(r->blob) == 0)) {
        status = kiln_diag_set(diag, KILN_E_COMPILE, NULL, "compiling",
                               "the compiler reported success and gave no bytes");
    }
    if (status != KILN_OK) {
        kiln_blob_release(r->blob);
        r->blob = NULL;
        /* cancelled: the caller has what it wanted, and does not share it */
        kn_stats_add(stats, KN_COUNT_compile_failures, status != KILN_E_CANCELLED ? 1 : 0);
        return status;
    }
    uint64_t unknown = 0;
    (void)atomic_compare_exchange_strong(&r->blob->compile_ns, &unknown, took > 0 ? took : 1);
    r->origin = KILN_ORIGIN_COMPILED;
    return KILN_OK;
}

/* Compiles and stores. The store's troubles are its own. */
static kiln_status make(request *r, kiln_diag *diag)
{
    const kn_span recipe = kn_recipe_span(r->recipe);
    kn_cache_count_miss(r->cache, &r->key, recipe, kn_recipe_is_note(recipe));
    kiln_status status = run_compile(r, diag);
    if (has(r, KILN_CACHE_DISABLED)) {
        return status;
    }
    if (status == KILN_OK) {
        const kn_tier_put what = {.key = &r->key,
                                  .target = kn_recipe_target(r->recipe),
                                  .recipe = kn_recipe_span(r->recipe),
                                  .blob = r->blob};
        kn_stack_put(&r->cache->stack, &what, kn_cache_stores(r->cache));
    }
    kn_cache_flush(r->cache);
    return status;
}

/* Agrees with the other machines, too, where there is a remote that can. */
static kiln_status make_for_all(request *r, kiln_diag *diag)
{
    kn_remotes *remotes = r->cache->remotes;
    if (remotes == NULL || has(r, KILN_CACHE_RECACHE | KILN_CACHE_READONLY) ||
        kn_recipe_is_note(kn_recipe_span(r->recipe))) {
        return make(r, diag);
    }
    kiln_status leased = kn_remotes_lease(remotes, &r->key, r->alone, r->deadline, look_up, r);
    if (leased == KILN_MISS) {
        return KILN_OK;
    }
    if (leased == KILN_E_TIMEOUT) {
        kn_stats_add(r->cache->stats, KN_COUNT_wait_timeouts, 1);
    }
    kiln_status status = make(r, diag);
    if (leased == KILN_OK) {
        kn_remotes_lease_drop(r->cache->remotes, &r->key); /* a child's have none to drop */
    }
    return status;
}

/* As leader of this process: agrees with the other processes, looks again, and compiles. */
static kiln_status lead(request *r, kn_flight_seat *seat, kiln_diag *diag)
{
    kn_flight_wait wait = {.waited = false};
    if (!has(r, KILN_CACHE_RECACHE)) {
        /* No lock file is made below a root that was exchanged for a stranger's. */
        kiln_status locked =
            kn_cache_root_stands(r->cache)
                ? kn_flight_lock(r->cache->flight, seat, r->deadline, look_near, r, &wait)
                : KILN_E_UNSUPPORTED;
        r->alone = locked == KILN_OK;
        if (locked == KILN_E_IO && kn_cache_writes(r->cache)) {
            kn_stats_clear_lock(r->cache->stats); /* for the next one */
        }
        /* With the byte or without: somebody may have finished between our look and now. */
        if (locked == KILN_MISS || look_up(r)) {
            return KILN_OK;
        }
        kn_stats_add(r->cache->stats, KN_COUNT_wait_timeouts,
                     wait.passed_over || locked == KILN_E_TIMEOUT);
        if (locked == KILN_E_TIMEOUT && !wait.passed_over) {
            kn_log(KILN_LOG_WARN,
                   "another process has been compiling the same for %u ms: "
                   "not waiting any longer",
                   r->cache->options.wait_ms);
        }
    }
    if (r->maker->made != NULL && r->maker->made(r->maker->user)) {
        return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, "compiling",
                             "another thread has made it and stores it later");
    }
    return make_for_all(r, diag);
}

static kiln_status lead_and_leave(request *r, kn_flight_seat *seat, kiln_diag *diag)
{
    /* Followers get the reason even where this caller does not want it. */
    kiln_diag own = KILN_DIAG_INIT;
    kn_flight *flight = r->cache->flight;
    kiln_status status = lead(r, seat, &own);
    if (flight == r->cache->flight) { /* in a child the seat is left where it is, like the flight */
        kn_flight_leave(flight, seat, status, r->blob, &own);
    }
    if (status != KILN_OK) {
        kn_diag_move(diag, &own);
        return status;
    }
    kiln_diag_clear(&own);
    return status;
}

static kiln_status follow_or_lead(request *r, kiln_diag *diag)
{
    kn_flight_seat *seat = NULL;
    void *result = NULL;
    kiln_status status = KILN_OK;
    kn_stats *stats = r->cache->stats;
    switch (kn_flight_enter(r->cache->flight, r->key.bytes, r->deadline, &seat, &result, &status,
                            diag)) {
    case KN_FLIGHT_LEADER:
        return lead_and_leave(r, seat, diag);
    case KN_FLIGHT_FOLLOWER:
        r->blob = result;
        r->origin = status == KILN_OK ? KILN_ORIGIN_SHARED : KILN_ORIGIN_NONE;
        if (status == KILN_OK) {
            kn_stats_add(stats, KN_COUNT_hits_shared, 1);
            kn_stats_add(stats, KN_COUNT_saved_ns, kiln_blob_compile_ns(r->blob));
        }
        return status;
    case KN_FLIGHT_TIMED_OUT:
        kn_stats_add(stats, KN_COUNT_wait_timeouts, 1);
        break;
    case KN_FLIGHT_ALONE:
        break;
    }
    return make(r, diag);
}

kiln_status kn_cache_get_or_make(kiln_cache *cache, const kiln_recipe *recipe,
                                 const kn_cache_maker *maker, kiln_blob **out_blob,
                                 kiln_origin *out_origin, kiln_diag *diag)
{
    *out_blob = NULL;
    if (out_origin != NULL) {
        *out_origin = KILN_ORIGIN_NONE;
    }
    const kiln_key key = kiln_recipe_key(recipe); /* the last that can break a recipe */
    if (!kn_recipe_ok(recipe)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "check what kiln_recipe_add_* returns",
                             "looking an entry up", "a field of the recipe could not be added");
    }
    kn_cache_check_fork(cache);
    request r = {.cache = cache, .recipe = recipe, .key = key, .maker = maker};
    kiln_status status;
    if (has(&r, KILN_CACHE_DISABLED)) {
        status = make(&r, diag);
    } else if (!has(&r, KILN_CACHE_RECACHE) && look_up(&r)) {
        status = KILN_OK;
        if (r.origin != KILN_ORIGIN_MEMORY && kn_cache_writes(cache)) {
            kn_cache_flush_rarely(cache);
        }
    } else {
        r.deadline = kn_clock_now() + (uint64_t)cache->options.wait_ms * MS;
        status = follow_or_lead(&r, diag);
    }
    *out_blob = r.blob;
    if (out_origin != NULL) {
        *out_origin = r.origin;
    }
    return status;
}

kiln_status kiln_cache_get_or_compile(kiln_cache *cache, const kiln_recipe *recipe,
                                      kiln_compile_fn *compile, void *user, kiln_blob **out_blob,
                                      kiln_origin *out_origin, kiln_diag *diag)
{
    const kn_cache_maker maker = {.compile = compile, .user = user};
    return kn_cache_get_or_make(cache, recipe, &maker, out_blob, out_origin, diag);
}
