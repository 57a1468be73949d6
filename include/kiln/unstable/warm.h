/* Warming: programs are built in the background before a program asks for them, those first that
 * are used most.
 *
 *     kiln_warm_start(device, items, count, NULL, &warm, &diag);     returns at once
 *     ... kiln_program_build as usual: it waits for a program that is being warmed
 *     kiln_warm_destroy(warm);                        what has not begun is called off
 *
 * How often a program is used is counted by the key of its first stage when a runtime goes, in a
 * small table of the cache's directory. */
#ifndef KILN_UNSTABLE_WARM_H
#define KILN_UNSTABLE_WARM_H

#include "kiln/program.h"

KILN_BEGIN_DECLS

typedef struct kiln_warm kiln_warm; /* create/destroy */

/* A program as for kiln_program_build: the first source counts whose language the device takes. */
typedef struct kiln_warm_item {
    const kiln_source *sources;
    size_t source_count;
} kiln_warm_item;

/* How far warming is. */
typedef struct kiln_warm_state {
    size_t struct_size;
    size_t total;
    size_t built;     /* done, of these: */
    size_t compiled;  /* with a compile of this warming's own */
    size_t failed;    /* does not compile, or no source for this device */
    size_t cancelled; /* called off before it began */
    size_t running;
} kiln_warm_state;

/* Called after each program, one call at a time, on a thread of the runtime: the item's index as it
 * was given, what became of it (KILN_E_CANCELLED: called off), and how far it all is. It must not
 * wait for the warming, nor destroy it. */
typedef void kiln_warm_fn(void *user, size_t index, kiln_status status, const kiln_diag *diag,
                          const kiln_warm_state *state);

/* Zero it and set struct_size; then what you want. */
typedef struct kiln_warm_options {
    size_t struct_size;
    /* Built at once; 0 and at most: what $KILN_COMPILE_JOBS says, else one a processor and at most
     * one a GiB of memory, all warmings of a runtime together. */
    uint32_t jobs;
    bool in_order;          /* as the items are given, not by use */
    bool release;           /* fill the cache, keep no program loaded */
    kiln_warm_fn *progress; /* may be NULL */
    void *user;
} kiln_warm_options;

/* Begins to build `items` in the background. What was built stays loaded until the warming is
 * destroyed (unless options.release), so that kiln_program_build finds it.
 * Threads: any.   Blocks: the driver, when it is opened only now.
 * Owns: copies items and sources; *out_warm is yours, kiln_warm_destroy(), before the runtime.
 * Fails: KILN_E_INVALID (options, $KILN_COMPILE_JOBS), KILN_E_UNAVAILABLE, KILN_E_NOMEM. The
 * failure of a program is passed to `progress` and counted. */
KILN_API KILN_MUST_CHECK kiln_status kiln_warm_start(kiln_device *device,
                                                     const kiln_warm_item *items, size_t count,
                                                     const kiln_warm_options *options,
                                                     kiln_warm **out_warm, kiln_diag *diag);

/* Calls off what has not begun; what runs goes on. Wait waits until nothing is left to do.
 * Threads: any; wait not from `progress`.   Blocks: cancel: never; wait: until then.
 * Owns: nothing.   Fails: never. */
KILN_API void kiln_warm_cancel(kiln_warm *warm);
KILN_API void kiln_warm_wait(kiln_warm *warm);

/* How far it is. Set out_state->struct_size first.
 * Threads: any.   Blocks: never.   Owns: *out_state is the caller's struct.
 * Fails: KILN_E_INVALID (struct_size). */
KILN_API KILN_MUST_CHECK kiln_status kiln_warm_get_state(kiln_warm *warm,
                                                         kiln_warm_state *out_state,
                                                         kiln_diag *diag);

/* Cancels, waits for what runs, and lets go of the programs. NULL is allowed.
 * Threads: any but a thread of the runtime, once, with no later call on it.
 * Blocks: the builds that run.   Owns: the warming ends.   Fails: never. */
KILN_API void kiln_warm_destroy(kiln_warm *warm);

/* How often programs were used (kiln_program_build of a runtime that has gone by now), and when
 * last, in nanoseconds since 1970; zeros where nothing is known. A key is that of a program's first
 * stage (kiln_compile_plan reports it). A table of a fixed size: what is rarely used may go.
 * Threads: any.   Blocks: disk.
 * Owns: `out_counts` and `out_last_ns` have room for `count`; either may be NULL.
 * Fails: never. */
KILN_API void kiln_cache_uses(kiln_cache *cache, const kiln_key *keys, size_t count,
                              uint64_t *out_counts, int64_t *out_last_ns);

KILN_END_DECLS

#endif
