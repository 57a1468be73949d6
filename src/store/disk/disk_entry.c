/* Reads an entry's file and checks it. This file must not depend on where entries lie. */
#include "store/disk/disk_entry.h"

#include <stdlib.h>

#include "store/format/blob.h"

/* Junk in an entry's place is not read to its end. */
static const kn_file_gate entry_gate = {KN_ENTRY_HEADER, kn_entry_may_begin};

/* The owner is that of the root when it was claimed: of none before that. */
static bool has_root_owner(const kn_disk *disk, const kn_file_facts *facts)
{
    return facts->owner == atomic_load_explicit(&disk->owner, memory_order_relaxed);
}

static kiln_status check_owner(kn_disk *disk, const kn_file_facts *facts, kiln_diag *diag)
{
    if (has_root_owner(disk, facts)) {
        return KILN_OK;
    }
    if (!kn_disk_root_stands(disk)) {
        return KILN_MISS; /* below a root that is not ours nothing is judged */
    }
    /* Looking may have claimed the root just now. */
    return has_root_owner(disk, facts)
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_CORRUPT, NULL, "reading an entry",
                               "it belongs to user %lu", (unsigned long)facts->owner);
}

kiln_status kn_disk_entry_open(const kn_disk_place *place, const kiln_key *key,
                               kn_disk_entry *out_entry, kiln_diag *diag)
{
    size_t at = 0;
    kn_disk_entry *e = out_entry;
    e->memory = NULL;
    kiln_status status =
        kn_file_read_behind(place->dir, place->path, KN_ENTRY_LIMIT, &entry_gate, KN_BLOB_ROOM,
                            &e->memory, &at, &e->size, &e->facts, diag);
    if (status != KILN_OK) {
        return status;
    }
    e->memory_used = at + e->size;
    if (place->owned != NULL) {
        status = check_owner(place->owned, &e->facts, diag);
    }
    if (status == KILN_OK) {
        status = kn_entry_parse(kn_span_of((char *)e->memory + at, e->size), key, &e->entry, diag);
    }
    if (status != KILN_OK) {
        kn_disk_entry_close(e);
    }
    return status;
}

kiln_status kn_disk_entry_to_blob(kn_disk_entry *entry, kiln_blob **out_blob, kiln_diag *diag)
{
    void *memory = entry->memory;
    entry->memory = NULL;
    return kn_entry_load_in(memory, entry->memory_used, &entry->entry, out_blob, diag);
}

void kn_disk_entry_close(kn_disk_entry *entry)
{
    free(entry->memory);
    entry->memory = NULL;
}
