/* A hit, or one compile however many ask: the steps, and the calls that take them with a callback.
 * This file must not depend on what a compile does. */
#include "store/cache/get_or_compile.h"

#include <kiln/unstable/binding.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "key/recipe.h"
#include "store/format/blob.h"
#include "sys/clock.h"

#define MS UINT64_C(1000000)
#define ASK_EVERY (200 * MS) /* whether a wait is interrupted */

/* --- interruptions ---------------------------------------------------------------------------- */

/* A call ends where the caller wants it to; `cut` tells that from a result. */
static bool ask_caller(kn_fetch *f)
{
    f->cut = f->cut || (f->interrupted != NULL && f->interrupted(f->user));
    f->asked = kn_clock_now();
    return f->cut;
}

static bool is_cut(kn_fetch *f)
{
    return f->cut || (kn_clock_now() - f->asked >= ASK_EVERY && ask_caller(f));
}

static kiln_status cut_short(kn_fetch *f, kiln_diag *diag)
{
    f->cut = true;
    return kiln_diag_set(diag, KILN_E_CANCELLED, NULL, "compiling", "the caller interrupted it");
}

/* --- the steps in their order ----------------------------------------------------------------- */

static kiln_status compile_blob(kn_fetch *f, kiln_compile_fn *compile, void *user)
{
    if (ask_caller(f)) {
        return cut_short(f, &f->why);
    }
    kn_fetch_start(f);
    return compile(user, &f->blob, &f->why);
}

kiln_status kiln_cache_get_or_compile_interruptible(kiln_cache *cache, const kiln_recipe *recipe,
                                                    kiln_compile_fn *compile,
                                                    kiln_interrupted_fn *interrupted, void *user,
                                                    kiln_blob **out_blob, kiln_origin *out_origin,
                                                    kiln_diag *diag)
{
    kn_fetch fetch;
    kiln_status status = kn_fetch_begin(&fetch, cache, recipe, diag);
    fetch.interrupted = interrupted;
    fetch.user = user;
    if (status == KILN_OK && !kn_fetch_look_up(&fetch) && kn_fetch_claim(&fetch, &status, diag)) {
        status = kn_fetch_publish(&fetch, compile_blob(&fetch, compile, user), diag);
    }
    *out_blob = fetch.blob;
    if (out_origin != NULL) {
        *out_origin = fetch.origin;
    }
    return status;
}

kiln_status kiln_cache_get_or_compile(kiln_cache *cache, const kiln_recipe *recipe,
                                      kiln_compile_fn *compile, void *user, kiln_blob **out_blob,
                                      kiln_origin *out_origin, kiln_diag *diag)
{
    return kiln_cache_get_or_compile_interruptible(cache, recipe, compile, NULL, user, out_blob,
                                                   out_origin, diag);
}

kiln_status kiln_cache_compile(kiln_cache *cache, const char *stage, const kiln_field *fields,
                               size_t count, kiln_compile_fn *compile, void *user,
                               kiln_blob **out_blob, kiln_diag *diag)
{
    kiln_recipe *recipe = NULL;
    *out_blob = NULL;
    kiln_status status = kiln_recipe_create(stage, 1, &recipe, diag);
    if (status != KILN_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        kiln_recipe_add_text(recipe, fields[i].name, fields[i].text, fields[i].length);
    }
    status = kiln_cache_get_or_compile(cache, recipe, compile, user, out_blob, NULL, diag);
    kiln_recipe_destroy(recipe);
    return status;
}

/* --- lookup ----------------------------------------------------------------------------------- */

static bool has_flag(const kn_fetch *f, uint32_t flags)
{
    return (f->cache->options.flags & flags) != 0;
}

static bool is_note(const kn_fetch *f)
{
    return kn_recipe_is_note(kn_recipe_span(f->recipe));
}

kiln_status kn_fetch_begin(kn_fetch *fetch, kiln_cache *cache, const kiln_recipe *recipe,
                           kiln_diag *diag)
{
    kn_fetch *f = fetch;
    f->cache = cache;
    f->recipe = recipe;
    f->key = kiln_recipe_key(recipe); /* the last that can break a recipe */
    f->blob = NULL;
    f->origin = KILN_ORIGIN_NONE;
    f->interrupted = NULL;
    f->asked = 0;
    f->cut = false;
    const kiln_status broken = kiln_recipe_status(recipe, diag);
    if (broken != KILN_OK) {
        return broken;
    }
    kn_cache_check_fork(cache);
    return KILN_OK;
}

static bool find_anywhere(void *user)
{
    kn_fetch *f = user;
    if (is_note(f)) {
        return kn_stack_get_note(&f->cache->stack, &f->key, kn_recipe_target(f->recipe), false,
                                 &f->blob, &f->origin) == KILN_OK;
    }
    return kn_stack_get(&f->cache->stack, &f->key, kn_recipe_target(f->recipe), &f->blob,
                        &f->origin) == KILN_OK;
}

/* While another process of this host is at it: its result comes to the disk, and many who wait must
 * not all ask a server. */
static bool find_near(void *user)
{
    kn_fetch *f = user;
    if (is_note(f)) {
        return find_anywhere(f); /* never asks a remote */
    }
    return kn_stack_get_near(&f->cache->stack, &f->key, kn_recipe_target(f->recipe), &f->blob,
                             &f->origin) == KILN_OK;
}

static bool look_near_in_wait(void *user)
{
    return is_cut(user) || find_near(user);
}

static bool look_in_wait(void *user)
{
    return is_cut(user) || find_anywhere(user);
}

bool kn_fetch_look_up(kn_fetch *fetch)
{
    if (has_flag(fetch, KILN_CACHE_DISABLED | KILN_CACHE_RECACHE) || !find_anywhere(fetch)) {
        return false;
    }
    if (fetch->origin != KILN_ORIGIN_MEMORY && kn_cache_writes(fetch->cache)) {
        kn_cache_flush_rarely(fetch->cache);
    }
    return true;
}

/* --- flight: threads, then processes, then hosts ---------------------------------------------- */

/* In turns that are short enough to ask between them. KILN_MISS: the leader left without an
 * outcome, and one of its followers takes the lead. */
static kn_flight_role enter_in_turns(kn_fetch *f, void **out_result, kiln_status *out_status,
                                     kiln_diag *diag)
{
    for (;;) {
        const uint64_t soon = kn_clock_now() + ASK_EVERY;
        const bool whole = f->interrupted == NULL || f->deadline <= soon;
        const kn_flight_role role =
            kn_flight_enter(f->flight, f->key.bytes, whole ? f->deadline : soon, &f->seat,
                            out_result, out_status, diag);
        if (role == KN_FLIGHT_FOLLOWER && *out_status == KILN_MISS) {
            kiln_diag_clear(diag);
        } else if (role != KN_FLIGHT_TIMED_OUT || whole || is_cut(f)) {
            return role;
        }
    }
}

/* False where another thread's result, or its failure, will do. */
static bool enter_flight(kn_fetch *f, kiln_status *out_status, kiln_diag *diag)
{
    void *result = NULL;
    kn_stats *stats = f->cache->stats;
    f->flight = f->cache->flight;
    switch (enter_in_turns(f, &result, out_status, diag)) {
    case KN_FLIGHT_FOLLOWER:
        f->blob = result;
        if (*out_status == KILN_OK) {
            f->origin = KILN_ORIGIN_SHARED;
            kn_stats_add(stats, KN_COUNT_hits_shared, 1);
            kn_stats_add(stats, KN_COUNT_saved_ns, kiln_blob_compile_ns(f->blob));
        }
        return false;
    case KN_FLIGHT_TIMED_OUT:
        if (f->cut) {
            *out_status = cut_short(f, diag);
            return false;
        }
        kn_stats_add(stats, KN_COUNT_wait_timeouts, 1);
        break;
    case KN_FLIGHT_ALONE:
    case KN_FLIGHT_LEADER:
        break;
    }
    return true;
}

/* Agrees with the other processes of this host and looks again. True if it is there now. */
static bool found_after_processes(kn_fetch *f, kn_flight_look *look)
{
    kn_flight_wait wait = {.waited = false};
    kiln_cache *cache = f->cache;
    if (has_flag(f, KILN_CACHE_RECACHE)) {
        return false;
    }
    /* No lock file is made below a root that was exchanged for a stranger's. */
    const kiln_status locked =
        kn_cache_root_stands(cache)
            ? kn_flight_lock(f->flight, f->seat, f->deadline, look_near_in_wait, f, &wait)
            : KILN_E_UNSUPPORTED;
    f->alone = locked == KILN_OK;
    f->queued = wait.waited && !wait.passed_over;
    if (locked == KILN_E_IO && kn_cache_writes(cache)) {
        kn_stats_clear_lock(cache->stats); /* for the next one */
    }
    /* With the byte or without: another process may have finished between our look and now. */
    if (locked == KILN_MISS || look(f)) {
        return true;
    }
    kn_stats_add(cache->stats, KN_COUNT_wait_timeouts,
                 wait.passed_over || locked == KILN_E_TIMEOUT);
    if (locked == KILN_E_TIMEOUT && !wait.passed_over) {
        kn_log(KILN_LOG_WARN,
               "another process has been compiling the same for %u ms: no longer waiting for it",
               cache->options.wait_ms);
    }
    return false;
}

/* Agrees with the other hosts, too, where there is a remote that can. True if it is there now. */
static bool found_after_hosts(kn_fetch *f)
{
    kn_remotes *remotes = f->cache->remotes;
    if (remotes == NULL || has_flag(f, KILN_CACHE_RECACHE | KILN_CACHE_READONLY) || is_note(f)) {
        return false;
    }
    const kiln_status leased =
        kn_remotes_lease(remotes, &f->key, f->alone, f->deadline, look_in_wait, f);
    f->leased = leased == KILN_OK;
    if (leased == KILN_E_TIMEOUT) {
        kn_stats_add(f->cache->stats, KN_COUNT_wait_timeouts, 1);
    }
    return leased == KILN_MISS;
}

/* In a child the seat is left where it is, like the flight. */
static void leave_flight(kn_fetch *f, kiln_status status)
{
    if (f->seat != NULL && f->flight == f->cache->flight) {
        kn_flight_leave(f->flight, f->seat, status, f->blob, &f->why);
    }
    f->seat = NULL;
}

static void hold_nothing(kn_fetch *f, uint32_t wait_ms)
{
    f->seat = NULL;
    f->alone = false;
    f->queued = false;
    f->leased = false;
    f->started = 0;
    f->why = (kiln_diag)KILN_DIAG_INIT;
    f->asked = kn_clock_now();
    f->deadline = f->asked + (uint64_t)wait_ms * MS;
}

bool kn_fetch_claim(kn_fetch *fetch, kiln_status *out_status, kiln_diag *diag)
{
    kn_fetch *f = fetch;
    *out_status = KILN_OK;
    hold_nothing(f, f->cache->options.wait_ms);
    if (has_flag(f, KILN_CACHE_DISABLED)) {
        return true;
    }
    if (!enter_flight(f, out_status, diag)) {
        return false;
    }
    if (f->seat != NULL && (found_after_processes(f, find_anywhere) || found_after_hosts(f))) {
        const bool found = f->blob != NULL;
        leave_flight(f, found ? KILN_OK : KILN_MISS);
        *out_status = found ? KILN_OK : cut_short(f, diag);
        return false;
    }
    return true;
}

/* Others of this host find what is stored, and there is room for it. */
static bool can_hand_over(const kn_fetch *f)
{
    return !has_flag(f, KILN_CACHE_DISABLED | KILN_CACHE_RECACHE) &&
           kn_cache_root_stands(f->cache) &&
           kn_disk_check_space(f->cache->disk, 0, NULL) == KILN_OK;
}

bool kn_fetch_reserve(kn_fetch *fetch, uint32_t wait_ms, kiln_status *out_status, kiln_diag *diag)
{
    kn_fetch *f = fetch;
    *out_status = KILN_OK;
    hold_nothing(f, wait_ms);
    f->flight = f->cache->flight;
    if (!can_hand_over(f) ||
        kn_flight_claim(f->flight, f->key.bytes, &f->seat) != KN_FLIGHT_LEADER) {
        return true;
    }
    const bool found = found_after_processes(f, find_near);
    if (found || f->queued || !f->alone) {
        leave_flight(f, KILN_MISS);
    }
    if (found && f->blob == NULL) {
        *out_status = cut_short(f, diag);
    }
    return !found;
}

void kn_fetch_alone(kn_fetch *fetch)
{
    hold_nothing(fetch, 0);
}

void kn_fetch_abandon(kn_fetch *fetch)
{
    /* What the parent of a fork has claimed stays the parent's. */
    if (!kn_fork_noticed(&fetch->cache->guard)) {
        fetch->started = 0; /* nothing to count or store */
        kn_ignore(kn_fetch_publish(fetch, KILN_E_CANCELLED, NULL));
    }
}

/* --- compile ---------------------------------------------------------------------------------- */

void kn_fetch_start(kn_fetch *fetch)
{
    kn_cache_count_miss(fetch->cache, &fetch->key, kn_recipe_span(fetch->recipe), is_note(fetch));
    kn_fetch_restart(fetch);
}

void kn_fetch_restart(kn_fetch *fetch)
{
    fetch->started = kn_clock_now();
}

/* What a compile gives is an answer only if there are bytes in it. */
static kiln_status take_compiled(kn_fetch *f, kiln_status made)
{
    kiln_status status = made;
    const uint64_t took = kn_clock_now() - f->started;
    kn_cache_check_fork(f->cache); /* the compile may return twice, once in a child */
    kn_stats *stats = f->cache->stats;
    kn_stats_add(stats, KN_COUNT_compiles, 1);
    kn_stats_add(stats, KN_COUNT_compile_ns, took);
    if (status == KILN_OK && (f->blob == NULL || kiln_blob_size(f->blob) == 0)) {
        status = kiln_diag_set(&f->why, KILN_E_COMPILE, NULL, "compiling",
                               "the compiler reported success but returned no bytes");
    }
    if (status != KILN_OK) {
        /* cancelled: the caller has what it wanted, and does not share it */
        kn_stats_add(stats, KN_COUNT_compile_failures, status != KILN_E_CANCELLED ? 1 : 0);
        return status;
    }
    uint64_t unknown = 0;
    (void)atomic_compare_exchange_strong(&f->blob->compile_ns, &unknown, took > 0 ? took : 1);
    f->origin = KILN_ORIGIN_COMPILED;
    return KILN_OK;
}

/* --- publish ---------------------------------------------------------------------------------- */

/* The store's trouble is its own. */
static void store_compiled(kn_fetch *f, kiln_status status)
{
    if (has_flag(f, KILN_CACHE_DISABLED)) {
        return;
    }
    if (status == KILN_OK) {
        const kn_tier_put what = {.key = &f->key,
                                  .target = kn_recipe_target(f->recipe),
                                  .recipe = kn_recipe_span(f->recipe),
                                  .blob = f->blob};
        kn_stack_put(&f->cache->stack, &what, kn_cache_stores(f->cache));
    }
    kn_cache_flush(f->cache);
}

kiln_status kn_fetch_publish(kn_fetch *fetch, kiln_status made, kiln_diag *diag)
{
    kn_fetch *f = fetch;
    kiln_status status = made;
    if (f->started != 0) {
        status = take_compiled(f, made);
        store_compiled(f, status);
    }
    if (status != KILN_OK) {
        kiln_blob_release(f->blob);
        f->blob = NULL;
    }
    if (f->leased) {
        kn_remotes_lease_drop(f->cache->remotes, &f->key); /* a child's have none to drop */
    }
    leave_flight(f, f->cut ? KILN_MISS : status);
    if (status != KILN_OK) {
        kn_diag_move(diag, &f->why);
    }
    kiln_diag_clear(&f->why);
    return status;
}
