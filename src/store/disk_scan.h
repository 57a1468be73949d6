/* Walks the files of the disk tier: what is there, without opening any. */
#ifndef KILN_STORE_DISK_SCAN_H
#define KILN_STORE_DISK_SCAN_H

#include "store/disk.h"

typedef struct kn_disk_file {
    const char *target;
    const char *path;
    kiln_key key;
    uint64_t size;
    int64_t used_ns;
} kn_disk_file;

/* Any status but KILN_OK ends the scan and is returned by it. */
typedef kiln_status kn_disk_file_fn(void *user, const kn_disk_file *file);

/* Calls `visit` for every entry of one target (NULL: of all). What vanishes meanwhile, and what is
 * not named as an entry is, is skipped. KILN_E_IO. */
kiln_status kn_disk_scan(kn_disk *disk, const char *target, kn_disk_file_fn *visit, void *user,
                         kiln_diag *diag);

#endif
