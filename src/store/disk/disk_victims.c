/* Lists entries and removes those that go first. This file must not read entries: a reader that has
 * one open keeps it. */
#include "store/disk/disk_victims.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/disk/losses.h"
#include "sys/clock.h"
#include "sys/file.h"

#define MAX_VICTIMS ((size_t)1 << 26)

void kn_victims_deinit(kn_victims *list)
{
    free(list->items);
    free(list->names);
}

/* The scan goes target by target, so that a new name is always the last one. */
static bool add_name(kn_victims *list, const char *target)
{
    if (list->name_count > 0 && strcmp(list->names[list->name_count - 1], target) == 0) {
        return true;
    }
    void *larger = realloc(list->names, (list->name_count + 1) * sizeof *list->names);
    if (larger == NULL) {
        return false;
    }
    list->names = larger;
    kn_text_put(list->names[list->name_count++], sizeof *list->names, target);
    return true;
}

static kiln_status collect_file(void *user, const kn_disk_file *file)
{
    kn_victims *list = user;
    if (list->count == list->room) {
        size_t room = list->room > 0 ? list->room * 2 : 1024;
        void *larger =
            room <= MAX_VICTIMS ? realloc(list->items, room * sizeof *list->items) : NULL;
        if (larger == NULL) {
            return KILN_E_NOMEM;
        }
        list->items = larger;
        list->room = room;
    }
    if (!add_name(list, file->target)) {
        return KILN_E_NOMEM;
    }
    /* A stamp from the future (another host's clock) must not make an entry
     * immortal. */
    bool future = file->used_ns > list->now_ns + KN_HOUR_NS;
    list->items[list->count++] = (kn_victim){.key = file->key,
                                             .weight = kn_disk_weight(file->size),
                                             .used_ns = future ? 0 : file->used_ns,
                                             .target = list->name_count - 1};
    list->bytes += kn_disk_weight(file->size);
    kn_disk_tick(&list->ticker);
    return KILN_OK;
}

static int by_use(const void *a, const void *b)
{
    int64_t x = ((const kn_victim *)a)->used_ns, y = ((const kn_victim *)b)->used_ns;
    return (x > y) - (x < y);
}

static int compare_victim_keys(const void *a, const void *b)
{
    return memcmp(((const kn_victim *)a)->key.bytes, ((const kn_victim *)b)->key.bytes,
                  sizeof(kiln_key));
}

static bool is_young(const kn_victims *list, const kn_victim *item)
{
    return item->used_ns > list->now_ns - KN_HOUR_NS;
}

static void sort_victims(kn_victims *list, kn_victims_order order)
{
    if (list->count == 0 || order == KN_VICTIMS_AS_FOUND) {
        return;
    }
    qsort(list->items, list->count, sizeof *list->items, by_use);
    if (order == KN_VICTIMS_FOR_EVICTION) {
        size_t old = list->count;
        while (old > 0 && is_young(list, &list->items[old - 1])) {
            old--;
        }
        qsort(list->items + old, list->count - old, sizeof *list->items, compare_victim_keys);
    }
}

kiln_status kn_victims_list(kn_disk *disk, const char *target, int dir, kn_victims_order order,
                            kn_victims *out_list, kiln_diag *diag)
{
    *out_list = (kn_victims){.now_ns = kn_clock_wall()};
    if (order != KN_VICTIMS_FOR_EVICTION) { /* which a put waits for, on any thread */
        kn_disk_ticker_start(&out_list->ticker, disk);
    }
    kiln_status status = kn_disk_scan(disk, target, dir, collect_file, out_list, diag);
    if (status == KILN_OK || status == KILN_E_IO) {
        sort_victims(out_list, order);
    }
    return status;
}

/* It has taken long, and is within the wider bounds. */
static bool will_do(const kn_victims_bounds *limit, uint64_t bytes, uint64_t files)
{
    return limit->until_ns != 0 && bytes <= limit->then_bytes && files <= limit->then_files &&
           kn_clock_now() >= limit->until_ns;
}

static kiln_status remove_victim(kn_disk *disk, const kn_victims *list, const kn_victim *item,
                                 kn_file *losses, kiln_diag *diag)
{
    char path[KN_DISK_PATH];
    kn_disk_entry_path(disk, list->names[item->target], &item->key, path);
    const kiln_status status = kn_file_remove(path, diag);
    if (status == KILN_OK) {
        kn_losses_note(losses, &item->key, KN_LOSS_EVICTED);
    }
    return status;
}

kiln_status kn_victims_remove(kn_disk *disk, kn_victims *list, const kn_victims_bounds *limit,
                              kn_victims_removed *out_removed, kiln_diag *diag)
{
    uint64_t bytes = list->bytes, files = list->count;
    kiln_status failure = KILN_OK;
    *out_removed = (kn_victims_removed){0};
    kn_file *losses = list->count > 0 && !limit->only_counts ? kn_losses_open(disk->root) : NULL;
    for (size_t i = 0; i < list->count; i++) {
        const kn_victim *item = &list->items[i];
        kn_disk_tick(&list->ticker);
        if (will_do(limit, bytes, files)) {
            break;
        }
        if (bytes <= limit->bytes && files <= limit->files &&
            item->used_ns >= limit->used_after_ns) {
            continue; /* one after it may be older, where the order is not by use */
        }
        if (limit->spare_pinned && kn_disk_is_pinned(disk, &item->key)) {
            continue;
        }
        const kiln_status status =
            limit->only_counts
                ? KILN_OK
                : remove_victim(disk, list, item, losses, failure == KILN_OK ? diag : NULL);
        if (status == KILN_OK) {
            out_removed->entries++;
            out_removed->bytes += item->weight;
            out_removed->young_bytes += is_young(list, item) ? item->weight : 0;
        } else if (status != KILN_MISS) {
            failure = status;
            continue; /* it still takes its room */
        }
        bytes -= item->weight;
        files--;
    }
    kn_losses_close(losses);
    return failure;
}
