/* Keeps the disk tier within its bounds: room before a put, eviction by last use. This file must
 * not read entries: a reader that has one open keeps it. */
#include "base/log.h"
#include "store/disk/disk.h"
#include "store/disk/disk_victims.h"
#include "store/format/record_lock.h"
#include "sys/clock.h"

#define MS UINT64_C(1000000)
#define DAY_NS (24 * KN_HOUR_NS)
#define LONG_NS (7 * DAY_NS)
#define FLUSH_PATIENCE (20 * MS)
/* How long a writer waits for another one to make room, before it does that itself. */
#define ROOM_PATIENCE (100 * MS)
#define LONGEST_COUNT (30000 * MS)
/* Stores with more files are evicted in slices, for at most so long a put. */
#define SMALL_STORE 4096u
#define SLICES 256
#define SLICES_NS (20 * MS)

/* --- eviction --------------------------------------------------------------------------------- */

/* A cache that evicts what was used within the hour, over and over, is too small for its purpose:
 * logged once, when half of it has gone that way. */
static void note_evicted(kn_disk *disk, const kn_victims_removed *removed)
{
    const bool small = disk->max_bytes < UINT64_C(1) << 20;
    const unsigned shift = small ? 10 : 20;
    const char *unit = small ? "K" : "M";
    kn_stats_add(disk->stats, KN_COUNT_evicted, removed->entries);
    uint64_t young = atomic_fetch_add(&disk->young_evicted, removed->young_bytes);
    young += removed->young_bytes;
    if (young > disk->max_bytes / 2 && removed->young_bytes > 0 &&
        !atomic_exchange(&disk->said_too_small, true)) {
        kn_log(KILN_LOG_WARN,
               "the disk cache is too small: entries used within the last hour are evicted to make "
               "room; KILN_CACHE_MAX_SIZE is %llu%s, and about %llu%s would hold the working set",
               (unsigned long long)(disk->max_bytes >> shift), unit,
               (unsigned long long)((disk->max_bytes + young) >> shift) + 1, unit);
    }
}

static void tell_trouble(kn_disk *disk, const kiln_diag *diag)
{
    kn_stats_add(disk->stats, KN_COUNT_io_errors, 1);
    kn_log_diag(KILN_LOG_WARN, "the cache could not be cleaned up", diag);
}

static int64_t oldest_allowed(const kn_disk *disk, int64_t now_ns)
{
    return disk->max_age_ns > 0 ? now_ns - disk->max_age_ns : INT64_MIN;
}

/* The evictor's lock; `lock` NULL where there is none. One who was passed over because it stood
 * still reports nothing: another process has counted since, and what is subtracted twice would let
 * the store grow. */
typedef struct evictor {
    kn_disk *disk;
    kn_lock_file *lock;
} evictor;

/* `count`: the one that this is the end of; 0: none. */
static void report_moved(const evictor *e, const kn_totals *totals, uint32_t count)
{
    const kn_correction moved = {.totals = *totals, .ends_count = count, .lock = e->lock};
    kn_stats_correct(e->disk->stats, &moved, FLUSH_PATIENCE);
}

static uint64_t difference_or_zero(uint64_t of, uint64_t without)
{
    return of > without ? of - without : 0;
}

/* Counts afresh and evicts what is over the caps or too old. `before` is what the totals said when
 * the count began: the difference corrects them. `coming` is in them and not yet on disk. What
 * other writers have on disk under a temporary name counts as what it is about to be. */
static kiln_status count_and_evict(const evictor *e, const kn_record *before,
                                   const kn_totals *coming)
{
    kn_disk *disk = e->disk;
    kn_victims list;
    kn_victims_removed removed = {0};
    kiln_diag diag = KILN_DIAG_INIT;
    const kn_disk_temporaries temporaries = kn_disk_sweep(disk);
    const uint64_t more_bytes = temporaries.bytes + (uint64_t)coming->bytes;
    const uint64_t more_files = temporaries.files + (uint64_t)coming->files;
    kiln_status status = kn_victims_list(disk, NULL, -1, KN_VICTIMS_FOR_EVICTION, &list, &diag);
    /* What lies in a directory that cannot be listed must not keep the rest from being evicted. */
    if (status == KILN_OK || status == KILN_E_IO) {
        uint64_t bytes = list.bytes + more_bytes;
        uint64_t files = list.count + more_files;
        bool over = bytes > disk->max_bytes || files > disk->max_files;
        uint64_t room = disk->max_bytes / 10 * 9, places = disk->max_files - disk->max_files / 10;
        const kn_victims_bounds limit = {
            .bytes = over ? difference_or_zero(room, more_bytes) : UINT64_MAX,
            .files = over ? difference_or_zero(places, more_files) : UINT64_MAX,
            .used_after_ns = oldest_allowed(disk, list.now_ns),
            .spare_pinned = true,
            .until_ns = kn_clock_now() + SLICES_NS,
            .then_bytes = difference_or_zero(disk->max_bytes, more_bytes),
            .then_files = difference_or_zero(disk->max_files, more_files)};
        kiln_status gone =
            kn_victims_remove(disk, &list, &limit, &removed, status == KILN_OK ? &diag : NULL);
        status = status == KILN_OK ? gone : status;
        report_moved(
            e,
            &(kn_totals){.files =
                             (int64_t)files - (int64_t)before->files - (int64_t)removed.entries,
                         .bytes = (int64_t)bytes - (int64_t)before->bytes - (int64_t)removed.bytes,
                         .counted_ns = list.now_ns},
            before->counts);
        note_evicted(disk, &removed);
    }
    if (status != KILN_OK) {
        tell_trouble(disk, &diag);
    }
    kiln_diag_clear(&diag);
    kn_victims_deinit(&list);
    return status;
}

/* Takes an eighth of one directory of each target, at least one entry; all that is too old. */
static kiln_status evict_slice(kn_disk *disk, int dir, const kn_totals *coming, uint64_t until_ns,
                               kn_victims_removed *out_removed, kiln_diag *diag)
{
    kn_victims list;
    *out_removed = (kn_victims_removed){0};
    kiln_status status = kn_victims_list(disk, NULL, dir, KN_VICTIMS_FOR_EVICTION, &list, diag);
    if ((status == KILN_OK || status == KILN_E_IO) && list.count > 0) {
        const kn_victims_bounds limit = {
            .bytes = list.bytes - list.bytes / 8,
            .files = list.count - list.count / 8 - (list.count < 8),
            .used_after_ns = oldest_allowed(disk, list.now_ns),
            .spare_pinned = true,
            .until_ns = until_ns,
            .then_bytes = difference_or_zero(list.bytes, (uint64_t)coming->bytes),
            .then_files = difference_or_zero(list.count, (uint64_t)coming->files)};
        kiln_status gone =
            kn_victims_remove(disk, &list, &limit, out_removed, status == KILN_OK ? diag : NULL);
        status = status == KILN_OK ? gone : status;
    }
    kn_victims_deinit(&list);
    return status;
}

static bool is_over(const kn_disk *disk, uint64_t bytes, uint64_t files)
{
    return bytes > disk->max_bytes || files > disk->max_files;
}

/* Keys are digests: every directory is a fair sample of the store. */
static void evict_slices(const evictor *e, const kn_record *record, const kiln_key *key,
                         const kn_totals *coming)
{
    kn_disk *disk = e->disk;
    uint64_t bytes = record->bytes, files = record->files;
    uint64_t end = kn_clock_now() + SLICES_NS;
    kn_totals sum = {0};
    for (int i = 0; i < SLICES && is_over(disk, bytes, files) && kn_clock_now() < end; i++) {
        kn_victims_removed removed;
        kiln_diag diag = KILN_DIAG_INIT;
        if (evict_slice(disk, (key->bytes[0] + i) % SLICES, coming, end, &removed, &diag) !=
            KILN_OK) {
            tell_trouble(disk, &diag);
        }
        kiln_diag_clear(&diag);
        bytes -= removed.bytes < bytes ? removed.bytes : bytes;
        files -= removed.entries < files ? removed.entries : files;
        sum.files -= (int64_t)removed.entries;
        sum.bytes -= (int64_t)removed.bytes;
        note_evicted(disk, &removed);
    }
    report_moved(e, &sum, 0);
}

/* --- maintenance ------------------------------------------------------------------------------ */

static bool is_due(int64_t since_ns, int64_t now_ns, int64_t period_ns)
{
    int64_t age = now_ns - since_ns;
    return age > period_ns || age < -DAY_NS; /* from the future: some clock was wrong */
}

/* While the totals are not known, or have not been put right for long, a put does that itself. */
static bool must_count(const kn_record *record, int64_t now_ns)
{
    return record->counted_ns == 0 || is_due(record->counted_ns, now_ns, LONG_NS);
}

/* As the evictor, by what the totals say now. A count that has begun sets *counts. */
static void maintain_totals(const evictor *e, const kn_record *record, const kiln_key *key,
                            const kn_totals *coming, uint64_t *counts)
{
    kn_disk *disk = e->disk;
    kn_record before;
    int64_t now = kn_clock_wall();
    bool over = is_over(disk, record->bytes, record->files);
    if (must_count(record, now) || (over && record->files <= SMALL_STORE)) {
        if (kn_stats_begin_count(disk->stats, FLUSH_PATIENCE, &before) == KILN_OK) {
            *counts = before.counts;
            (void)count_and_evict(e, &before, coming);
        }
    } else if (over) {
        (void)kn_disk_sweep(disk);
        evict_slices(e, record, key, coming);
    }
    if (is_due(record->swept_ns, now, KN_HOUR_NS)) {
        (void)kn_disk_sweep(disk);
        kn_stats_moved(disk->stats, &(kn_totals){.swept_ns = now});
    }
}

/* How long a put waits to be the evictor: where there is no room, and where no process has counted
 * for long although one seems to. */
static uint64_t choose_patience(kn_disk *disk, bool over, bool uncounted)
{
    const uint64_t now = kn_clock_now();
    uint64_t since = atomic_load(&disk->uncounted_since);
    if (!uncounted) {
        atomic_store(&disk->uncounted_since, 0);
    } else if (since == 0) {
        atomic_store(&disk->uncounted_since, now);
    }
    return over || (uncounted && since != 0 && now - since > LONGEST_COUNT) ? ROOM_PATIENCE : 0;
}

bool kn_disk_make_room(kn_disk *disk, const kiln_key *key, const kn_totals *coming,
                       uint64_t *out_counts)
{
    kn_record record;
    evictor e = {.disk = disk};
    if (kn_stats_announce(disk->stats, coming, FLUSH_PATIENCE, &record, out_counts) != KILN_OK) {
        return false;
    }
    int64_t now = kn_clock_wall();
    bool over = is_over(disk, record.bytes, record.files);
    bool uncounted = must_count(&record, now);
    bool due = uncounted || is_due(record.swept_ns, now, KN_HOUR_NS);
    uint64_t patience = choose_patience(disk, over, uncounted);
    if ((over || due) &&
        kn_record_lock(disk->stats->path, KN_RECORD_EVICT, patience, &e.lock) == KILN_OK) {
        /* Another process may have done it meanwhile. */
        if (kn_stats_flush(disk->stats, FLUSH_PATIENCE, &record, NULL) == KILN_OK) {
            maintain_totals(&e, &record, key, coming, out_counts);
            (void)kn_stats_flush(disk->stats, FLUSH_PATIENCE, NULL, NULL);
        }
        kn_record_unlock(e.lock, KN_RECORD_EVICT);
    }
    return !must_count(&record, now) && is_due(record.counted_ns, now, DAY_NS);
}
