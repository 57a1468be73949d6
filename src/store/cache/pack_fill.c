/* Puts entries of a cache, and of programs, into a pack. */
#include "store/pack/pack_write.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/version.h"

#include "base/diag.h"
#include "base/text.h"
#include "key/recipe.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "store/format/entry.h"
#include "sys/clock.h"

kiln_status kiln_pack_writer_add_blob(kiln_pack_writer *writer, const kiln_recipe *recipe,
                                      const kiln_blob *blob, bool *out_added, kiln_diag *diag)
{
    if (out_added != NULL) {
        *out_added = false;
    }
    const kiln_key key = kiln_recipe_key(recipe); /* the last that can break a recipe */
    const kiln_status broken = kiln_recipe_status(recipe, diag);
    if (broken != KILN_OK) {
        return broken;
    }
    const kn_span text = kn_recipe_span(recipe), body = kn_blob_body(blob);
    kn_pack_record record = {.key = key,
                             .compile_ns = kiln_blob_compile_ns(blob),
                             .created_ns = kn_clock_wall(),
                             .payload_size = kiln_blob_size(blob),
                             .facts_size = kiln_blob_facts_size(blob),
                             .recipe_size = text.length};
    kn_text_put(record.writer, sizeof record.writer, KILN_VERSION);
    char *whole = malloc(body.length + text.length + 1);
    if (whole == NULL) {
        return kn_no_memory(diag, "adding to a pack");
    }
    memcpy(whole, body.data, body.length);
    memcpy(whole + body.length, text.data, text.length);
    kiln_status status = kn_pack_writer_take(
        writer, &record, kn_span_of(whole, body.length + text.length), out_added, diag);
    free(whole);
    return status;
}

/* From a pack that the cache is given: packs can be made of packs. */
static kiln_status add_from_packs(kiln_pack_writer *writer, const kn_packs *packs,
                                  const kiln_key *key, bool *out_added, kiln_diag *diag)
{
    for (size_t i = 0; packs != NULL && i < packs->count; i++) {
        kn_pack_record record;
        kiln_blob *blob = NULL;
        kiln_status status = kn_pack_fetch(packs->packs[i], key, &record, &blob, diag);
        if (status == KILN_OK) {
            record.flags = 0;
            status = kn_pack_writer_take(writer, &record, kn_blob_whole(blob), out_added, diag);
        }
        kiln_blob_release(blob);
        if (status != KILN_MISS) {
            return status;
        }
    }
    return KILN_MISS;
}

static kiln_status add_key(kiln_pack_writer *writer, kiln_cache *cache, const kiln_key *key,
                           bool with_notes, bool *out_added, kiln_diag *diag)
{
    kn_entry entry;
    kiln_blob *blob = NULL;
    if (cache->disk == NULL && cache->packs == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, "the cache has no disk tier", "%s",
                             cache->disk_reason);
    }
    kiln_status status =
        cache->disk != NULL ? kn_disk_load(cache->disk, key, &entry, &blob, diag) : KILN_MISS;
    if (status == KILN_MISS) {
        return add_from_packs(writer, cache->packs, key, out_added, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    if (!with_notes && kn_recipe_is_note(blob->recipe)) {
        kiln_blob_release(blob);
        return KILN_MISS;
    }
    kn_pack_record record = {.key = *key,
                             .compile_ns = entry.compile_ns,
                             .created_ns = entry.created_ns,
                             .payload_size = blob->size,
                             .facts_size = blob->facts_size,
                             .recipe_size = blob->recipe.length};
    kn_text_put(record.writer, sizeof record.writer, entry.writer);
    status = kn_pack_writer_take(writer, &record, kn_blob_whole(blob), out_added, diag);
    kiln_blob_release(blob);
    return status;
}

kiln_status kiln_pack_writer_add(kiln_pack_writer *writer, kiln_cache *cache, const kiln_key *key,
                                 bool *out_added, kiln_diag *diag)
{
    if (out_added != NULL) {
        *out_added = false;
    }
    kn_cache_check_fork(cache);
    return add_key(writer, cache, key, true, out_added, diag);
}

/* An entry on disk that is to be added. */
typedef struct candidate {
    kiln_key key; /* the first member: by_key */
    char target[KN_NAME_SIZE];
    uint64_t stored_size;
    int64_t used_ns;
} candidate;

typedef struct candidates {
    candidate *items;
    size_t count, room;
    kiln_diag *diag;
} candidates;

static kiln_status gather_candidate(void *user, const kiln_entry_info *info)
{
    candidates *c = user;
    if (c->count == c->room) {
        const size_t room = c->room == 0 ? 256 : c->room * 2;
        candidate *grown = realloc(c->items, room * sizeof *grown);
        if (grown == NULL) {
            return kn_no_memory(c->diag, "filling a pack");
        }
        c->items = grown;
        c->room = room;
    }
    candidate *one = &c->items[c->count++];
    *one =
        (candidate){.key = info->key, .stored_size = info->stored_size, .used_ns = info->used_ns};
    kn_text_put(one->target, sizeof one->target, info->target);
    return KILN_OK;
}

static int compare_filled_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(kiln_key));
}

/* What add_all was asked for. */
typedef struct filling {
    kiln_pack_writer *writer;
    kiln_cache *cache;
    kiln_entry_fn *visit;
    void *user;
    kiln_pack_copied copied;
    kiln_diag *diag;
} filling;

static kiln_status fill_one(filling *f, const candidate *one)
{
    bool added = false;
    const kiln_entry_info info = {.struct_size = sizeof info,
                                  .key = one->key,
                                  .target = one->target,
                                  .stored_size = one->stored_size,
                                  .used_ns = one->used_ns};
    kiln_status status = f->visit != NULL ? f->visit(f->user, &info) : KILN_OK;
    if (status != KILN_OK) {
        return status;
    }
    status = add_key(f->writer, f->cache, &one->key, false, &added, f->diag);
    if (status == KILN_MISS || status == KILN_E_CORRUPT) {
        f->copied.skipped++;
        return KILN_OK;
    }
    if (status == KILN_OK) {
        f->copied.added += added;
        f->copied.present += !added;
    }
    return status;
}

/* In order of keys: a directory lists its files in an order of its own, and equal entries must give
 * equal packs. */
kiln_status kiln_pack_writer_add_all(kiln_pack_writer *writer, kiln_cache *cache,
                                     const char *target, kiln_entry_fn *visit, void *user,
                                     kiln_pack_copied *out_copied, kiln_diag *diag)
{
    filling f = {.writer = writer, .cache = cache, .visit = visit, .user = user, .diag = diag};
    candidates all = {.diag = diag};
    const kiln_status sized =
        kn_sized_begin(KN_SIZED(kiln_pack_copied), out_copied, &f.copied, diag);
    if (sized != KILN_OK) {
        return sized;
    }
    /* A directory that cannot be listed fails the call, but what is in the others is added. */
    const kiln_status walked = kiln_cache_walk(cache, target, gather_candidate, &all, diag);
    kiln_status status = walked == KILN_E_NOMEM ? walked : KILN_OK;
    if (all.count > 0) {
        qsort(all.items, all.count, sizeof *all.items, compare_filled_keys);
    }
    for (size_t i = 0; status == KILN_OK && i < all.count; i++) {
        status = fill_one(&f, &all.items[i]);
    }
    free(all.items);
    kn_sized_end(KN_SIZED(kiln_pack_copied), &f.copied, out_copied);
    return status == KILN_OK ? walked : status;
}
