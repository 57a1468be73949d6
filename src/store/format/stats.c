/* Counters and running totals. This file must not know what a disk tier or an entry is. */
#include "store/format/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "store/format/checksum.h"
#include "store/format/record_lock.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/random.h"

#define RECORD_VERSION 1u
#define MS UINT64_C(1000000)
#define REWRITES 4 /* of a record whose file others replace meanwhile */
#define HITS_FLUSH_NS (5000 * MS)
#define FIRST_FLUSH_NS (100 * MS) /* the hits of a start are written together, after it */

static const unsigned char magic[8] = {0x89, 'K', 'S', 'T', '\r', '\n', 0x1a, '\n'};

enum {
    AT_CHECKSUM = 8,
    AT_VERSION = 24, /* from here on everything is under the checksum */
    AT_COUNTS = 28,
    AT_FILES = 32,
    AT_BYTES = 40,
    AT_COUNTED_NS = 48,
    AT_SWEPT_NS = 56,
    AT_CREATED_NS = 64,
    AT_COUNTERS = 72,
    AT_WRITER = AT_COUNTERS + 8 * KN_RECORD_COUNTERS,
    AT_COPIED = AT_WRITER + 4,
};

_Static_assert(KN_COUNTERS <= KN_RECORD_COUNTERS, "the record has no room for so many counters");
_Static_assert(AT_COPIED + 4 * KN_RECORD_COPIES == KN_RECORD_SIZE, "the record's layout");

kiln_status kn_record_parse(kn_span bytes, kn_record *out_record)
{
    memset(out_record, 0, sizeof *out_record);
    unsigned char checksum[KN_CHECKSUM_SIZE];
    if (bytes.length != KN_RECORD_SIZE || memcmp(bytes.data, magic, sizeof magic) != 0) {
        return KILN_E_CORRUPT;
    }
    kn_span covered = kn_span_of(bytes.data + AT_VERSION, KN_RECORD_SIZE - AT_VERSION);
    kn_checksum(&covered, 1, checksum);
    if (memcmp(bytes.data + AT_CHECKSUM, checksum, sizeof checksum) != 0 ||
        kn_get_u32(bytes.data + AT_VERSION) != RECORD_VERSION) {
        return KILN_E_CORRUPT;
    }
    out_record->counts = kn_get_u32(bytes.data + AT_COUNTS);
    out_record->files = kn_get_u64(bytes.data + AT_FILES);
    out_record->bytes = kn_get_u64(bytes.data + AT_BYTES);
    out_record->counted_ns = (int64_t)kn_get_u64(bytes.data + AT_COUNTED_NS);
    out_record->swept_ns = (int64_t)kn_get_u64(bytes.data + AT_SWEPT_NS);
    out_record->created_ns = (int64_t)kn_get_u64(bytes.data + AT_CREATED_NS);
    for (size_t i = 0; i < KN_RECORD_COUNTERS; i++) {
        out_record->counters[i] = kn_get_u64(bytes.data + AT_COUNTERS + 8 * i);
    }
    out_record->writer = kn_get_u32(bytes.data + AT_WRITER);
    for (size_t i = 0; i < KN_RECORD_COPIES; i++) {
        out_record->copied[i] = kn_get_u32(bytes.data + AT_COPIED + 4 * i);
    }
    return KILN_OK;
}

void kn_record_write(const kn_record *record, unsigned char out[KN_RECORD_SIZE])
{
    memset(out, 0, KN_RECORD_SIZE);
    memcpy(out, magic, sizeof magic);
    kn_put_u32(out + AT_VERSION, RECORD_VERSION);
    kn_put_u32(out + AT_COUNTS, record->counts);
    kn_put_u64(out + AT_FILES, record->files);
    kn_put_u64(out + AT_BYTES, record->bytes);
    kn_put_u64(out + AT_COUNTED_NS, (uint64_t)record->counted_ns);
    kn_put_u64(out + AT_SWEPT_NS, (uint64_t)record->swept_ns);
    kn_put_u64(out + AT_CREATED_NS, (uint64_t)record->created_ns);
    for (size_t i = 0; i < KN_RECORD_COUNTERS; i++) {
        kn_put_u64(out + AT_COUNTERS + 8 * i, record->counters[i]);
    }
    kn_put_u32(out + AT_WRITER, record->writer);
    for (size_t i = 0; i < KN_RECORD_COPIES; i++) {
        kn_put_u32(out + AT_COPIED + 4 * i, record->copied[i]);
    }
    kn_span covered = kn_span_of(out + AT_VERSION, KN_RECORD_SIZE - AT_VERSION);
    kn_checksum(&covered, 1, out + AT_CHECKSUM);
}

/* --- in memory -------------------------------------------------------------------------------- */

void kn_stats_init(kn_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    kn_mutex_init(&stats->mutex);
}

void kn_stats_deinit(kn_stats *stats)
{
    free(stats->path);
    free(stats->lock_path);
    kn_mutex_deinit(&stats->mutex);
}

kiln_status kn_stats_attach(kn_stats *stats, const char *root, kiln_diag *diag)
{
    stats->path = kn_path_join(root, "stats");
    stats->lock_path = kn_path_join(root, "lock");
    if (stats->path == NULL || stats->lock_path == NULL) {
        free(stats->path);
        free(stats->lock_path);
        stats->path = stats->lock_path = NULL;
        return kn_no_memory(diag, "opening the statistics");
    }
    return KILN_OK;
}

void kn_stats_add(kn_stats *stats, enum kn_counter counter, uint64_t amount)
{
    if (stats != NULL) { /* a forked child without memory has none */
        atomic_fetch_add_explicit(&stats->own[counter], amount, memory_order_relaxed);
    }
}

static void collect_counters(const kn_stats *stats, uint64_t counters[KN_COUNTERS])
{
    for (int i = 0; i < KN_COUNTERS; i++) {
        counters[i] = atomic_load_explicit(&stats->own[i], memory_order_relaxed);
    }
    if (stats->memory_hits != NULL) {
        uint64_t hits = 0, saved = 0;
        stats->memory_hits(stats->memory, &hits, &saved);
        counters[KN_COUNT_hits_memory] += hits;
        counters[KN_COUNT_saved_ns] += saved;
    }
}

uint64_t kn_stats_own(const kn_stats *stats, enum kn_counter counter)
{
    uint64_t counters[KN_COUNTERS];
    collect_counters(stats, counters);
    return counters[counter];
}

static void add_totals(kn_totals *to, const kn_totals *from)
{
    to->files += from->files;
    to->bytes += from->bytes;
    to->counted_ns = from->counted_ns != 0 ? from->counted_ns : to->counted_ns;
    to->swept_ns = from->swept_ns != 0 ? from->swept_ns : to->swept_ns;
}

void kn_stats_moved(kn_stats *stats, const kn_totals *totals)
{
    kn_mutex_lock(&stats->mutex);
    add_totals(&stats->pending, totals);
    kn_mutex_unlock(&stats->mutex);
}

void kn_stats_landed(kn_stats *stats, const kn_landing *landing)
{
    kn_mutex_lock(&stats->mutex);
    if (landing->counts != KN_NOT_ANNOUNCED && stats->landing_count < KN_LANDINGS) {
        stats->landings[stats->landing_count++] = *landing;
    } else {
        stats->pending.files += landing->files;
        stats->pending.bytes += landing->bytes;
    }
    kn_mutex_unlock(&stats->mutex);
}

void kn_stats_departed(kn_stats *stats, const kn_departure *departure)
{
    kn_departure *pending = &stats->departed;
    kn_mutex_lock(&stats->mutex);
    if (pending->counts != departure->counts) {
        *pending = (kn_departure){.counts = departure->counts};
    }
    pending->files += departure->files;
    pending->bytes += departure->bytes;
    kn_mutex_unlock(&stats->mutex);
}

/* --- in the file ------------------------------------------------------------------------------ */

static bool has_count_begun_since(uint64_t counts, uint32_t now)
{
    return (counts + 1) / 2 != ((uint64_t)now + 1) / 2;
}

/* What a count may have missed already is not subtracted again. Totals that are much too high would
 * cost entries that are in use: they are not known any longer, then. */
static void subtract_totals(kn_record *record, const kn_departure *departed)
{
    if (record->counts != departed->counts || departed->counts % 2 != 0) {
        record->counted_ns = departed->files > record->files / 16 ? 0 : record->counted_ns;
        return;
    }
    record->files -= departed->files < record->files ? departed->files : record->files;
    record->bytes -= departed->bytes < record->bytes ? departed->bytes : record->bytes;
}

static void apply_totals(kn_record *record, const kn_addition *add)
{
    const kn_totals *totals = &add->totals;
    int64_t files = (int64_t)record->files + totals->files;
    int64_t bytes = (int64_t)record->bytes + totals->bytes;
    for (size_t i = 0; i < add->landing_count; i++) {
        const kn_landing *landing = &add->landings[i];
        const bool missed = has_count_begun_since(landing->counts, record->counts);
        files += missed ? landing->files : 0;
        bytes += missed ? landing->bytes : 0;
    }
    record->files = files > 0 ? (uint64_t)files : 0;
    record->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    record->counted_ns = totals->counted_ns != 0 ? totals->counted_ns : record->counted_ns;
    record->swept_ns = totals->swept_ns != 0 ? totals->swept_ns : record->swept_ns;
    if (add->departed.files != 0) {
        subtract_totals(record, &add->departed);
    }
}

static void apply_addition(kn_record *record, const kn_addition *add)
{
    for (int i = 0; i < KN_COUNTERS; i++) {
        record->counters[i] += add->counters[i];
    }
    apply_totals(record, add);
    if (add->begins_count) {
        record->counts = (record->counts + 1) | 1;
    } else if (add->ends_count != 0) {
        record->counts++;
    }
    record->writer = add->writer;
}

/* Whether it has come into the file before, by a write whose file was copied and replaced. */
static bool is_added(const kn_record *record, uint32_t writer)
{
    bool added = record->writer == writer;
    for (size_t i = 0; i < KN_RECORD_COPIES; i++) {
        added = added || record->copied[i] == writer;
    }
    return added;
}

/* What a writing needs besides what it adds, and what becomes of it. */
typedef struct writing {
    uint64_t patience_ns;
    const kn_lock_file *guard; /* NULL: none; else nothing is added when it is held no longer */
    bool reset;                /* the record was damaged */
    bool unsure;               /* it failed after it had written something */
    kn_record record;          /* as it was written: others may have changed it since */
} writing;

/* A record that is short is new, or was torn by a crash: nothing in it can be believed. */
static kiln_status read_record(kn_file *file, kn_record *record, writing *how)
{
    unsigned char bytes[KN_RECORD_SIZE];
    const kiln_status status = kn_file_read_at(file, 0, bytes, sizeof bytes);
    if (status == KILN_E_IO) {
        return status;
    }
    if (status == KILN_MISS ||
        kn_record_parse(kn_span_of(bytes, sizeof bytes), record) != KILN_OK) {
        how->reset = status == KILN_OK;
        *record = (kn_record){.created_ns = kn_clock_wall()};
    }
    return KILN_OK;
}

/* KILN_E_CANCELLED: another count has begun. */
static kiln_status add_to_file(kn_file *file, const kn_addition *add, writing *how)
{
    unsigned char bytes[KN_RECORD_SIZE];
    kn_record record;
    const kiln_status status = read_record(file, &record, how);
    if (status != KILN_OK || is_added(&record, add->writer)) {
        return status;
    }
    if (add->ends_count != 0 && record.counts != add->ends_count) {
        return KILN_E_CANCELLED;
    }
    apply_addition(&record, add);
    how->record = record;
    kn_record_write(&record, bytes);
    return kn_file_write_at(file, 0, bytes, sizeof bytes);
}

/* Read, change, write: with the lock held. KILN_MISS: on a file that is there no longer. */
static kiln_status rewrite_record(const kn_stats *stats, const kn_lock_file *lock,
                                  const kn_addition *add, writing *how, kiln_diag *diag)
{
    kn_file *file = NULL;
    kiln_status status = kn_file_open(stats->path, true, &file, diag);
    if (status != KILN_OK) {
        return status == KILN_MISS ? KILN_E_IO : status;
    }
    if (!kn_record_is_locked(lock, stats->path)) { /* it may be the new one that was opened */
        kn_file_close(file);
        return KILN_MISS;
    }
    status = add_to_file(file, add, how);
    if (status != KILN_OK && status != KILN_E_CANCELLED) {
        status = kiln_diag_set(diag, KILN_E_IO, NULL, "writing the cache's statistics", "%s",
                               stats->path);
    }
    kn_file_close(file);
    return status;
}

/* A writer that was stopped in the middle finds its file replaced, and what it wrote perhaps lost:
 * it begins again. KILN_E_CANCELLED: the guard is gone, or the count is not the last one. */
static kiln_status rewrite_locked(const kn_stats *stats, const kn_addition *add, writing *how,
                                  kiln_diag *diag)
{
    kiln_status status = KILN_E_BUSY;
    bool done = false;
    for (int i = 0; i < REWRITES && !done; i++) {
        kn_lock_file *lock = NULL;
        status = kn_record_lock(stats->path, KN_RECORD_STATS, how->patience_ns, &lock);
        if (status == KILN_OK && how->guard != NULL &&
            !kn_record_is_locked(how->guard, stats->path)) {
            status = KILN_E_CANCELLED;
        }
        if (status == KILN_OK) {
            status = rewrite_record(stats, lock, add, how, diag);
        }
        done = status == KILN_OK ? kn_record_is_settled(lock, stats->path) : status != KILN_MISS;
        how->unsure = status == KILN_OK ? !done : how->unsure;
        kn_record_unlock(lock, KN_RECORD_STATS);
    }
    return done ? status : KILN_E_BUSY;
}

static bool is_anything_pending(const kn_stats *stats)
{
    uint64_t now[KN_COUNTERS];
    const kn_totals *totals = &stats->pending;
    collect_counters(stats, now);
    return memcmp(now, stats->flushed, sizeof now) != 0 || totals->files != 0 ||
           totals->bytes != 0 || totals->counted_ns != 0 || totals->swept_ns != 0 ||
           stats->unsure.writer != 0 || stats->landing_count != 0 || stats->departed.files != 0;
}

/* With the mutex held. `begins`: a count. */
static kiln_status flush_held(kn_stats *stats, bool begins, writing *how, kiln_diag *diag)
{
    uint64_t now[KN_COUNTERS];
    if (stats->unsure.writer != 0) {
        kiln_status status = rewrite_locked(stats, &stats->unsure, how, diag);
        how->unsure = false;
        if (status != KILN_OK) {
            return status;
        }
        stats->unsure.writer = 0;
    }
    kn_addition add = {.totals = stats->pending,
                       .departed = stats->departed,
                       .begins_count = begins,
                       .writer = (uint32_t)kn_random_u64() | 1};
    collect_counters(stats, now);
    for (int i = 0; i < KN_COUNTERS; i++) {
        add.counters[i] = now[i] - stats->flushed[i];
    }
    memcpy(add.landings, stats->landings, sizeof add.landings);
    add.landing_count = stats->landing_count;
    kiln_status status = rewrite_locked(stats, &add, how, diag);
    if (status == KILN_OK || how->unsure) {
        memcpy(stats->flushed, now, sizeof now);
        memset(&stats->pending, 0, sizeof stats->pending);
        stats->departed = (kn_departure){.counts = 0};
        stats->landing_count = 0;
    }
    if (status != KILN_OK && how->unsure) {
        stats->unsure = add;
    }
    atomic_store_explicit(&stats->flush_due, kn_clock_now() + HITS_FLUSH_NS, memory_order_relaxed);
    return status;
}

static void report_reset(kn_stats *stats, const writing *how)
{
    if (how->reset) {
        kn_stats_add(stats, KN_COUNT_io_errors, 1);
        kn_log_once(KILN_LOG_WARN, "the cache's statistics in %s were damaged and start again",
                    stats->path);
    }
}

kiln_status kn_stats_flush(kn_stats *stats, uint64_t patience_ns, kn_record *out_record,
                           kiln_diag *diag)
{
    writing how = {.patience_ns = patience_ns};
    kiln_status status = stats->path != NULL ? KILN_OK : KILN_MISS;
    kn_mutex_lock(&stats->mutex);
    if (status == KILN_OK && (out_record != NULL || is_anything_pending(stats))) {
        status = flush_held(stats, false, &how, diag);
    }
    kn_mutex_unlock(&stats->mutex);
    if (out_record != NULL) {
        *out_record = status == KILN_OK ? how.record : (kn_record){.files = 0};
    }
    report_reset(stats, &how);
    return status;
}

kiln_status kn_stats_begin_count(kn_stats *stats, uint64_t patience_ns, kn_record *out_before)
{
    writing how = {.patience_ns = patience_ns};
    kiln_status status = KILN_MISS;
    if (stats->path != NULL) {
        kn_mutex_lock(&stats->mutex);
        status = flush_held(stats, true, &how, NULL);
        kn_mutex_unlock(&stats->mutex);
    }
    *out_before = how.record;
    report_reset(stats, &how);
    return status;
}

kiln_status kn_stats_announce(kn_stats *stats, const kn_totals *coming, uint64_t patience_ns,
                              kn_record *out_record, uint64_t *out_counts)
{
    writing how = {.patience_ns = patience_ns};
    kiln_status status = KILN_MISS;
    *out_counts = KN_NOT_ANNOUNCED;
    if (stats->path != NULL) {
        /* At once: what another thread's flush took along would be announced at an unknown time. */
        kn_mutex_lock(&stats->mutex);
        add_totals(&stats->pending, coming);
        status = flush_held(stats, false, &how, NULL);
        if (status == KILN_OK || how.unsure) {
            *out_counts = how.record.counts;
        } else {
            add_totals(&stats->pending,
                       &(kn_totals){.files = -coming->files, .bytes = -coming->bytes});
        }
        kn_mutex_unlock(&stats->mutex);
    }
    *out_record = how.record;
    report_reset(stats, &how);
    return status;
}

void kn_stats_correct(kn_stats *stats, const kn_correction *correction, uint64_t patience_ns)
{
    writing how = {.patience_ns = patience_ns, .guard = correction->lock};
    const kn_addition add = {.totals = correction->totals,
                             .ends_count = correction->ends_count,
                             .writer = (uint32_t)kn_random_u64() | 1};
    if (stats->path != NULL) {
        kn_mutex_lock(&stats->mutex);
        (void)rewrite_locked(stats, &add, &how, NULL); /* else they stay too high */
        kn_mutex_unlock(&stats->mutex);
    }
}

void kn_stats_flush_at_exit(kn_stats *stats, uint64_t patience_ns)
{
    const uint64_t deadline = kn_clock_now() + patience_ns;
    writing how = {.patience_ns = patience_ns};
    if (stats->path == NULL) {
        return;
    }
    while (!kn_mutex_try(&stats->mutex)) {
        if (kn_clock_now() >= deadline) {
            return;
        }
        kn_clock_sleep(MS);
    }
    if (is_anything_pending(stats)) {
        (void)flush_held(stats, false, &how, NULL);
    }
    kn_mutex_unlock(&stats->mutex);
}

bool kn_stats_is_due(kn_stats *stats)
{
    uint64_t due = atomic_load_explicit(&stats->flush_due, memory_order_relaxed);
    if (stats->path == NULL) {
        return false;
    }
    if (due == 0) {
        /* From the first hit on: opening a driver takes longer than that since the cache's start.
         */
        atomic_compare_exchange_strong(&stats->flush_due, &due, kn_clock_now() + FIRST_FLUSH_NS);
        return false;
    }
    return kn_clock_now_roughly() >= due;
}

void kn_stats_flush_rarely(kn_stats *stats)
{
    if (kn_stats_is_due(stats)) {
        /* Hits are worth a try, not a wait: the next flush takes them along. */
        (void)kn_stats_flush(stats, 0, NULL, NULL);
    }
}

void kn_stats_clear_lock(const kn_stats *stats)
{
    (void)kn_record_clear_the_way(stats->lock_path);
}

kiln_status kn_stats_read(const kn_stats *stats, kn_record *out_record, kiln_diag *diag)
{
    memset(out_record, 0, sizeof *out_record);
    for (int attempt = 0;; attempt++) {
        void *data = NULL;
        size_t size = 0;
        kiln_status status = stats->path != NULL ? kn_file_read(stats->path, KN_RECORD_SIZE, true,
                                                                &data, &size, NULL, diag)
                                                 : KILN_MISS;
        if (status != KILN_OK) {
            return status == KILN_MISS ? KILN_OK : KILN_E_IO;
        }
        status = size == 0 ? KILN_OK : kn_record_parse(kn_span_of(data, size), out_record);
        free(data);
        if (status == KILN_OK) {
            return KILN_OK;
        }
        /* Readers take no lock: what looks damaged may be half of another's write. */
        if (attempt == 5) {
            return kiln_diag_set(diag, KILN_E_CORRUPT, "the next compile starts them afresh",
                                 "reading the cache's statistics", "%s is damaged", stats->path);
        }
        kn_clock_sleep(MS);
    }
}

uint32_t kn_stats_counts(const kn_stats *stats)
{
    kn_record record;
    return kn_stats_read(stats, &record, NULL) == KILN_OK ? record.counts : 1;
}
