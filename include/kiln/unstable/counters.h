/* Counters of a cache: of this cache object, and of all processes that use its directory. */
#ifndef KILN_UNSTABLE_COUNTERS_H
#define KILN_UNSTABLE_COUNTERS_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

/* X(id, name, unit, text): every counter, in the order in which they are stored and shown. An id
 * keeps its number for ever; a counter that a later version no longer counts stays 0. The unit is
 * "ns", "bytes", or "" for a number of things. */
#define KILN_COUNTER_MAP(X)                                                                        \
    X(KILN_COUNTER_HITS_MEMORY, hits_memory, "", "hits in memory")                                 \
    X(KILN_COUNTER_HITS_DISK, hits_disk, "", "hits on disk")                                       \
    X(KILN_COUNTER_HITS_PACK, hits_pack, "", "hits in packs")                                      \
    X(KILN_COUNTER_HITS_REMOTE, hits_remote, "", "hits in remotes")                                \
    X(KILN_COUNTER_HITS_SHARED, hits_shared, "", "hits by waiting for another compile")            \
    X(KILN_COUNTER_MISSES, misses, "", "misses")                                                   \
    X(KILN_COUNTER_COMPILES, compiles, "", "compiles")                                             \
    X(KILN_COUNTER_COMPILE_FAILURES, compile_failures, "", "compiles that failed")                 \
    X(KILN_COUNTER_COMPILE_NS, compile_ns, "ns", "time spent compiling")                           \
    X(KILN_COUNTER_SAVED_NS, saved_ns, "ns", "compile time saved by hits")                         \
    X(KILN_COUNTER_PUTS, puts, "", "entries stored")                                               \
    X(KILN_COUNTER_PUT_BYTES, put_bytes, "bytes", "bytes stored")                                  \
    X(KILN_COUNTER_PUT_FAILURES, put_failures, "", "entries that could not be stored")             \
    X(KILN_COUNTER_CORRUPT, corrupt, "", "damaged entries dropped")                                \
    X(KILN_COUNTER_REJECTED, rejected, "", "binaries refused by a driver and rebuilt")             \
    X(KILN_COUNTER_EVICTED, evicted, "", "entries evicted")                                        \
    X(KILN_COUNTER_BYPASSED, bypassed, "", "compiles that bypassed the cache")                     \
    X(KILN_COUNTER_WAIT_TIMEOUTS, wait_timeouts, "",                                               \
      "waits for another process that were abandoned")                                             \
    X(KILN_COUNTER_IO_ERRORS, io_errors, "", "other store errors")                                 \
    X(KILN_COUNTER_MISSES_EVICTED, misses_evicted, "", "misses of entries that had been evicted")  \
    X(KILN_COUNTER_MISSES_CORRUPT, misses_corrupt, "",                                             \
      "misses of entries that had been found damaged")                                             \
    X(KILN_COUNTER_REMOTE_ERRORS, remote_errors, "", "errors of remotes")                          \
    X(KILN_COUNTER_REMOTE_TIMEOUTS, remote_timeouts, "", "timeouts of remotes")                    \
    X(KILN_COUNTER_REMOTE_UPLOADS, remote_uploads, "", "entries uploaded")                         \
    X(KILN_COUNTER_REMOTE_UPLOAD_FAILURES, remote_upload_failures, "",                             \
      "uploads that failed or were dropped")                                                       \
    X(KILN_COUNTER_REMOTE_BYTES_IN, remote_bytes_in, "bytes", "bytes received from remotes")       \
    X(KILN_COUNTER_REMOTE_BYTES_OUT, remote_bytes_out, "bytes", "bytes uploaded")                  \
    X(KILN_COUNTER_REMOTE_REFUSED, remote_refused, "", "entries of remotes refused by KILN_TRUST") \
    X(KILN_COUNTER_REMOTE_WAITS, remote_waits, "", "waits for another machine's compile")          \
    X(KILN_COUNTER_TUNINGS, tunings, "", "kernels tuned")                                          \
    X(KILN_COUNTER_TUNE_LAUNCHES, tune_launches, "", "launches made for tuning")                   \
    X(KILN_COUNTER_TUNED_HITS, tuned_hits, "", "tuned variants picked")                            \
    X(KILN_COUNTER_TUNED_STALE, tuned_stale, "", "tunings that were no longer valid")              \
    X(KILN_COUNTER_REMOTE_RAW_IN, remote_raw_in, "bytes", "bytes received from remotes, unpacked") \
    X(KILN_COUNTER_REMOTE_RAW_OUT, remote_raw_out, "bytes", "bytes uploaded, before packing")      \
    X(KILN_COUNTER_MISSES_NEW, misses_new, "", "misses of entries never seen before")              \
    X(KILN_COUNTER_MISSES_OPTIONS, misses_options, "",                                             \
      "misses due to changed options or entry points")                                             \
    X(KILN_COUNTER_MISSES_HEADER, misses_header, "", "misses due to changed headers")              \
    X(KILN_COUNTER_MISSES_DRIVER, misses_driver, "",                                               \
      "misses due to another driver, compiler or device")                                          \
    X(KILN_COUNTER_MISSES_OTHER, misses_other, "",                                                 \
      "misses due to another environment or version of kiln")                                      \
    X(KILN_COUNTER_NOTE_HITS, note_hits, "", "kiln's notes found (headers, compilers)")            \
    X(KILN_COUNTER_NOTE_MISSES, note_misses, "", "kiln's notes missing or out of date")            \
    X(KILN_COUNTER_BYPASS_NS, bypass_ns, "ns", "time spent on compiles that bypassed the cache")   \
    X(KILN_COUNTER_REMOTE_SKIPPED, remote_skipped, "",                                             \
      "lookups in remotes whose budget was used up")                                               \
    X(KILN_COUNTER_UNENDED, unended, "", "binaries rebuilt because loading them did not end")      \
    X(KILN_COUNTER_RECORDED, recorded, "", "programs recorded with their sources")                 \
    X(KILN_COUNTER_UNRECORDED, unrecorded, "", "programs that could not be recorded")

/* One of them. KILN_COUNTERS is how many these headers know, not how many the library does. */
typedef enum kiln_counter {
#define KILN_COUNTER_ENUM(id, name, unit, text) id,
    KILN_COUNTER_MAP(KILN_COUNTER_ENUM)
#undef KILN_COUNTER_ENUM
        KILN_COUNTERS
} kiln_counter;

/* A counter's name ("hits_memory"), unit and text, for a list of all: an exporter of metrics asks
 * for one after the other from 0 up to the first NULL.
 * Threads: any.   Blocks: never.   Owns: static strings.
 * Fails: never; NULL for a counter that this library does not have. */
KILN_API const char *kiln_counter_name(uint32_t counter);
KILN_API const char *kiln_counter_unit(uint32_t counter);
KILN_API const char *kiln_counter_text(uint32_t counter);

/* A counter of this cache object since it was created.
 * Threads: any.   Blocks: never.   Owns: nothing.
 * Fails: never; 0 for a counter that this library does not have. */
KILN_API uint64_t kiln_cache_counter(const kiln_cache *cache, uint32_t counter);

/* The counters of all processes that used the cache's disk root since it was made, this one
 * included, by one reading: out_values[id] for the ids below `count` (KILN_COUNTERS); zeros without
 * a disk tier, and for those that this library does not have.
 * Threads: any.   Blocks: disk.   Owns: `out_values` is the caller's.
 * Fails: KILN_E_IO. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_get_totals(kiln_cache *cache, uint64_t *out_values,
                                                           size_t count, kiln_diag *diag);

KILN_END_DECLS

#endif
