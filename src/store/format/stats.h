/* Counters: of one cache object in memory, and of all processes together in `<root>/stats`.
 *
 * The file is one record of 512 bytes (docs/formats.md) that also holds the running totals of the
 * disk tier, so that nobody has to walk the store to know how large it is. It is changed by
 * read-modify-write under a byte of the lock file. Nobody waits long for that byte: what could not
 * be added stays pending here and goes with the next flush. A damaged record starts again at zero,
 * and totals are then unknown until the disk tier has counted. */
#ifndef KILN_STORE_STATS_H
#define KILN_STORE_STATS_H

#include "kiln/cache.h"

#include <stdatomic.h>

#include "base/span.h"
#include "sys/thread.h"

struct kn_mem;

enum kn_counter {
#define KN_COUNTER_NAME(name, text) KN_COUNT_##name,
    KILN_CACHE_COUNTERS(KN_COUNTER_NAME)
#undef KN_COUNTER_NAME
        KN_COUNTERS
};

#define KN_RECORD_SIZE 512
#define KN_RECORD_COUNTERS 55 /* room for those to come */

/* Bytes of the lock file that are not keys'. */
enum { KN_LOCK_EVICT = 0, KN_LOCK_STATS = 1, KN_LOCK_COUNT = 2 };

typedef struct kn_record {
    uint64_t files, bytes; /* of the disk tier, as it counts them */
    int64_t counted_ns;    /* when they were last counted afresh; 0: never, totals are unknown */
    int64_t swept_ns;      /* when temporaries were last swept */
    int64_t created_ns;
    uint64_t counters[KN_RECORD_COUNTERS];
} kn_record;

/* The record's bytes. Parsing gives KILN_E_CORRUPT and zeros. */
kiln_status kn_record_parse(kn_span bytes, kn_record *out_record);
void kn_record_write(const kn_record *record, unsigned char out[KN_RECORD_SIZE]);

/* What the disk tier did to the totals since the last flush. A recount is a correction, not a new
 * value, so that puts by others meanwhile are not lost. */
typedef struct kn_totals {
    int64_t files, bytes;
    int64_t counted_ns, swept_ns; /* 0: unchanged */
} kn_totals;

typedef struct kn_stats {
    _Atomic uint64_t own[KN_COUNTERS];
    const struct kn_mem *memory; /* counts its hits itself; may be NULL */
    char *path;                  /* NULL: there is no file */
    char *lock_path;
    kn_mutex mutex; /* guards what follows */
    uint64_t flushed[KN_COUNTERS];
    kn_totals pending;
    _Atomic uint64_t flush_due; /* when hits are worth a write (kn_clock_now); 0: none yet */
} kn_stats;

void kn_stats_init(kn_stats *stats);
void kn_stats_deinit(kn_stats *stats);
/* Names the files; KILN_E_NOMEM. */
kiln_status kn_stats_attach(kn_stats *stats, const char *root, kiln_diag *diag);

void kn_stats_add(kn_stats *stats, enum kn_counter counter, uint64_t amount);
void kn_stats_own(const kn_stats *stats, kiln_cache_stats *out_stats);
void kn_stats_moved(kn_stats *stats, const kn_totals *totals);

/* Adds what is pending to the file, waiting at most `patience_ns` for others. `out_record` (may be
 * NULL) is what the file says then. KILN_MISS without a file, KILN_E_BUSY, KILN_E_IO. */
kiln_status kn_stats_flush(kn_stats *stats, uint64_t patience_ns, kn_record *out_record,
                           kiln_diag *diag);
/* The same while the process ends: never waits for the mutex, which may be held by the caller, and
 * says nothing. */
void kn_stats_flush_at_exit(kn_stats *stats, uint64_t patience_ns);
/* The same for hits: only when the last flush is seconds ago. */
bool kn_stats_is_due(kn_stats *stats);
void kn_stats_flush_rarely(kn_stats *stats);
/* Reads the file without changing it; zeros when there is none. KILN_E_IO, KILN_E_CORRUPT. */
kiln_status kn_stats_read(const kn_stats *stats, kn_record *out_record, kiln_diag *diag);

#endif
