/* The janitor: a thread that does what is due once a day or once an hour, so that no put waits for
 * a walk over the whole store. This file must not make room: disk_evict.c does. */
#include "store/disk/disk.h"

#include "base/log.h"
#include "store/disk/disk_scan.h"
#include "store/disk/losses.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/lock.h"

#define MS UINT64_C(1000000)
#define FLUSH_PATIENCE (20 * MS)

typedef struct count {
    kn_disk *disk;
    kn_totals there;   /* what stays */
    int64_t oldest_ns; /* what was last used before goes */
    int64_t newest_ns; /* stamps from the future do not make immortal */
    kn_totals evicted;
    kn_file *losses;
} count;

static bool is_to_stop(kn_disk *disk)
{
    return atomic_load_explicit(&disk->janitor.stop, memory_order_relaxed);
}

static kiln_status count_one(void *user, const kn_disk_file *file)
{
    count *c = user;
    const bool old = file->used_ns < c->oldest_ns || file->used_ns > c->newest_ns;
    if (is_to_stop(c->disk)) {
        return KILN_E_CANCELLED;
    }
    if (old && c->oldest_ns != INT64_MIN && !kn_disk_is_pinned(c->disk, &file->key) &&
        kn_file_remove(file->path, NULL) == KILN_OK) {
        c->losses = c->losses != NULL ? c->losses : kn_losses_open(c->disk->root);
        kn_losses_note(c->losses, &file->key, KN_LOSS_EVICTED);
        c->evicted.files++;
        c->evicted.bytes += (int64_t)kn_disk_weight(file->size);
        return KILN_OK;
    }
    c->there.files++;
    c->there.bytes += (int64_t)kn_disk_weight(file->size);
    return KILN_OK;
}

static int64_t lesser_of(uint64_t a, uint64_t b)
{
    return (int64_t)(a < b ? a : b);
}

/* What others put or removed during the walk may have been seen by it or not. The totals get the
 * larger of both answers: too high is put right tomorrow, too low would let the store grow. Where
 * another process has begun to count meanwhile, its count is the better one. */
static void correct_totals(kn_disk *disk, const count *c, const kn_record *before,
                           const kn_record *after)
{
    const kn_correction correction = {
        .totals = {.files = c->there.files - lesser_of(before->files, after->files),
                   .bytes = c->there.bytes - lesser_of(before->bytes, after->bytes),
                   .counted_ns = kn_clock_wall()},
        .ends_count = before->counts};
    kn_stats_correct(disk->stats, &correction, FLUSH_PATIENCE);
}

static void count_afresh(kn_disk *disk)
{
    kn_record before, after;
    const int64_t now = kn_clock_wall();
    count c = {.disk = disk,
               .oldest_ns = disk->max_age_ns > 0 ? now - disk->max_age_ns : INT64_MIN,
               .newest_ns = now + KN_HOUR_NS};
    kiln_status status = kn_stats_begin_count(disk->stats, FLUSH_PATIENCE, &before);
    const kn_disk_temporaries temporaries = kn_disk_sweep(disk);
    c.there.files += (int64_t)temporaries.files;
    c.there.bytes += (int64_t)temporaries.bytes;
    if (status == KILN_OK) {
        status = kn_disk_scan(disk, NULL, -1, count_one, &c, NULL);
    }
    if (status == KILN_OK) {
        status = kn_stats_flush(disk->stats, FLUSH_PATIENCE, &after, NULL);
    }
    if (status == KILN_OK) {
        correct_totals(disk, &c, &before, &after);
    } else { /* no count, but what was removed is gone */
        const kn_correction evicted = {
            .totals = {.files = -c.evicted.files, .bytes = -c.evicted.bytes},
            .ends_count = before.counts};
        kn_stats_correct(disk->stats, &evicted, FLUSH_PATIENCE);
    }
    kn_stats_add(disk->stats, KN_COUNT_evicted, (uint64_t)c.evicted.files);
    kn_losses_close(c.losses);
}

/* One process at a time; what is busy or fails is for the next one to do. */
static void run_janitor(void *user)
{
    kn_disk *disk = user;
    kn_lock_file *lock = NULL;
    char path[KN_DISK_PATH];
    kn_disk_path(disk, "lock", path);
    kiln_status status = kn_lock_file_open(path, &lock, NULL);
    if (status == KILN_OK) {
        status = kn_lock_try(lock, KN_LOCK_COUNT);
    }
    if (status == KILN_OK || status == KILN_E_UNSUPPORTED) {
        count_afresh(disk);
        (void)kn_stats_flush(disk->stats, FLUSH_PATIENCE, NULL, NULL);
        kn_lock_drop(lock, KN_LOCK_COUNT);
    }
    kn_lock_file_close(lock);
    kn_mutex_lock(&disk->mutex);
    disk->janitor.done = true;
    kn_cond_broadcast(&disk->janitor.changed);
    kn_mutex_unlock(&disk->mutex);
}

/* With the mutex held. */
static void join_janitor(kn_disk *disk)
{
    kn_thread *thread = disk->janitor.thread;
    disk->janitor.thread = NULL;
    kn_mutex_unlock(&disk->mutex);
    kn_thread_join(thread);
    kn_mutex_lock(&disk->mutex);
}

void kn_disk_janitor_start(kn_disk *disk)
{
    kn_mutex_lock(&disk->mutex);
    if (disk->janitor.thread != NULL && disk->janitor.done) {
        join_janitor(disk);
    }
    if (disk->janitor.thread == NULL) {
        disk->janitor.done = false;
        /* Without a thread it stays due. */
        (void)kn_thread_start(run_janitor, disk, &disk->janitor.thread, NULL);
    }
    kn_mutex_unlock(&disk->mutex);
}

void kn_disk_janitor_end(kn_disk *disk)
{
    const uint64_t now = kn_clock_now();
    const uint64_t grace = disk->janitor.grace_ns;
    const uint64_t deadline = grace < UINT64_MAX - now ? now + grace : UINT64_MAX;
    kn_mutex_lock(&disk->mutex);
    if (disk->janitor.thread != NULL) {
        while (!disk->janitor.done &&
               kn_cond_wait_until(&disk->janitor.changed, &disk->mutex, deadline)) {
        }
        atomic_store(&disk->janitor.stop, true);
        join_janitor(disk);
    }
    kn_mutex_unlock(&disk->mutex);
}
