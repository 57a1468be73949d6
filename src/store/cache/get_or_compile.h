/* A request for an entry, step by step: lookup, flight, compile, publish. The engine takes the
 * steps by itself (engine/job.c); kiln_cache_get_or_compile takes them with a callback.
 * One thread takes all steps of a request.
 *
 *     kn_fetch fetch;
 *     status = kn_fetch_begin(&fetch, cache, recipe, diag);
 *     if (status == KILN_OK && !kn_fetch_look_up(&fetch) &&
 *         kn_fetch_claim(&fetch, &status, diag)) {
 *         kn_fetch_start(&fetch);
 *         status = ... compile, which fills fetch.blob, or fetch.why ...
 *         status = kn_fetch_publish(&fetch, status, diag);
 *     }
 *     ... fetch.blob and fetch.origin are the answer ... */
#ifndef KILN_STORE_GET_OR_COMPILE_H
#define KILN_STORE_GET_OR_COMPILE_H

#include <kiln/unstable/binding.h>

#include "store/cache/cache.h"

typedef struct kn_fetch {
    kiln_cache *cache;
    const kiln_recipe *recipe;
    kiln_key key;
    kiln_blob *blob; /* the answer: the caller's own, NULL without one */
    kiln_origin origin;
    kiln_interrupted_fn *interrupted; /* NULL: a wait lasts as long as it must */
    void *user;                       /* of `interrupted` */
    uint64_t asked;                   /* when, by kn_clock_now */
    bool cut;                         /* its answer */
    /* Of who has the claim: */
    kn_flight *flight;
    kn_flight_seat *seat; /* NULL: nobody waits for what comes of it */
    uint64_t deadline;
    bool alone;       /* this host's lock of the key is held */
    bool queued;      /* after another process, which did not leave a result */
    bool leased;      /* and the lease of all hosts */
    uint64_t started; /* kn_clock_now; 0: no compile was begun */
    kiln_diag why;    /* of a failure: those who wait get it, even where the caller wants none */
} kn_fetch;

/* KILN_E_INVALID for a recipe with a field that could not be added. There is nothing to end. */
kiln_status kn_fetch_begin(kn_fetch *fetch, kiln_cache *cache, const kiln_recipe *recipe,
                           kiln_diag *diag);

/* Asks memory, disk, packs and remotes. Whether it is there. */
bool kn_fetch_look_up(kn_fetch *fetch);

/* Of all that ask for the same, threads, processes and hosts, one is to compile. True: this one,
 * and kn_fetch_publish must follow; with a seat, the threads that ask meanwhile wait for it. False:
 * another one has compiled, and *out_status (diag) says what came of it. */
bool kn_fetch_claim(kn_fetch *fetch, kiln_status *out_status, kiln_diag *diag);

/* kn_fetch_claim for a compile that goes on outside the library (exec/flight.h), with what the
 * caller says in `interrupted` and `user`. It asks no other host, and takes no lock where a result
 * could not be handed over by it, or where another has left without one: those who waited for that
 * would compile one after the other. */
bool kn_fetch_reserve(kn_fetch *fetch, uint32_t wait_ms, kiln_status *out_status, kiln_diag *diag);

/* Before the compile: the miss is counted, and time runs. */
void kn_fetch_start(kn_fetch *fetch);
/* The same for an entry that was found and cannot be used: it is no miss. */
void kn_fetch_restart(kn_fetch *fetch);

/* In place of a claim, for what must be compiled though another one has or had it: nobody waits for
 * what comes of it. */
void kn_fetch_alone(kn_fetch *fetch);

/* In place of kn_fetch_publish: nothing is counted or stored, and those who wait compile. In a
 * child after a fork the claim stays the parent's. */
void kn_fetch_abandon(kn_fetch *fetch);

/* Stores what was compiled, and hands it, or why it failed, to those who wait. A compile that was
 * not begun is neither counted nor stored. KILN_E_CANCELLED in `made`: the caller has what it
 * wanted, and does not share it. Returns `made`, or KILN_E_COMPILE for a success without bytes. */
kiln_status kn_fetch_publish(kn_fetch *fetch, kiln_status made, kiln_diag *diag);

#endif
