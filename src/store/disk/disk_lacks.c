/* What the disk does not have, without a look for each key: a program of many kernels that come
 * from a pack would pay an open for each, for the rare one that has a newer entry on disk. A
 * target's directory is listed once in a while; an entry can only lie in a directory that was
 * there. */
#include "store/disk/disk.h"

#include <string.h>

#include "base/text.h"
#include "sys/clock.h"

/* A program of few kernels has no use for a list. */
#define ASKED_TO_LIST 5u

static kiln_status note_directory(void *user, const char *name)
{
    uint64_t *listed = user;
    uint8_t first = 0;
    if (strlen(name) == 2 && kn_hex_decode(name, &first, 1)) {
        listed[first >> 6] |= UINT64_C(1) << (first & 63);
    }
    return KILN_OK;
}

/* Under the disk's mutex. Each word is stored once, as readers may be at it. */
static void list_directories(kn_disk *disk, kn_disk_target *target)
{
    char path[KN_DISK_PATH];
    uint64_t listed[4] = {0};
    const uint32_t puts = atomic_load(&disk->puts);
    const uint64_t now = kn_clock_now();
    kn_text_putf(path, sizeof path, "%s/v1/%s", disk->root, target->name);
    const kiln_status status = kn_file_list(path, note_directory, listed, NULL);
    for (size_t i = 0; i < 4; i++) {
        atomic_store(&target->listed[i],
                     status == KILN_OK || status == KILN_MISS ? listed[i] : UINT64_MAX);
    }
    atomic_store(&target->listed_puts, puts);
    atomic_store(&target->listed_until, now + KN_TIER_LACKS_NS);
}

static bool is_listed(kn_disk *disk, kn_disk_target *target)
{
    return kn_clock_now() < atomic_load(&target->listed_until) &&
           atomic_load(&target->listed_puts) == atomic_load(&disk->puts);
}

bool kn_disk_lacks(void *self, const kiln_key *key, const char *name)
{
    kn_disk *disk = self;
    kn_disk_target *target = kn_disk_need_target(disk, name);
    if (target == NULL ||
        atomic_fetch_add_explicit(&target->asked, 1, memory_order_relaxed) < ASKED_TO_LIST - 1) {
        return false;
    }
    if (!is_listed(disk, target)) {
        kn_mutex_lock(&disk->mutex);
        if (!is_listed(disk, target)) {
            list_directories(disk, target);
        }
        kn_mutex_unlock(&disk->mutex);
    }
    const uint8_t first = key->bytes[0];
    return (atomic_load(&target->listed[first >> 6]) >> (first & 63) & 1) == 0;
}
