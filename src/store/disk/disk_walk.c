/* Looking at the disk tier: walk, inspect, verify. */
#include "store/disk/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/label.h"
#include "base/text.h"
#include "store/disk/disk_entry.h"
#include "store/disk/disk_scan.h"
#include "store/disk/losses.h"
#include "sys/file.h"

typedef struct walk {
    kiln_entry_fn *visit;
    void *user;
    kn_disk_ticker ticker;
} walk;

static kiln_status walk_one(void *user, const kn_disk_file *file)
{
    walk *w = user;
    kn_disk_tick(&w->ticker);
    const kiln_entry_info info = {.struct_size = sizeof info,
                                  .key = file->key,
                                  .target = file->target,
                                  .stored_size = file->size,
                                  .used_ns = file->used_ns};
    return w->visit(w->user, &info);
}

kiln_status kn_disk_walk(kn_disk *disk, const char *target, kiln_entry_fn *visit, void *user,
                         kiln_diag *diag)
{
    walk w = {.visit = visit, .user = user};
    kn_disk_ticker_start(&w.ticker, disk);
    kiln_status status = kn_disk_scan(disk, target, -1, walk_one, &w, diag);
    kn_disk_ticker_end(&w.ticker);
    return status;
}

/* Opens the entry of a key in whichever target's directory has it. */
static kiln_status open_located(kn_disk *disk, const kiln_key *key, const char **out_target,
                                kn_disk_entry *out_entry, kiln_diag *diag)
{
    char path[KN_DISK_PATH];
    *out_target = kn_disk_locate(disk, key);
    if (*out_target == NULL) {
        return KILN_MISS;
    }
    kn_disk_entry_path(disk, *out_target, key, path);
    const kiln_status status =
        kn_disk_entry_open(&(kn_disk_place){.path = path}, key, out_entry, diag);
    return status == KILN_E_INVALID ? KILN_E_CORRUPT : status;
}

kiln_status kn_disk_inspect(kn_disk *disk, const kiln_key *key, kiln_entry_fn *visit, void *user,
                            kiln_diag *diag)
{
    kn_disk_entry file;
    const char *target = NULL;
    kiln_status status = open_located(disk, key, &target, &file, diag);
    if (status != KILN_OK) {
        return status;
    }
    const kn_entry *entry = &file.entry;
    char label[KN_LABEL_SIZE] = "";
    kn_span found;
    char *recipe = kn_text_copy_n(entry->recipe.data, entry->recipe.length);
    if (kn_label_find(entry->facts, &found)) {
        kn_text_putf(label, sizeof label, "%.*s", (int)found.length, found.data);
        kn_text_flatten(label);
    }
    if (recipe == NULL) {
        status = kn_no_memory(diag, "reading an entry");
        goto cleanup;
    }
    const kiln_entry_info info = {.struct_size = sizeof info,
                                  .key = entry->key,
                                  .target = target,
                                  .recipe = recipe,
                                  .stored_size = file.size,
                                  .payload_size = entry->payload_size,
                                  .facts_size = entry->facts.length,
                                  .created_ns = entry->created_ns,
                                  .used_ns = file.facts.mtime_ns,
                                  .compile_ns = entry->compile_ns,
                                  .kiln_version = entry->writer,
                                  .label = label};
    status = visit(user, &info);
cleanup:
    free(recipe);
    kn_disk_entry_close(&file);
    return status;
}

kiln_status kn_disk_load(kn_disk *disk, const kiln_key *key, kn_entry *out_entry,
                         kiln_blob **out_blob, kiln_diag *diag)
{
    kn_disk_entry file;
    const char *target = NULL;
    *out_blob = NULL;
    kiln_status status = open_located(disk, key, &target, &file, diag);
    if (status == KILN_OK) {
        *out_entry = file.entry;
        status = kn_disk_entry_to_blob(&file, out_blob, diag);
    }
    return status;
}

typedef struct verification {
    kn_disk *disk;
    bool remove;
    kiln_verify_result result;
    kiln_diag *diag;
    kiln_status failure; /* the first entry that could not be read */
    kn_disk_ticker ticker;
} verification;

static kiln_status verify_one(void *user, const kn_disk_file *file)
{
    verification *v = user;
    kn_disk_entry entry;
    kiln_blob *blob = NULL;
    kn_disk_tick(&v->ticker);
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status =
        kn_disk_entry_open(&(kn_disk_place){.path = file->path}, &file->key, &entry, &diag);
    if (status == KILN_E_IO && v->failure == KILN_OK) {
        kn_diag_move(v->diag, &diag);
    }
    kiln_diag_clear(&diag);
    if (status == KILN_E_IO) { /* which says nothing about what is in it */
        v->failure = status;
        return KILN_OK;
    }
    if (status == KILN_MISS) {
        return KILN_OK; /* vanished meanwhile */
    }
    if (status == KILN_OK) {
        status = kn_disk_entry_to_blob(&entry, &blob, NULL);
    }
    kiln_blob_release(blob);
    if (status == KILN_E_NOMEM) {
        return status;
    }
    v->result.bytes += file->size;
    if (status == KILN_OK) {
        v->result.entries_good++;
        return KILN_OK;
    }
    v->result.entries_bad++;
    const uint32_t counts = v->remove ? kn_stats_counts(v->disk->stats) : 0;
    if (v->remove && kn_file_remove(file->path, NULL) == KILN_OK) {
        kn_stats_departed(
            v->disk->stats,
            &(kn_departure){.counts = counts, .files = 1, .bytes = kn_disk_weight(file->size)});
        kn_stats_add(v->disk->stats, KN_COUNT_corrupt, 1);
        kn_losses_note_one(v->disk->root, &file->key, KN_LOSS_CORRUPT);
    }
    return KILN_OK;
}

kiln_status kn_disk_verify(kn_disk *disk, bool remove, kiln_verify_result *out_result,
                           kiln_diag *diag)
{
    verification v = {.disk = disk, .remove = remove, .diag = diag};
    kn_disk_ticker_start(&v.ticker, disk);
    kiln_status status = kn_disk_scan(disk, NULL, -1, verify_one, &v, diag);
    kn_disk_ticker_end(&v.ticker);
    *out_result = v.result;
    return status == KILN_OK ? v.failure : status;
}
