/* Walks the files of the disk tier: what is there, without opening any. */
#ifndef KILN_STORE_DISK_SCAN_H
#define KILN_STORE_DISK_SCAN_H

#include "store/disk/disk.h"

typedef struct kn_disk_file {
    const char *target;
    const char *path;
    kiln_key key;
    uint64_t size;
    int64_t used_ns;
} kn_disk_file;

/* Any status but KILN_OK ends the scan and is returned by it. */
typedef kiln_status kn_disk_file_fn(void *user, const kn_disk_file *file);

/* Calls `visit` for every entry of one target (NULL: of all), in one of its 256 directories (-1: in
 * all). What vanishes meanwhile, and what is not named as an entry is, is skipped. KILN_E_IO if a
 * directory could not be listed; all others were. */
kiln_status kn_disk_scan(kn_disk *disk, const char *target, int dir, kn_disk_file_fn *visit,
                         void *user, kiln_diag *diag);

/* Calls the caller's progress function (disk.h), if there is one, but not more often than it can be
 * of use. */
typedef struct kn_disk_ticker {
    const kn_disk *disk; /* NULL: silent */
    uint64_t done, total;
    uint64_t told_ns;
} kn_disk_ticker;
void kn_disk_ticker_start(kn_disk_ticker *ticker, const kn_disk *disk);
void kn_disk_tick(kn_disk_ticker *ticker);
void kn_disk_ticker_end(kn_disk_ticker *ticker);

#endif
