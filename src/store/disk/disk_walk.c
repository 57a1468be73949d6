/* Looking at the disk tier: walk, inspect, verify. */
#include "store/disk/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "store/disk/disk_scan.h"
#include "store/disk/losses.h"
#include "store/format/entry.h"
#include "sys/file.h"

static kiln_status read_whole(const char *path, void **out_data, size_t *out_size,
                              kn_file_facts *out_facts, kiln_diag *diag)
{
    size_t at = 0; /* with nothing in front of it, it begins where the memory does */
    return kn_file_read_behind(NULL, path, KN_ENTRY_LIMIT, &kn_disk_entry_gate, 0, out_data, &at,
                               out_size, out_facts, diag);
}

typedef struct walk {
    kiln_entry_fn *visit;
    void *user;
    kn_disk_ticker ticker;
} walk;

static kiln_status walk_one(void *user, const kn_disk_file *file)
{
    walk *w = user;
    kn_disk_tick(&w->ticker);
    const kiln_entry_info info = {.key = file->key,
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

kiln_status kn_disk_inspect(kn_disk *disk, const kiln_key *key, kiln_entry_fn *visit, void *user,
                            kiln_diag *diag)
{
    char path[KN_DISK_PATH];
    void *data = NULL;
    size_t size = 0;
    kn_file_facts facts;
    kn_entry entry;
    char *recipe = NULL;
    const char *target = kn_disk_locate(disk, key);
    if (target == NULL) {
        return KILN_MISS;
    }
    kn_disk_entry_path(disk, target, key, path);
    kiln_status status = read_whole(path, &data, &size, &facts, diag);
    if (status != KILN_OK) {
        return status == KILN_E_INVALID ? KILN_E_CORRUPT : status;
    }
    status = kn_entry_parse(kn_span_of(data, size), key, &entry, diag);
    if (status != KILN_OK) {
        goto cleanup;
    }
    recipe = kn_text_copy_n(entry.recipe.data, entry.recipe.length);
    if (recipe == NULL) {
        status = kn_no_memory(diag, "reading an entry");
        goto cleanup;
    }
    const kiln_entry_info info = {.key = entry.key,
                                  .target = target,
                                  .recipe = recipe,
                                  .stored_size = size,
                                  .payload_size = entry.payload_size,
                                  .facts_size = entry.facts.length,
                                  .created_ns = entry.created_ns,
                                  .used_ns = facts.mtime_ns,
                                  .compile_ns = entry.compile_ns,
                                  .kiln_version = entry.writer};
    status = visit(user, &info);
cleanup:
    free(recipe);
    free(data);
    return status;
}

kiln_status kn_disk_load(kn_disk *disk, const kiln_key *key, kn_entry *out_entry,
                         kiln_blob **out_blob, kiln_diag *diag)
{
    char path[KN_DISK_PATH];
    void *data = NULL;
    size_t size = 0;
    const char *target = kn_disk_locate(disk, key);
    *out_blob = NULL;
    if (target == NULL) {
        return KILN_MISS;
    }
    kn_disk_entry_path(disk, target, key, path);
    kiln_status status = read_whole(path, &data, &size, NULL, diag);
    if (status != KILN_OK) {
        return status == KILN_E_INVALID ? KILN_E_CORRUPT : status;
    }
    status = kn_entry_parse(kn_span_of(data, size), key, out_entry, diag);
    if (status != KILN_OK) {
        free(data);
        return status;
    }
    return kn_entry_load(data, size, out_entry, out_blob, diag);
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
    void *data = NULL;
    size_t size = 0;
    kn_entry entry;
    kiln_blob *blob = NULL;
    kn_disk_tick(&v->ticker);
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = read_whole(file->path, &data, &size, NULL, &diag);
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
        status = kn_entry_parse(kn_span_of(data, size), &file->key, &entry, NULL);
        if (status == KILN_OK) {
            status = kn_entry_load(data, size, &entry, &blob, NULL);
        } else {
            free(data);
        }
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
