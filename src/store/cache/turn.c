/* Work that one process of this host does for all that need it at the same time, and whose result
 * is not an entry. */
#include <string.h>

#include "store/cache/cache.h"

static bool take_seat_and_byte(kiln_cache *cache, const uint8_t key[KN_FLIGHT_KEY_SIZE],
                               uint64_t deadline_ns, kn_turn_look *look, void *user, kn_turn *turn)
{
    kn_flight_wait wait = {.waited = false};
    kiln_status status = KILN_OK;
    void *result = NULL;
    const kn_flight_role role =
        kn_flight_enter(turn->flight, key, deadline_ns, &turn->seat, &result, &status, NULL);
    if (role != KN_FLIGHT_LEADER) {
        return !look(user); /* another thread has done it, or this one goes on by itself */
    }
    status = kn_cache_root_stands(cache)
                 ? kn_flight_lock(turn->flight, turn->seat, deadline_ns, look, user, &wait)
                 : KILN_E_UNSUPPORTED;
    return status != KILN_MISS && !look(user);
}

bool kn_cache_turn_begin(kiln_cache *cache, const uint8_t key[KN_FLIGHT_KEY_SIZE],
                         uint64_t deadline_ns, kn_turn_look *look, void *user, kn_turn *out_turn)
{
    kn_cache_check_fork(cache);
    *out_turn = (kn_turn){.cache = cache, .flight = cache->flight};
    const bool mine = take_seat_and_byte(cache, key, deadline_ns, look, user, out_turn);
    if (!mine) {
        kn_cache_turn_end(out_turn);
    }
    return mine;
}

void kn_cache_turn_end(kn_turn *turn)
{
    /* In a child the seat is left where it is, like the flight. There is no result to hand over:
     * the others look. */
    if (turn->seat != NULL && turn->flight == turn->cache->flight) {
        kn_flight_leave(turn->flight, turn->seat, KILN_MISS, NULL, NULL);
    }
    turn->seat = NULL;
}
