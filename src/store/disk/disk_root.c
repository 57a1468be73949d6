/* What a put asks of the world before it writes: a root that is ours, and room. Must not know what
 * is written. */
#include "store/disk/disk.h"
#include "sys/file.h"
#include "sys/paths.h"

#define FLOOR_BYTES (UINT64_C(1) << 30)
#define FLOOR_SHARE 20 /* 1/20: 5 % */
#define MIB (UINT64_C(1) << 20)

static bool is_claimed(const kn_disk *disk, const kn_file_facts *facts)
{
    return facts->kind == KN_FILE_FOLDER && facts->inode == disk->root_inode &&
           facts->device == disk->root_device;
}

static void take(kn_disk *disk, const kn_file_facts *facts)
{
    disk->root_inode = facts->inode;
    disk->root_device = facts->device;
    atomic_store_explicit(&disk->owner, facts->owner, memory_order_relaxed);
}

kiln_status kn_disk_check_root(kn_disk *disk, kiln_diag *diag)
{
    kn_file_facts facts;
    kn_mutex_lock(&disk->mutex);
    kiln_status status = kn_file_stat(disk->root, false, &facts, NULL);
    if (status != KILN_OK || !is_claimed(disk, &facts)) {
        status = kn_paths_claim_root(disk->root, diag);
        if (status == KILN_OK && kn_file_stat(disk->root, false, &facts, NULL) == KILN_OK) {
            take(disk, &facts);
        }
    }
    kn_mutex_unlock(&disk->mutex);
    return status;
}

bool kn_disk_is_root_ours(kn_disk *disk)
{
    kn_file_facts facts;
    if (!kn_mutex_try(&disk->mutex)) {
        return false;
    }
    const bool ours =
        kn_file_stat(disk->root, false, &facts, NULL) == KILN_OK && is_claimed(disk, &facts);
    kn_mutex_unlock(&disk->mutex);
    return ours;
}

kiln_status kn_disk_check_space(const kn_disk *disk, uint64_t coming, kiln_diag *diag)
{
    uint64_t free_bytes = 0, size = 0;
    /* Where the system does not say, the write finds out. */
    if (disk->min_free == UINT64_MAX || kn_file_space(disk->root, &free_bytes, &size) != KILN_OK ||
        size == 0) {
        return KILN_OK;
    }
    uint64_t by_size = size / FLOOR_SHARE < FLOOR_BYTES ? size / FLOOR_SHARE : FLOOR_BYTES;
    uint64_t least = disk->min_free == 0 ? by_size : disk->min_free;
    if (free_bytes >= least && free_bytes - least >= coming) {
        return KILN_OK;
    }
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                         "make room there, or set KILN_CACHE_DIR to another file system",
                         disk->root, "less than %llu MiB would be left free on its file system",
                         (unsigned long long)((least + MIB - 1) / MIB));
}

bool kn_disk_is_pinned(const kn_disk *disk, const kiln_key *key)
{
    return disk->is_pinned != NULL && disk->is_pinned(disk->pinned_user, key);
}
