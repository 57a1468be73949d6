/* A walk, kept and sorted. */
#include "cli/listing.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/admin.h>

#define BLOCK 4096u

static kiln_status add_listed(void *user, const kiln_entry_info *info)
{
    cli_listing *listing = user;
    listing_entry *entries = pool_grow(listing->pool, listing->entries, &listing->capacity,
                                       listing->count, sizeof(*entries));
    if (entries == NULL) {
        return KILN_E_NOMEM;
    }
    listing->entries = entries;
    listing_entry *entry = &listing->entries[listing->count];
    kiln_key_format(&info->key, entry->key);
    /* Entries of one target mostly follow each other: share the text. */
    if (listing->count > 0 && strcmp(entry[-1].target, info->target) == 0) {
        entry->target = entry[-1].target;
    } else {
        entry->target = pool_text(listing->pool, info->target, strlen(info->target));
    }
    if (entry->target == NULL) {
        return KILN_E_NOMEM;
    }
    entry->stored_size = info->stored_size;
    entry->used_ns = info->used_ns;
    listing->bytes += info->stored_size;
    listing->disk_bytes += (info->stored_size + BLOCK - 1) / BLOCK * BLOCK;
    listing->count++;
    return KILN_OK;
}

static int compare_use(const void *left, const void *right)
{
    const listing_entry *a = left;
    const listing_entry *b = right;
    if (a->used_ns != b->used_ns) {
        return a->used_ns < b->used_ns ? 1 : -1;
    }
    return strcmp(a->key, b->key);
}

kiln_status listing_make(kiln_cache *cache, const char *target, cli_pool *pool,
                         cli_listing *out_listing, kiln_diag *diag)
{
    *out_listing = (cli_listing){.pool = pool};
    kiln_status status = kiln_cache_walk(cache, target, add_listed, out_listing, diag);
    if (status == KILN_E_NOMEM) {
        return kiln_diag_set(diag, status, NULL, "listing the cache", "out of memory");
    }
    if (status == KILN_OK && out_listing->count > 1) {
        qsort(out_listing->entries, out_listing->count, sizeof(listing_entry), compare_use);
    }
    return status;
}

kiln_status listing_find(const cli_listing *listing, const char *prefix, kiln_key *out_key,
                         kiln_diag *diag)
{
    enum { SHORTEST = 4 };
    size_t length = strlen(prefix);
    const listing_entry *found = NULL;
    if (length < SHORTEST || length > KILN_KEY_TEXT_SIZE - 1 ||
        strspn(prefix, "0123456789abcdef") != length) {
        return kiln_diag_set(diag, KILN_E_INVALID, "kiln ls lists the keys", prefix,
                             "a key is 4 to 64 lower-case hexadecimal digits");
    }
    for (size_t i = 0; i < listing->count; i++) {
        if (strncmp(listing->entries[i].key, prefix, length) != 0) {
            continue;
        }
        if (found != NULL) {
            return kiln_diag_set(diag, KILN_E_INVALID, "give more digits", prefix,
                                 "more than one key begins with that: %.16s and %.16s", found->key,
                                 listing->entries[i].key);
        }
        found = &listing->entries[i];
    }
    if (found == NULL) {
        return kiln_diag_set(diag, KILN_MISS, "kiln ls lists the keys", prefix,
                             "no entry has a key that begins with that");
    }
    return kiln_key_parse(found->key, out_key, diag);
}
