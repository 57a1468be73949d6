/* What may be removed from the disk tier: a list of entries in the order in which they go. */
#ifndef KILN_STORE_DISK_VICTIMS_H
#define KILN_STORE_DISK_VICTIMS_H

#include "store/disk/disk_scan.h"

typedef struct kn_victim {
    kiln_key key;
    uint64_t weight;
    int64_t used_ns;
    size_t target; /* index into names */
} kn_victim;

typedef struct kn_victims {
    kn_victim *items;
    size_t count, room;
    char (*names)[65];
    size_t name_count;
    uint64_t bytes;
    int64_t now_ns;
    kn_disk_ticker ticker;
} kn_victims;

/* By last use; or, where stamps are too coarse to tell (they move once an hour), those of the last
 * hour after all others in the order of their keys. So a working set larger than the cap keeps the
 * same part of itself, instead of losing each entry just before it is needed again. */
typedef enum kn_victims_order {
    KN_VICTIMS_AS_FOUND, /* directory by directory: the fastest to remove */
    KN_VICTIMS_BY_USE,
    KN_VICTIMS_FOR_EVICTION,
} kn_victims_order;

/* Lists what is there: of one target (NULL: of all), of one of its 256 directories (-1: of all).
 * KILN_E_IO when a directory could not be listed: what is in the others is in the list then. */
kiln_status kn_victims_list(kn_disk *disk, const char *target, int dir, kn_victims_order order,
                            kn_victims *out_list, kiln_diag *diag);
void kn_victims_deinit(kn_victims *list);

/* What may stay. */
typedef struct kn_victims_bounds {
    uint64_t bytes, files;
    int64_t used_after_ns; /* INT64_MIN: any age */
    bool spare_pinned;
    bool only_counts; /* and removes nothing */
    /* From this moment on (kn_clock_now; 0: never) these bounds do. Age does not count then. */
    uint64_t until_ns;
    uint64_t then_bytes, then_files;
} kn_victims_bounds;

typedef struct kn_victims_removed {
    uint64_t entries, bytes;
    uint64_t young_bytes; /* used within the last hour */
} kn_victims_removed;

/* Removes from the front until the rest is within bounds. */
kiln_status kn_victims_remove(kn_disk *disk, kn_victims *list, const kn_victims_bounds *limit,
                              kn_victims_removed *out_removed, kiln_diag *diag);

#endif
