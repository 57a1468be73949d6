/* Prune and clear: removal on request. */
#include <string.h>

#include "base/text.h"
#include "store/disk/disk.h"
#include "store/disk/disk_victims.h"
#include "store/disk/loads.h"
#include "sys/file.h"

#define FLUSH_PATIENCE UINT64_C(100000000)

/* Takes away the directories that clear has emptied. A writer who needs one makes it again. */
static kiln_status remove_prefix(void *user, const char *name)
{
    const char *dir = user;
    char path[KN_DISK_PATH];
    if (strlen(name) == 2) {
        kn_text_putf(path, sizeof path, "%s/%.2s", dir, name);
        (void)kn_file_remove_dir(path);
    }
    return KILN_OK;
}

static void remove_dirs(const kn_disk *disk, const kn_victims *list)
{
    for (size_t i = 0; i < list->name_count; i++) {
        char dir[KN_DISK_PATH];
        kn_text_putf(dir, sizeof dir, "%s/v1/%s", disk->root, list->names[i]);
        (void)kn_file_list(dir, remove_prefix, dir, NULL);
        (void)kn_file_remove_dir(dir);
    }
}

typedef struct made_files {
    const char *dir;
    kiln_prune_result *result;
} made_files;

static kiln_status remove_made(void *user, const char *name)
{
    const made_files *made = user;
    char path[KN_DISK_PATH];
    kn_file_facts facts;
    if (strspn(name, "0123456789abcdef") < KILN_KEY_TEXT_SIZE - 1) {
        return KILN_OK; /* all of theirs begin with a key */
    }
    kn_text_putf(path, sizeof path, "%s/%.128s", made->dir, name);
    if (kn_file_stat(path, false, &facts, NULL) == KILN_OK && facts.kind != KN_FILE_DIR &&
        kn_file_remove(path, NULL) == KILN_OK) {
        made->result->temporaries_removed++;
        made->result->bytes_removed += facts.size;
    }
    return KILN_OK;
}

/* Precompiled headers, which compilers keep next to the entries: each is larger than most caches.
 * Who reads one has it open, or compiles without; what cannot be removed is as good as before. */
static void remove_precompiled(const kn_disk *disk, kiln_prune_result *result)
{
    char dir[KN_DISK_PATH];
    const made_files made = {dir, result};
    kn_disk_path(disk, "pch", dir);
    (void)kn_file_list(dir, remove_made, (void *)(uintptr_t)&made, NULL);
    (void)kn_file_remove_dir(dir);
}

static kn_victims_bounds bounds_of(const kiln_prune_options *options, int64_t now_ns)
{
    kn_victims_bounds limit = {.bytes = options->max_bytes,
                               .files = UINT64_MAX,
                               .used_after_ns = INT64_MIN,
                               .spare_pinned = true};
    uint64_t now = now_ns > 0 ? (uint64_t)now_ns : 0;
    if (options->max_age_ns != 0 && options->max_age_ns < now) {
        limit.used_after_ns = (int64_t)(now - options->max_age_ns);
    }
    return limit;
}

kiln_status kn_disk_prune(kn_disk *disk, const kiln_prune_options *options, bool everything,
                          kiln_prune_result *out_result, kiln_diag *diag)
{
    kn_victims list;
    kn_victims_removed removed = {0};
    const uint32_t counts = kn_stats_counts(disk->stats);
    kiln_status status =
        kn_victims_list(disk, everything ? NULL : options->target, -1,
                        everything ? KN_VICTIMS_AS_FOUND : KN_VICTIMS_BY_USE, &list, diag);
    *out_result = (kiln_prune_result){.entries_seen = list.count, .bytes_seen = list.bytes};
    if (status == KILN_OK || status == KILN_E_IO) {
        const kn_victims_bounds none = {.used_after_ns = INT64_MIN};
        const kn_victims_bounds limit = everything ? none : bounds_of(options, list.now_ns);
        list.ticker.done = 0;
        list.ticker.total = list.count;
        kiln_status gone =
            kn_victims_remove(disk, &list, &limit, &removed, status == KILN_OK ? diag : NULL);
        status = status == KILN_OK ? gone : status;
        kn_disk_ticker_end(&list.ticker);
        out_result->entries_removed = removed.entries;
        out_result->bytes_removed = removed.bytes;
        const kn_disk_temporaries temporaries = kn_disk_sweep(disk);
        out_result->temporaries_removed = temporaries.removed;
        out_result->bytes_removed += temporaries.removed_bytes;
        if (everything) {
            remove_dirs(disk, &list);
            remove_precompiled(disk, out_result);
            kn_loads_forget(disk->root);
        } else {
            kn_stats_add(disk->stats, KN_COUNT_evicted, removed.entries);
        }
        kn_stats_departed(
            disk->stats,
            &(kn_departure){.counts = counts, .files = removed.entries, .bytes = removed.bytes});
        (void)kn_stats_flush(disk->stats, FLUSH_PATIENCE, NULL, NULL);
    } else {
        (void)kiln_diag_set(diag, status, NULL, "walking the cache", "%s", disk->root);
    }
    kn_victims_deinit(&list);
    return status;
}

kiln_status kn_disk_prune_plan(kn_disk *disk, const kiln_prune_options *options,
                               kiln_prune_result *out_result, kiln_diag *diag)
{
    kn_victims list;
    kn_victims_removed removed = {0};
    kiln_status status = kn_victims_list(disk, options->target, -1, KN_VICTIMS_BY_USE, &list, diag);
    *out_result = (kiln_prune_result){.entries_seen = list.count, .bytes_seen = list.bytes};
    if (status == KILN_OK || status == KILN_E_IO) {
        kn_victims_bounds limit = bounds_of(options, list.now_ns);
        limit.only_counts = true;
        (void)kn_victims_remove(disk, &list, &limit, &removed, NULL);
        out_result->entries_removed = removed.entries;
        out_result->bytes_removed = removed.bytes;
    }
    kn_disk_ticker_end(&list.ticker);
    kn_victims_deinit(&list);
    return status;
}
