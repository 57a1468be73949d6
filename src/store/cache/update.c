/* See update.h. This file must not know what an entry holds. */
#include "store/cache/update.h"

#include "base/checked.h"
#include "base/log.h"
#include "key/recipe.h"
#include "sys/clock.h"

/* What the holder writes does not spare this one its own change. */
static bool never_found(void *user)
{
    (void)user;
    return false;
}

/* The seat of this key, when the threads before this one have changed the entry; NULL where that is
 * not to be waited for. */
static kn_flight_seat *enter_alone(kn_flight *flight, const kiln_key *key, uint64_t deadline)
{
    kn_flight_role role = KN_FLIGHT_FOLLOWER;
    kn_flight_seat *seat = NULL;
    while (role == KN_FLIGHT_FOLLOWER) {
        void *result = NULL;
        kiln_status status = KILN_OK;
        role = kn_flight_enter(flight, key->bytes, deadline, &seat, &result, &status, NULL);
        kiln_blob_release((kiln_blob *)result);
    }
    return seat;
}

kiln_status kn_cache_update(kiln_cache *cache, const kiln_recipe *recipe, uint64_t patience_ns,
                            const kn_cache_change *change, kiln_diag *diag)
{
    const kiln_key key = kiln_recipe_key(recipe);
    const uint64_t deadline = kn_clock_now() + patience_ns;
    kiln_blob *old = NULL;
    kiln_blob *fresh = NULL;
    kn_flight_wait wait = {.waited = false};
    kn_cache_check_fork(cache);
    kn_flight *flight = cache->flight;
    kn_flight_seat *seat = enter_alone(flight, &key, deadline);
    /* The root comes first: the lock lies in it, and this may be the first entry of all. */
    if (seat != NULL && kn_cache_writes(cache) &&
        kn_disk_check_root(cache->disk, NULL) == KILN_OK &&
        kn_flight_lock(flight, seat, deadline, never_found, NULL, &wait) == KILN_E_TIMEOUT) {
        kn_log(KILN_LOG_WARN,
               "another process has been saving the same for %u ms: no longer "
               "waiting for it",
               (unsigned)(patience_ns / UINT64_C(1000000)));
    }
    kn_ignore(kn_cache_reread(cache, &key, &old)); /* a miss is not a failure here */
    kiln_status status = change->change(change->user, old, &fresh, diag);
    if (status == KILN_OK && fresh != NULL) {
        status = kn_cache_put_below(cache, recipe, fresh, diag);
    }
    kiln_blob_release(fresh);
    kiln_blob_release(old);
    if (seat != NULL && flight == cache->flight) { /* in a child it stays where it is */
        kn_flight_leave(flight, seat, KILN_E_CANCELLED, NULL, NULL);
    }
    return status;
}
