/* Programs of PoCL that the drop-in built or loaded, kept with the cache that they went through:
 * what capturing one takes, so that its owner need not keep text and options.
 *
 * PoCL compiles every kernel of a program before it gives the binary. So a build does not read it;
 * a capture does, or the end of the cache. A kept program is retained: its handle cannot become
 * another's. Those that only kiln still holds and that have nothing left to store are dropped with
 * the next build. Nothing here runs by itself: all happens in calls that the program makes. */
#ifndef KILN_OPENCL_DROPIN_KEPT_H
#define KILN_OPENCL_DROPIN_KEPT_H

#include "apis/opencl/dropin/request.h"

/* True where binaries are read later, if they are wanted then: with PoCL. */
bool kn_opencl_reads_later(const kn_opencl_request *request);

/* Keeps what belongs to `program`: takes a reference of it, and the request's recipe. `unread`: the
 * cache has nothing of it, and its build took `compile_ns`. Where memory is short nothing is kept,
 * which costs a compile in the next process. */
void kn_opencl_kept_add(kn_opencl_request *request, cl_program program, bool unread,
                        uint64_t compile_ns);

/* The text and the options of a kept program are captured (its first binary read, or again what
 * PoCL has). KILN_MISS when it is not kept, or the cache is only read. */
kiln_status kn_opencl_kept_capture(kiln_cache *cache, cl_program program, kiln_diag *diag);

/* True when a kept program has this key, and the cache has nothing of it yet. */
bool kn_opencl_kept_waits(kiln_cache *cache, const kiln_key *key);

/* What belongs to this key has been stored by another way. */
void kn_opencl_kept_stored(kiln_cache *cache, const kiln_key *key);

/* Has machine code made of a blob of PTX, where that can be done, and stored in its place. True
 * where it is being made: the request may have no recipe then. `hit`: the blob was loaded, which
 * has taken about as long as its compile. */
bool kn_opencl_kept_assemble(kn_opencl_request *request, kiln_blob *blob, bool hit);

/* Waits for what is to be assembled, a moment or as long as it is worth. Not in a forked child,
 * which has no such thread. */
void kn_opencl_kept_finish(kiln_cache *cache);

/* Builds in a thread of its own, which calls `notify`. The cache is not NULL: the thread is joined
 * when it is destroyed, or by a later call. */
kiln_status kn_opencl_kept_start(kiln_cache *cache, kn_opencl_wish *wish,
                                 kiln_opencl_notify_fn *notify, void *user, kiln_diag *diag);

/* --- calls.c: what a thread and a capture do -------------------------------------------------- */

kiln_status kn_opencl_build_wish(kiln_cache *cache, kn_opencl_wish *wish,
                                 struct _cl_program **out_program, kiln_diag *diag);
kiln_status kn_opencl_capture_wish(kiln_cache *cache, kn_opencl_wish *wish, kiln_diag *diag);

#endif
