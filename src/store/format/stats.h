/* Counters: of one cache object in memory, and of all processes together in `<root>/stats`.
 *
 * The file is one record of 512 bytes (formats.md) that also holds the running totals of the
 * disk tier, so that nobody has to walk the store to know how large it is. It is changed by
 * read-modify-write under a byte of the file itself (record_lock.h). Nobody waits long for that
 * byte: what could not be added stays pending here and goes with the next flush. A damaged record
 * starts again at zero, and totals are then unknown until the disk tier has counted. */
#ifndef KILN_STORE_STATS_H
#define KILN_STORE_STATS_H

#include "kiln/cache.h"
#include "kiln/unstable/counters.h"

#include <stdatomic.h>

#include "base/span.h"
#include "sys/thread.h"

enum kn_counter {
#define KN_COUNTER_NAME(id, name, unit, text) KN_COUNT_##name = id,
    KILN_COUNTER_MAP(KN_COUNTER_NAME)
#undef KN_COUNTER_NAME
        KN_COUNTERS = KILN_COUNTERS
};

#define KN_RECORD_SIZE 512
#define KN_RECORD_COUNTERS 50 /* room for those to come */
#define KN_RECORD_COPIES 9

/* A byte of the lock file that belongs to no key. */
enum { KN_LOCK_COUNT = 2 };

typedef struct kn_record {
    uint64_t files, bytes; /* of the disk tier, as it counts them */
    int64_t counted_ns;    /* when they were last counted afresh; 0: never, totals are unknown */
    int64_t swept_ns;      /* when temporaries were last swept */
    int64_t created_ns;
    uint32_t counts; /* that have begun, twice; less one while one is under way */
    uint64_t counters[KN_RECORD_COUNTERS];
    uint32_t writer; /* a number of the last writer's own */
    /* The last writer of the record of which this file began as a copy, and of those before it; 0:
     * of none. */
    uint32_t copied[KN_RECORD_COPIES];
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

/* Entries that their writer announced when the record said `counts`, and has put there now: a count
 * that has begun since may have missed them. */
#define KN_LANDINGS 8
#define KN_NOT_ANNOUNCED UINT64_MAX /* could not be announced: added when it is there */
typedef struct kn_landing {
    uint64_t counts;
    int64_t files, bytes;
} kn_landing;

/* What was removed after the record said `counts`: a count that is under way, or has begun since,
 * may have missed it already. */
typedef struct kn_departure {
    uint32_t counts;
    uint64_t files, bytes;
} kn_departure;

/* What one flush adds. */
typedef struct kn_addition {
    uint32_t writer; /* a number of its own; 0: nothing */
    uint64_t counters[KN_COUNTERS];
    kn_totals totals;
    kn_landing landings[KN_LANDINGS];
    size_t landing_count;
    kn_departure departed;
    bool begins_count;
    uint32_t ends_count; /* only while that count is under way; 0: at any time */
} kn_addition;

typedef void kn_stats_hits(const void *memory, uint64_t *out_hits, uint64_t *out_saved_ns);

typedef struct kn_stats {
    _Atomic uint64_t own[KN_COUNTERS];
    /* Hits in memory, which it counts itself; NULL: there is no memory tier. */
    kn_stats_hits *memory_hits;
    const void *memory;
    char *path; /* NULL: there is no file */
    char *lock_path;
    kn_mutex mutex; /* guards what follows */
    uint64_t flushed[KN_COUNTERS];
    kn_totals pending;
    kn_landing landings[KN_LANDINGS];
    size_t landing_count;
    kn_departure departed;
    kn_addition unsure;         /* it may be in the file by now, or not */
    _Atomic uint64_t flush_due; /* when hits are worth a write (kn_clock_now); 0: none yet */
} kn_stats;

void kn_stats_init(kn_stats *stats);
void kn_stats_deinit(kn_stats *stats);
/* Names the files; KILN_E_NOMEM. */
kiln_status kn_stats_attach(kn_stats *stats, const char *root, kiln_diag *diag);

void kn_stats_add(kn_stats *stats, enum kn_counter counter, uint64_t amount);
/* What this object counted of one of them. */
uint64_t kn_stats_own(const kn_stats *stats, enum kn_counter counter);
void kn_stats_moved(kn_stats *stats, const kn_totals *totals);
/* With more of them at a time than there is room for, the totals may become too high. */
void kn_stats_landed(kn_stats *stats, const kn_landing *landing);
/* What the record says before something is removed; an odd number where it cannot be read. */
uint32_t kn_stats_counts(const kn_stats *stats);
/* Where counts have come in between, the totals stay too high. */
void kn_stats_departed(kn_stats *stats, const kn_departure *departure);

/* Adds what is pending to the file, waiting at most `patience_ns` for others. `out_record` (may be
 * NULL) is what the file said when that came into it. KILN_MISS without a file, KILN_E_BUSY,
 * KILN_E_IO. */
kiln_status kn_stats_flush(kn_stats *stats, uint64_t patience_ns, kn_record *out_record,
                           kiln_diag *diag);
/* The same with an entry that is about to be put there. *out_counts is for its landing: what the
 * record said when the entry came into it, or KN_NOT_ANNOUNCED. */
kiln_status kn_stats_announce(kn_stats *stats, const kn_totals *coming, uint64_t patience_ns,
                              kn_record *out_record, uint64_t *out_counts);
/* The same before the store is counted: *out_before is what the totals were when the count began,
 * and its `counts` is for the end. */
kiln_status kn_stats_begin_count(kn_stats *stats, uint64_t patience_ns, kn_record *out_before);

struct kn_lock_file;
/* What is added at once, or never. */
typedef struct kn_correction {
    kn_totals totals;
    uint32_t ends_count;             /* only while that count is the last one; 0: at any time */
    const struct kn_lock_file *lock; /* only while that is held (record_lock.h); NULL: none */
} kn_correction;
/* Both are looked at with the file in hand. */
void kn_stats_correct(kn_stats *stats, const kn_correction *correction, uint64_t patience_ns);
/* A flush while the process ends: never waits for the mutex, which may be held by the caller, and
 * says nothing. */
void kn_stats_flush_at_exit(kn_stats *stats, uint64_t patience_ns);
/* A flush of hits: only when the last flush is seconds ago. */
bool kn_stats_is_due(kn_stats *stats);
void kn_stats_flush_rarely(kn_stats *stats);
/* Removes what lies in the place of the lock file, as is done for the record's own. */
void kn_stats_clear_lock(const kn_stats *stats);
/* Reads the file without changing it; zeros when there is none. KILN_E_IO, KILN_E_CORRUPT. */
kiln_status kn_stats_read(const kn_stats *stats, kn_record *out_record, kiln_diag *diag);

#endif
