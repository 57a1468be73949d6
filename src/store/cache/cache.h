/* The cache object behind kiln/cache.h, and what core needs of it besides.
 *
 * The functions are in cache.c, but for cache_options.c (the defaults), cache_root.c (find_root,
 * namespace_valid), cache_exit.c (enlist, delist), contains.c (glance, reread, count),
 * cache_admin.c (need_disk, drop), pins.c (flush_rarely, stamp), misses.c (count_miss), bypass.c
 * (count_bypass), load_watch.c (load_begin, open_begin, load_end, load_cancel) and turn.c
 * (turn_begin, turn_end). */
#ifndef KILN_STORE_CACHE_H
#define KILN_STORE_CACHE_H

#include "kiln/cache.h"
#include "kiln/unstable/admin.h"
#include "kiln/unstable/counters.h"
#include "kiln/unstable/memory.h"

#include "exec/flight.h"
#include "store/cache/stack.h"
#include "store/disk/disk.h"
#include "store/disk/loads.h"
#include "store/format/stats.h"
#include "store/pack/packs.h"
#include "store/remote/remotes.h"
#include "sys/fork.h"

/* How long a write of the counters that must not be lost waits for other processes: 200 ms. */
#define KN_CACHE_PATIENCE UINT64_C(200000000)

/* What other layers keep with a cache and store before it goes, one of each kind. `end` is called
 * once, first of all when the cache is destroyed, in this order; it may use the cache and the
 * companions after it, and frees its own. */
typedef enum kn_companion_kind {
    KN_COMPANION_KEPT,      /* apis/opencl/dropin/kept.c */
    KN_COMPANION_COMPILERS, /* dropin/rtc_compilers.c */
    KN_COMPANION_RECORDER,  /* record/recorder.c */
    KN_COMPANIONS,
} kn_companion_kind;

typedef struct kn_cache_companion {
    void (*end)(struct kn_cache_companion *companion, kiln_cache *cache);
} kn_cache_companion;

/* After a fork the child finds the locks in any state and the table half changed: it leaves all of
 * that where it is, for good, and starts with fresh parts (kn_cache_renew). What it keeps is what
 * nobody changes after create. */
struct kiln_cache {
    kiln_cache_options options; /* root is `root`, record is `recording` */
    char *root;                 /* "" without a disk tier */
    char *pack_list;            /* NULL without packs */
    char *remote_list;          /* NULL without remotes */
    char *recording;            /* NULL: nothing is recorded */
    char disk_reason[1536];
    kiln_cache_progress_fn *progress;
    void *progress_user;
    kn_fork_guard guard;
    /* A child leaves the parent's where they are. */
    _Atomic(kn_cache_companion *) companions[KN_COMPANIONS];
    _Atomic uintptr_t *exit_slot; /* of cache_exit.c; NULL: none */
    atomic_bool told_bypass;      /* one line about bypasses is enough */
    /* renewed in a child: */
    kn_stats *stats;
    kn_stack stack;
    kn_disk *disk;       /* owned by the stack; NULL without */
    kn_packs *packs;     /* the same */
    kn_remotes *remotes; /* NULL without */
    kn_flight *flight;
    _Atomic uint64_t stamped_at; /* kn_clock_now */
    _Atomic(kn_loads *) loads;   /* NULL: none, or not opened yet */
    kn_mutex loads_mutex;
    bool loads_tried; /* guarded by that */
};

/* False when memory ran out in a child: the cache then goes on disabled. */
void kn_cache_renew(kiln_cache *cache);
static inline void kn_cache_check_fork(kiln_cache *cache)
{
    if (kn_fork_noticed(&cache->guard)) {
        kn_cache_renew(cache);
    }
}

/* A cache that is enlisted has its counters written when the process ends without destroying it
 * (sys/unload.h). Delist comes before the first part of it goes. */
void kn_cache_enlist(kiln_cache *cache);
void kn_cache_delist(kiln_cache *cache);

/* The companion, NULL if there is none yet; and makes `companion` it, unless there is one already:
 * what is returned is the one that is there. */
kn_cache_companion *kn_cache_companion_of(kiln_cache *cache, kn_companion_kind kind);
kn_cache_companion *kn_cache_companion_set(kiln_cache *cache, kn_companion_kind kind,
                                           kn_cache_companion *companion);

/* What kiln_cache_options_init starts from, without the environment. */
void kn_cache_defaults(kiln_cache_options *options);

/* Finds and claims the directory of a cache, malloc'ed: the root, or a namespace below it.
 * KILN_E_UNAVAILABLE with the reason why there can be no disk tier. */
kiln_status kn_cache_find_root(const kiln_cache_options *options, char **out_root, kiln_diag *diag);
/* NULL and "" are valid: no namespace. */
bool kn_cache_namespace_valid(const char *name);
#define KN_NAMESPACE_RULE "use 1 to 64 letters, digits, '.', '-' and '_', and no '.' in front"

/* A lookup of a note about this machine: never asks a remote. With its target known no other
 * directory is looked into. */
kiln_status kn_cache_get_note(kiln_cache *cache, const kiln_key *key, const char *target,
                              kiln_blob **out_blob);

/* A lookup of what is welcome and not needed: that it is not there is not counted as a miss. Asks
 * remotes only if it may go `far`. With its target known (else NULL) no other directory is
 * searched. */
kiln_status kn_cache_glance(kiln_cache *cache, const kiln_key *key, const char *target, bool far,
                            kiln_blob **out_blob, kiln_origin *out_origin);

/* The same in packs alone, and without a copy in memory: what is found costs no system call. */
kiln_status kn_cache_glance_packs(kiln_cache *cache, const kiln_key *key, kiln_blob **out_blob);
bool kn_cache_has_packs(const kiln_cache *cache);

/* kiln_cache_put of what only other processes ask for: memory does not keep it. */
kiln_status kn_cache_put_below(kiln_cache *cache, const kiln_recipe *recipe, kiln_blob *blob,
                               kiln_diag *diag);

/* A lookup of what others may have replaced meanwhile: memory is asked last. A miss is not
 * counted. */
kiln_status kn_cache_reread(kiln_cache *cache, const kiln_key *key, kiln_blob **out_blob);

/* True when entries may be written to some tier. */
bool kn_cache_stores(const kiln_cache *cache);
/* True when entries may be written to disk and statistics kept there. */
bool kn_cache_writes(const kiln_cache *cache);
/* True when what is stored is there for other processes: on disk, or with a remote. */
bool kn_cache_outlasts(const kiln_cache *cache);
/* And the root is there and ours: before anything is written below it. */
bool kn_cache_root_stands(const kiln_cache *cache);
/* Of the disk tier; NULL: there is none. */
const char *kn_cache_disk_root(const kiln_cache *cache);
/* KILN_E_UNAVAILABLE without a disk tier; KILN_E_UNSUPPORTED where it is only read. */
kiln_status kn_cache_need_disk(const kiln_cache *cache, bool to_write, kiln_diag *diag);

/* Around a driver's look at the bytes of an entry, from whichever tier: if the process does not
 * live to see its end, and the next one that tries neither, the entry is barred
 * (store/disk/loads.h). False: it is, which is counted, and logged with `what` it is; it must be
 * made again, and what is made is not to be loaded from its bytes where that can be avoided. */
bool kn_cache_load_begin(kiln_cache *cache, const kiln_key *key, const char *what,
                         kn_load *out_load);
void kn_cache_load_end(kiln_cache *cache, const kiln_key *key, const kn_load *load);
/* Around work in a driver that kiln adds to what the program asks for, and that can be left out:
 * reading the binary of what the key is of. False: a process has died in it within a day, which is
 * logged with `what` it is. `out_work` belongs to this key and to the end alone. */
typedef struct kn_cache_work {
    kiln_key key;
    kn_load load;
} kn_cache_work;
bool kn_cache_work_begin(kiln_cache *cache, const kiln_key *key, const char *what,
                         kn_cache_work *out_work);
void kn_cache_work_end(kiln_cache *cache, const kn_cache_work *work);
/* The same around a driver that is opened unseen, under a key for what surrounds it. False: an
 * earlier opening did not end. In either case load_end comes after it, or load_cancel where it was
 * not opened: then nothing that is known of it changes. */
bool kn_cache_open_begin(kiln_cache *cache, const kiln_key *key, kn_load *out_load);
void kn_cache_load_cancel(kiln_cache *cache, const kn_load *load);
/* Opens the table that loads are noted in, for a caller who can see them coming: it takes 60 us,
 * which nobody notices next to a driver that is being opened. The first load does it otherwise. */
void kn_cache_load_prepare(kiln_cache *cache);

/* Adds this object's counters to the file. */
void kn_cache_flush(kiln_cache *cache);
/* The same, unless that was done only seconds ago. */
void kn_cache_flush_rarely(kiln_cache *cache);
/* Moves the stamps on disk of what was hit in memory, at most once an hour an entry; looks for such
 * entries every few minutes, or `now`. */
void kn_cache_stamp(kiln_cache *cache, bool now);

/* A turn at work that many processes need at the same time, and whose result they find by looking:
 *
 *     if (kn_cache_turn_begin(cache, key, deadline, look, user, &turn)) {
 *         ... work, and put the result where `look` finds it
 *         kn_cache_turn_end(&turn);
 *     }
 *
 * False: `look` has found what another did. Who cannot wait, or has waited until the deadline,
 * works as well. Blocks: others' work. */
typedef kn_flight_look kn_turn_look;
typedef struct kn_turn {
    kiln_cache *cache;
    kn_flight *flight;
    kn_flight_seat *seat; /* NULL: nobody waits for it */
} kn_turn;
bool kn_cache_turn_begin(kiln_cache *cache, const uint8_t key[KN_FLIGHT_KEY_SIZE],
                         uint64_t deadline_ns, kn_turn_look *look, void *user, kn_turn *out_turn);
void kn_cache_turn_end(kn_turn *turn);

/* Counts a miss and its reason, as far as it is known without searching: of what was dropped
 * before, and, by its `recipe` (empty: only the key is known), of what has kin in the store. */
void kn_cache_count_miss(kiln_cache *cache, const kiln_key *key, kn_span recipe, bool note);
/* Counts a compile that bypassed the cache and took so long; kiln_cache_count_bypass knows no time.
 */
void kn_cache_count_bypass(kiln_cache *cache, const char *what, const char *reason,
                           uint64_t took_ns);
/* Counts a binary that a driver refused; and anything. */
void kn_cache_count_rejected(kiln_cache *cache);
void kn_cache_count(kiln_cache *cache, enum kn_counter counter, uint64_t amount);

#endif
