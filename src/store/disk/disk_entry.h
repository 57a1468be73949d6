/* An entry's file, from its place on disk to a checked entry in one piece of memory. Every reader
 * of the disk tier comes through here, so that none believes what another one refuses. */
#ifndef KILN_STORE_DISK_ENTRY_H
#define KILN_STORE_DISK_ENTRY_H

#include "store/disk/disk.h"
#include "store/format/entry.h"

typedef struct kn_disk_place {
    const kn_held_dir *dir; /* `path` is relative to it; NULL: it is absolute */
    const char *path;
    kn_disk *owned; /* the file must belong to the user of this disk's root; NULL: to any user */
} kn_disk_place;

typedef struct kn_disk_entry {
    kn_entry entry; /* borrows from `memory` */
    kn_file_facts facts;
    size_t size;        /* of the file */
    void *memory;       /* with room for a blob before the file */
    size_t memory_used; /* up to the file's end */
} kn_disk_entry;

/* Reads the file and checks it whole. KILN_MISS; KILN_E_INVALID for what kiln has not put there (a
 * link, a directory, something huge); KILN_E_CORRUPT with the reason, and `facts` are then filled;
 * KILN_E_IO; KILN_E_NOMEM. With all of them there is nothing to close. */
kiln_status kn_disk_entry_open(const kn_disk_place *place, const kiln_key *key,
                               kn_disk_entry *out_entry, kiln_diag *diag);

/* Ends an entry that was opened: with what becomes a blob, or for good. KILN_E_CORRUPT if it cannot
 * be unpacked, KILN_E_NOMEM. */
kiln_status kn_disk_entry_to_blob(kn_disk_entry *entry, kiln_blob **out_blob, kiln_diag *diag);
void kn_disk_entry_close(kn_disk_entry *entry);

#endif
