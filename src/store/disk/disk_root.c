/* What a put asks of the world before it writes: a root that is ours, and room. This file must not
 * know what is written. */
#include <string.h>

#include "store/disk/disk.h"
#include "sys/file.h"
#include "sys/paths.h"

#define FLOOR_BYTES (UINT64_C(1) << 30)
#define FLOOR_SHARE 20 /* 1/20: 5 % */
#define MIB (UINT64_C(1) << 20)

/* In a user namespace that the program has entered since, all owners are other numbers. */
static bool is_claimed(const kn_disk *disk, const kn_file_facts *facts)
{
    return facts->kind == KN_FILE_DIR && facts->inode == disk->root_inode &&
           facts->device == disk->root_device &&
           facts->owner == atomic_load_explicit(&disk->owner, memory_order_relaxed);
}

static void take_root(kn_disk *disk, const kn_file_facts *facts)
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
            take_root(disk, &facts);
        }
    }
    kn_mutex_unlock(&disk->mutex);
    return status;
}

bool kn_disk_root_stands(kn_disk *disk)
{
    kn_file_facts facts;
    kn_mutex_lock(&disk->mutex);
    bool stands = kn_file_stat(disk->root, false, &facts, NULL) == KILN_OK;
    if (stands && !is_claimed(disk, &facts)) {
        /* Exchanged, or not there yet when it was looked for: the same checks as for a new one. */
        stands = kn_paths_claim_root(disk->root, NULL) == KILN_OK &&
                 kn_file_stat(disk->root, false, &facts, NULL) == KILN_OK;
        if (stands) {
            take_root(disk, &facts);
        }
    }
    kn_mutex_unlock(&disk->mutex);
    return stands;
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

/* How much must stay free, where the system says how much is. */
static bool ask_space(const kn_disk *disk, uint64_t *out_free, uint64_t *out_least)
{
    uint64_t size = 0;
    if (disk->min_free == UINT64_MAX || kn_file_space(disk->root, out_free, &size) != KILN_OK ||
        size == 0) {
        return false;
    }
    const uint64_t by_size = size / FLOOR_SHARE < FLOOR_BYTES ? size / FLOOR_SHARE : FLOOR_BYTES;
    *out_least = disk->min_free == 0 ? by_size : disk->min_free;
    return true;
}

kiln_status kn_disk_check_space(const kn_disk *disk, uint64_t coming, kiln_diag *diag)
{
    uint64_t free_bytes = 0, least = 0;
    /* What killed writers left must not be what keeps the cache off. */
    for (bool swept = false;; swept = true) {
        /* Where the system does not say, the write finds out. */
        if (!ask_space(disk, &free_bytes, &least) ||
            (free_bytes >= least && free_bytes - least >= coming)) {
            return KILN_OK;
        }
        if (swept || kn_disk_sweep(disk).removed == 0) {
            break;
        }
    }
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                         "free some space there, or set KILN_CACHE_DIR to another file system",
                         disk->root, "less than %llu MiB would be left free on its file system",
                         (unsigned long long)((least + MIB - 1) / MIB));
}

/* Every name that kiln gives in a root, but for the directories of later versions (v2). */
static const struct {
    const char *name;
    kn_file_kind kind;
} root_names[] = {
    {"v1", KN_FILE_DIR},        {"tmp", KN_FILE_DIR},          {"probes", KN_FILE_DIR},
    {"pch", KN_FILE_DIR},       {"lock", KN_FILE_REGULAR},     {"stats", KN_FILE_REGULAR},
    {"kin", KN_FILE_REGULAR},   {"losses", KN_FILE_REGULAR},   {"uses", KN_FILE_REGULAR},
    {"loads", KN_FILE_REGULAR}, {"bypasses", KN_FILE_REGULAR}, {"CACHEDIR.TAG", KN_FILE_REGULAR},
    {"recording", KN_FILE_DIR}, {"namespaces", KN_FILE_DIR}};

#define ROOT_NAMES (sizeof root_names / sizeof *root_names)

/* KILN_E_BUSY at the first name that kiln does not give. */
static kiln_status is_root_name(void *user, const char *name)
{
    (void)user;
    for (size_t i = 0; i < ROOT_NAMES; i++) {
        if (strcmp(name, root_names[i].name) == 0) {
            return KILN_OK;
        }
    }
    return name[0] == 'v' && name[1] >= '1' && name[1] <= '9' ? KILN_OK : KILN_E_BUSY;
}

bool kn_disk_is_root_all_ours(const kn_disk *disk)
{
    return kn_file_list(disk->root, is_root_name, NULL, NULL) == KILN_OK;
}

kiln_status kn_disk_examine(const kn_disk *disk, kiln_diag *diag)
{
    for (size_t i = 0; i < ROOT_NAMES; i++) {
        char path[KN_DISK_PATH];
        kn_file_facts facts;
        kn_disk_path(disk, root_names[i].name, path);
        if (kn_file_stat(path, false, &facts, NULL) == KILN_OK &&
            facts.kind != root_names[i].kind) {
            return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "remove it: kiln makes it again", path,
                                 root_names[i].kind == KN_FILE_DIR
                                     ? "it is not a directory, and kiln cannot store anything"
                                     : "it is not a regular file, and kiln cannot use it");
        }
    }
    return KILN_OK;
}

bool kn_disk_is_pinned(const kn_disk *disk, const kiln_key *key)
{
    return disk->is_pinned != NULL && disk->is_pinned(disk->pinned_user, key);
}
