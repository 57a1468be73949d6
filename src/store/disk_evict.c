/* Keeps the disk tier within its bounds: eviction by last use, prune and clear, and the sweep of
 * temporaries that killed writers left. Must not read entries: whoever has one open keeps it. */
#include "store/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "store/disk_scan.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/lock.h"

#define MS UINT64_C(1000000)
#define DAY_NS (24 * KN_HOUR_NS)
#define FLUSH_PATIENCE (100 * MS)
#define MAX_CANDIDATES ((size_t)1 << 26)

typedef struct candidate {
    kiln_key key;
    uint64_t weight;
    int64_t used_ns;
    size_t target; /* index into names */
} candidate;

typedef struct candidates {
    candidate *items;
    size_t count, room;
    char (*names)[65];
    size_t name_count;
    uint64_t bytes;
    int64_t now_ns;
} candidates;

static void candidates_deinit(candidates *list)
{
    free(list->items);
    free(list->names);
}

/* The scan goes target by target, so that a new name is always the last one. */
static bool add_name(candidates *list, const char *target)
{
    if (list->name_count > 0 && strcmp(list->names[list->name_count - 1], target) == 0) {
        return true;
    }
    void *larger = realloc(list->names, (list->name_count + 1) * sizeof *list->names);
    if (larger == NULL) {
        return false;
    }
    list->names = larger;
    kn_text_put(list->names[list->name_count++], sizeof *list->names, target);
    return true;
}

static kiln_status collect(void *user, const kn_disk_file *file)
{
    candidates *list = user;
    if (list->count == list->room) {
        size_t room = list->room > 0 ? list->room * 2 : 1024;
        void *larger =
            room <= MAX_CANDIDATES ? realloc(list->items, room * sizeof *list->items) : NULL;
        if (larger == NULL) {
            return KILN_E_NOMEM;
        }
        list->items = larger;
        list->room = room;
    }
    if (!add_name(list, file->target)) {
        return KILN_E_NOMEM;
    }
    /* A stamp from the future (another host's clock) must not make an entry immortal. */
    bool future = file->used_ns > list->now_ns + KN_HOUR_NS;
    list->items[list->count++] = (candidate){.key = file->key,
                                             .weight = kn_disk_weight(file->size),
                                             .used_ns = future ? 0 : file->used_ns,
                                             .target = list->name_count - 1};
    list->bytes += kn_disk_weight(file->size);
    return KILN_OK;
}

static int by_use(const void *a, const void *b)
{
    int64_t x = ((const candidate *)a)->used_ns, y = ((const candidate *)b)->used_ns;
    return (x > y) - (x < y);
}

static kiln_status scan(kn_disk *disk, const char *target, candidates *list, kiln_diag *diag)
{
    *list = (candidates){.now_ns = kn_clock_wall()};
    kiln_status status = kn_disk_scan(disk, target, collect, list, diag);
    if (status == KILN_OK && list->count > 0) {
        qsort(list->items, list->count, sizeof *list->items, by_use);
    }
    return status;
}

/* What may stay. */
typedef struct bounds {
    uint64_t bytes, files;
    int64_t used_after_ns; /* INT64_MIN: any age */
} bounds;

/* Removes the least recently used until the rest is within bounds. */
static kiln_status shrink(kn_disk *disk, const candidates *list, const bounds *limit,
                          kiln_prune_result *result, kiln_diag *diag)
{
    char path[KN_DISK_PATH];
    uint64_t bytes = list->bytes, files = list->count;
    kiln_status failure = KILN_OK;
    for (size_t i = 0; i < list->count; i++) {
        const candidate *item = &list->items[i];
        if (bytes <= limit->bytes && files <= limit->files &&
            item->used_ns >= limit->used_after_ns) {
            break;
        }
        kn_disk_entry_path(disk, list->names[item->target], &item->key, path);
        kiln_status status = kn_file_remove(path, failure == KILN_OK ? diag : NULL);
        if (status == KILN_OK) {
            result->entries_removed++;
            result->bytes_removed += item->weight;
        } else if (status != KILN_MISS) {
            failure = status;
            continue; /* it still takes its room */
        }
        bytes -= item->weight;
        files--;
    }
    return failure;
}

/* --- temporaries -------------------------------------------------------------------------------
 */

typedef struct sweep {
    const kn_disk *disk;
    int64_t now_ns;
    uint64_t removed;
} sweep;

static kiln_status sweep_one(void *user, const char *name)
{
    sweep *s = user;
    char path[KN_DISK_PATH];
    kn_file_facts facts;
    if (strlen(name) > 200) {
        return KILN_OK;
    }
    kn_text_putf(path, sizeof path, "%s/tmp/%s", s->disk->root, name);
    if (kn_file_stat(path, false, &facts, NULL) != KILN_OK || facts.kind == KN_FILE_FOLDER) {
        return KILN_OK;
    }
    int64_t age = s->now_ns - facts.mtime_ns;
    /* Nobody writes one entry for an hour. One from the future cannot be judged by age for long. */
    if ((age > KN_HOUR_NS || age < -DAY_NS) && kn_file_remove(path, NULL) == KILN_OK) {
        s->removed++;
    }
    return KILN_OK;
}

static uint64_t sweep_temporaries(const kn_disk *disk)
{
    char folder[KN_DISK_PATH];
    sweep s = {.disk = disk, .now_ns = kn_clock_wall()};
    kn_disk_path(disk, "tmp", folder);
    /* A folder that cannot be listed now is swept another time. */
    (void)kn_file_list(folder, sweep_one, &s, NULL);
    if (s.removed > 0) {
        kn_log(KILN_LOG_INFO, "swept %llu temporary files of killed writers from %s",
               (unsigned long long)s.removed, folder);
    }
    return s.removed;
}

/* --- maintenance -------------------------------------------------------------------------------
 */

/* KILN_E_BUSY when another process is at it. Without locks, two may be; that is harmless. */
static kiln_status become_evictor(const kn_disk *disk, kn_lock_file **out_lock)
{
    *out_lock = NULL;
    kn_lock_file *lock = NULL;
    char path[KN_DISK_PATH];
    kn_disk_path(disk, "lock", path);
    if (kn_lock_file_open(path, &lock, NULL) != KILN_OK) {
        return KILN_E_IO;
    }
    kiln_status status = kn_lock_try(lock, KN_LOCK_EVICT);
    if (status != KILN_OK && status != KILN_E_UNSUPPORTED) {
        kn_lock_file_close(lock);
        return status;
    }
    *out_lock = lock;
    return KILN_OK;
}

static void retire(kn_lock_file *lock)
{
    kn_lock_drop(lock, KN_LOCK_EVICT);
    kn_lock_file_close(lock);
}

/* Counts afresh and evicts what is over the caps. `before` is what the totals said when the scan
 * began: the difference corrects them, so that what others put meanwhile stays counted. */
static void count_and_evict(kn_disk *disk, const kn_record *before)
{
    candidates list;
    kiln_prune_result result = {0};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = scan(disk, NULL, &list, &diag);
    if (status == KILN_OK) {
        bool over = list.bytes > disk->max_bytes || list.count > disk->max_files;
        bounds limit = {over ? disk->max_bytes / 10 * 9 : UINT64_MAX,
                        over ? disk->max_files - disk->max_files / 10 : UINT64_MAX, INT64_MIN};
        status = shrink(disk, &list, &limit, &result, &diag);
        kn_totals moved = {
            .files = (int64_t)list.count - (int64_t)before->files - (int64_t)result.entries_removed,
            .bytes = (int64_t)list.bytes - (int64_t)before->bytes - (int64_t)result.bytes_removed,
            .counted_ns = list.now_ns};
        kn_stats_moved(disk->stats, &moved);
        kn_stats_add(disk->stats, KN_COUNT_evicted, result.entries_removed);
    }
    if (status != KILN_OK) {
        kn_stats_add(disk->stats, KN_COUNT_io_errors, 1);
        kn_log_diag(KILN_LOG_WARN, "the cache could not be cleaned up", &diag);
    }
    kiln_diag_clear(&diag);
    candidates_deinit(&list);
}

static bool is_over(const kn_disk *disk, const kn_record *record)
{
    return record->bytes > disk->max_bytes || record->files > disk->max_files;
}

static bool is_due(int64_t since_ns, int64_t now_ns, int64_t period_ns)
{
    int64_t age = now_ns - since_ns;
    return age > period_ns || age < -DAY_NS; /* from the future: somebody's clock was wrong */
}

void kn_disk_maintain(kn_disk *disk, const kn_record *record)
{
    int64_t now = kn_clock_wall();
    bool count =
        record->counted_ns == 0 || is_due(record->counted_ns, now, DAY_NS) || is_over(disk, record);
    bool sweep_now = is_due(record->swept_ns, now, KN_HOUR_NS);
    kn_lock_file *lock = NULL;
    if ((!count && !sweep_now) || become_evictor(disk, &lock) != KILN_OK) {
        return;
    }
    kn_record fresh;
    /* Another process may have done it since the caller looked; what is pending here goes first, so
     * that the record can be compared with what is there. */
    if (kn_stats_flush(disk->stats, FLUSH_PATIENCE, &fresh, NULL) == KILN_OK) {
        if (count && (fresh.counted_ns == record->counted_ns || is_over(disk, &fresh))) {
            count_and_evict(disk, &fresh);
        }
        if (sweep_now && fresh.swept_ns == record->swept_ns) {
            (void)sweep_temporaries(disk);
            kn_stats_moved(disk->stats, &(kn_totals){.swept_ns = now});
        }
        /* What stays pending goes with the next flush. */
        (void)kn_stats_flush(disk->stats, FLUSH_PATIENCE, NULL, NULL);
    }
    retire(lock);
}

/* Takes away the folders that clear has emptied. A writer who needs one makes it again. */
static kiln_status remove_prefix(void *user, const char *name)
{
    const char *folder = user;
    char path[KN_DISK_PATH];
    if (strlen(name) == 2) {
        kn_text_putf(path, sizeof path, "%s/%.2s", folder, name);
        (void)kn_file_remove_folder(path);
    }
    return KILN_OK;
}

static void remove_folders(const kn_disk *disk, const candidates *list)
{
    for (size_t i = 0; i < list->name_count; i++) {
        char folder[KN_DISK_PATH];
        kn_text_putf(folder, sizeof folder, "%s/v1/%s", disk->root, list->names[i]);
        (void)kn_file_list(folder, remove_prefix, folder, NULL);
        (void)kn_file_remove_folder(folder);
    }
}

kiln_status kn_disk_prune(kn_disk *disk, const kiln_prune_options *options, bool everything,
                          kiln_prune_result *out_result, kiln_diag *diag)
{
    candidates list;
    kiln_prune_result result = {0};
    bounds limit = {everything ? 0 : options->max_bytes, UINT64_MAX, INT64_MIN};
    kiln_status status = scan(disk, everything ? NULL : options->target, &list, diag);
    if (status == KILN_OK) {
        if (!everything && options->max_age_ns != 0) {
            uint64_t now = list.now_ns > 0 ? (uint64_t)list.now_ns : 0;
            limit.used_after_ns =
                options->max_age_ns < now ? (int64_t)(now - options->max_age_ns) : INT64_MIN;
        }
        result.entries_seen = list.count;
        result.bytes_seen = list.bytes;
        if (everything) {
            limit.files = 0;
        }
        status = shrink(disk, &list, &limit, &result, diag);
        result.temporaries_removed = sweep_temporaries(disk);
        if (everything) {
            remove_folders(disk, &list);
        }
        kn_stats_moved(disk->stats, &(kn_totals){.files = -(int64_t)result.entries_removed,
                                                 .bytes = -(int64_t)result.bytes_removed});
        if (!everything) {
            kn_stats_add(disk->stats, KN_COUNT_evicted, result.entries_removed);
        }
        (void)kn_stats_flush(disk->stats, FLUSH_PATIENCE, NULL, NULL);
    } else {
        (void)kiln_diag_set(diag, status, NULL, "walking the cache", "%s", disk->root);
    }
    candidates_deinit(&list);
    *out_result = result;
    return status;
}
