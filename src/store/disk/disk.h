/* The disk tier: `<root>/v1/<target>/<2 hex>/<62 hex>.kiln`, published by rename, verified on every
 * read.
 *
 * A key alone names an entry, but the directory starts with the target, which is in the recipe and
 * not in the key. A caller that has a recipe looks in one place. For a key alone, the targets seen
 * so far are tried one after the other (a machine has few); when none has it and the directory of
 * targets has changed since it was listed, it is listed again and the new ones are tried.
 *
 * A root may be removed and made again by others while the program runs: before each put it is
 * looked at, and one that is not the directory that was claimed goes through the same checks again.
 * An entry that belongs to another user is not read.
 *
 * Nothing is made on disk before the first put. Entries are counted as whole blocks of 4 KiB. The
 * last use is the file's mtime, moved at most once an hour.
 *
 * The functions are in disk.c, but for disk_root.c (the root, its space, what is pinned),
 * disk_lacks.c, disk_evict.c (make_room), disk_janitor.c, disk_temporaries.c (sweep, count),
 * disk_prune.c, and disk_walk.c (walk, inspect, load, verify). */
#ifndef KILN_STORE_DISK_H
#define KILN_STORE_DISK_H

#include "kiln/cache.h"
#include "kiln/unstable/admin.h"

#include <stdatomic.h>

#include "store/format/stats.h"
#include "store/format/tier.h"
#include "sys/file.h"
#include "sys/thread.h"

struct kn_entry;

#define KN_DISK_PATH 4096
#define KN_DISK_ROOT 3840 /* leaves room for the rest of a path */
#define KN_DISK_BLOCK 4096u
#define KN_TARGET_LENGTH 64u /* of a target's name, at most */
#define KN_HOUR_NS INT64_C(3600000000000)

/* Where entries of a target are read over and over, its directory is held open. */
typedef struct kn_disk_target {
    struct kn_disk_target *next;
    char name[KN_TARGET_LENGTH + 1];
    _Atomic uint32_t hits;
    _Atomic(struct kn_held_dir *) dir; /* opened once; NULL: not yet */
    _Atomic bool stale;                /* the path leads elsewhere by now */
    /* Which of its 256 directories there were, for disk_lacks.c. */
    _Atomic uint32_t asked;
    _Atomic uint32_t listed_puts;  /* the disk's count of puts before they were listed */
    _Atomic uint64_t listed_until; /* kn_clock_now; 0: they were not */
    _Atomic uint64_t listed[4];
} kn_disk_target;

/* What is due is done in parallel with the puts; guarded by the disk's mutex. */
typedef struct kn_disk_janitor {
    kn_thread *thread; /* NULL: not started */
    bool done;
    kn_cond changed;
    _Atomic bool stop;
    uint64_t grace_ns; /* how long closing waits for it before it stops it */
} kn_disk_janitor;

typedef struct kn_disk {
    char *root;
    size_t root_length;
    uint64_t max_bytes, max_files;
    bool read_only;
    bool sync;
    uint64_t min_free;  /* 0: by the size of the file system; UINT64_MAX: no floor */
    int64_t max_age_ns; /* 0: any age */
    kn_stats *stats;
    /* What must not be evicted; NULL: nothing. */
    bool (*is_pinned)(void *user, const kiln_key *key);
    void *pinned_user;
    /* Called by slow operations; may be NULL. */
    kiln_cache_progress_fn *progress;
    void *progress_user;
    _Atomic uint64_t young_evicted; /* bytes used within the hour before they were evicted */
    _Atomic bool said_too_small;
    _Atomic uint64_t uncounted_since; /* kn_clock_now; 0: the totals are known */
    /* Targets known: grows at the head, is never changed after it. */
    _Atomic(kn_disk_target *) targets;
    kn_mutex mutex; /* guards growing, and what follows */
    int64_t listed_mtime_ns, listed_at_ns;
    uint64_t root_inode, root_device; /* of the directory that was claimed; 0: not yet seen */
    _Atomic uint32_t owner;           /* of that directory; UINT32_MAX: not yet seen */
    _Atomic uint32_t puts;            /* of this object */
    kn_disk_janitor janitor;
} kn_disk;

typedef struct kn_disk_options {
    const char *root; /* claimed (sys/paths.h) */
    uint64_t max_bytes, max_files;
    uint64_t min_free;
    int64_t max_age_ns;
    bool read_only;
    bool sync;
} kn_disk_options;

/* `stats` is borrowed and counts everything. KILN_E_NOMEM, KILN_E_UNAVAILABLE (path too long). */
kiln_status kn_disk_open(const kn_disk_options *options, kn_stats *stats, kn_disk **out_disk,
                         kiln_diag *diag);
void kn_disk_close(kn_disk *disk);
extern const kn_tier_ops kn_disk_ops;
/* As a tier, with the operations that it takes. */
kn_tier kn_disk_tier(kn_disk *disk);

/* Writes the path of an entry, of a directory of the root ("tmp"), or of a target's. */
void kn_disk_entry_path(const kn_disk *disk, const char *target, const kiln_key *key,
                        char path[KN_DISK_PATH]);
void kn_disk_path(const kn_disk *disk, const char *name, char path[KN_DISK_PATH]);
uint64_t kn_disk_weight(uint64_t file_size);

/* The target whose directory has the key, or NULL. Borrowed from the disk. */
const char *kn_disk_locate(kn_disk *disk, const kiln_key *key);

/* Before a put: is the root still ours, and is there room on the file system? KILN_E_UNAVAILABLE
 * with the reason. */
kiln_status kn_disk_check_root(kn_disk *disk, kiln_diag *diag);
/* Before anything else is changed below the root, or believed to be wrong there: it makes none, and
 * claims one that has come, or was exchanged, meanwhile. */
bool kn_disk_root_stands(kn_disk *disk);
/* Only looks: it makes no root, and waits for no lock (then it says no). */
bool kn_disk_is_root_ours(kn_disk *disk);
kiln_status kn_disk_check_space(const kn_disk *disk, uint64_t coming, kiln_diag *diag);

/* The row of a target, made where there is none yet; NULL without memory, or if it is not a name of
 * a target. */
kn_disk_target *kn_disk_need_target(kn_disk *disk, const char *name);
/* See kn_tier_ops. Another process' entry is passed over for as long as that; this object's are
 * not. */
bool kn_disk_lacks(void *disk, const kiln_key *key, const char *target);

/* Whether nothing lies in the root that kiln did not name. */
bool kn_disk_is_root_all_ours(const kn_disk *disk);
/* Whether the names in the root are of the kind that they must be. KILN_E_UNAVAILABLE. */
kiln_status kn_disk_examine(const kn_disk *disk, kiln_diag *diag);

/* Before a put of `coming` (files and bytes): adds it to the totals, so that a writer that is
 * killed leaves them too high and not too low, and then evicts or sweeps where they say that it is
 * time. One process at a time: while there is no room, the others wait for it a moment, so that no
 * writer is ahead by more than one entry. A small store is evicted down to 90%, or, where that
 * takes long, as far as it must; a large one in slices, from the directory of `key` on, so that no
 * put waits for a walk over all of it. True when the janitor is due: after the put, so that it
 * finds it. *out_counts is for kn_stats_landed, after the put. */
bool kn_disk_make_room(kn_disk *disk, const kiln_key *key, const kn_totals *coming,
                       uint64_t *out_counts);
/* Counts the store afresh and drops what is too old, on a thread of its own, unless another process
 * is at it. */
void kn_disk_janitor_start(kn_disk *disk);
void kn_disk_janitor_end(kn_disk *disk);
/* Whether this object's user has pinned the key. */
bool kn_disk_is_pinned(const kn_disk *disk, const kiln_key *key);
/* Moves the stamp of an entry that was used elsewhere, if it is an hour old. */
void kn_disk_stamp(kn_disk *disk, const kiln_key *key);
/* Temporaries that have a name: those that stay, and those that a sweep has removed because their
 * writers are gone, or they are an hour old. Bytes are whole blocks, as entries' are. */
typedef struct kn_disk_temporaries {
    uint64_t files, bytes;
    uint64_t removed, removed_bytes;
} kn_disk_temporaries;
kn_disk_temporaries kn_disk_sweep(const kn_disk *disk);
kn_disk_temporaries kn_disk_count_temporaries(const kn_disk *disk);
kiln_status kn_disk_prune(kn_disk *disk, const kiln_prune_options *options, bool everything,
                          kiln_prune_result *out_result, kiln_diag *diag);

/* What it would remove. */
kiln_status kn_disk_prune_plan(kn_disk *disk, const kiln_prune_options *options,
                               kiln_prune_result *out_result, kiln_diag *diag);

kiln_status kn_disk_walk(kn_disk *disk, const char *target, kiln_entry_fn *visit, void *user,
                         kiln_diag *diag);
kiln_status kn_disk_inspect(kn_disk *disk, const kiln_key *key, kiln_entry_fn *visit, void *user,
                            kiln_diag *diag);
/* Reads one entry whole, without stamping it. Of *out_entry the spans are void: they are in the
 * blob. KILN_MISS, KILN_E_CORRUPT (left in place), KILN_E_IO, KILN_E_NOMEM. */
kiln_status kn_disk_load(kn_disk *disk, const kiln_key *key, struct kn_entry *out_entry,
                         kiln_blob **out_blob, kiln_diag *diag);
kiln_status kn_disk_verify(kn_disk *disk, bool remove, kiln_verify_result *out_result,
                           kiln_diag *diag);

#endif
