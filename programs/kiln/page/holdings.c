/* Every entry is read whole: what took how long is in its header. */
#include "page/holdings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/warm.h>

#include "cli/diag.h"
#include "cli/entry_name.h"

typedef struct holding {
    cli_pool *pool;
    held_entry *entry;
} holding;

static kiln_status hold_entry(void *user, const kiln_entry_info *info)
{
    const holding *h = user;
    entry_name name = {.name = ""};
    held_entry *entry = h->entry;
    if (!entry_name_of(h->pool, info, &name)) {
        return KILN_E_NOMEM;
    }
    entry->key = info->key;
    entry->stage = name.stage;
    entry->name = name.name;
    entry->note = name.note;
    entry->created_ns = info->created_ns;
    entry->compile_ns = info->compile_ns;
    return KILN_OK;
}

static int compare_cost(const void *left, const void *right)
{
    const held_entry *a = left;
    const held_entry *b = right;
    if (a->compile_ns != b->compile_ns) {
        return a->compile_ns > b->compile_ns ? -1 : 1;
    }
    return memcmp(&a->key, &b->key, sizeof(a->key));
}

static kiln_status hold_entries(kiln_cache *cache, const cli_listing *listing, cli_pool *pool,
                                cli_console *console, holdings *out, kiln_diag *diag)
{
    enum { STEP = 256 };
    out->entries = pool_array(pool, listing->count + 1, sizeof(*out->entries));
    if (out->entries == NULL) {
        return diag_no_memory(diag, "reading the cache's entries");
    }
    for (size_t i = 0; i < listing->count; i++) {
        const listing_entry *from = &listing->entries[i];
        held_entry *entry = &out->entries[out->count];
        holding h = {pool, entry};
        kiln_key key;
        if (i % STEP == 0) {
            console_progress(console, i, listing->count, "entries", 0.0);
        }
        kiln_status status = kiln_key_parse(from->key, &key, diag);
        status = status == KILN_OK ? kiln_cache_inspect(cache, &key, hold_entry, &h, diag) : status;
        if (status == KILN_E_NOMEM) {
            return diag_no_memory(diag, "reading the cache's entries");
        }
        if (status != KILN_OK) {
            kiln_diag_clear(diag);
            out->unreadable++;
            continue;
        }
        entry->target = from->target;
        entry->stored_size = from->stored_size;
        entry->used_ns = from->used_ns;
        kiln_cache_uses(cache, &key, 1, &entry->uses, NULL);
        out->count++;
    }
    console_progress_end(console);
    if (out->count > 1) {
        qsort(out->entries, out->count, sizeof(*out->entries), compare_cost);
    }
    return KILN_OK;
}

kiln_status holdings_read(kiln_cache *cache, cli_pool *pool, cli_console *console,
                          holdings *out_holdings, kiln_diag *diag)
{
    cli_listing listing;
    memset(out_holdings, 0, sizeof(*out_holdings));
    out_holdings->root = kiln_cache_root(cache);
    kiln_status status = kiln_cache_get_totals(cache, out_holdings->counters, KILN_COUNTERS, diag);
    status = status == KILN_OK ? listing_make(cache, NULL, pool, &listing, diag) : status;
    status = status == KILN_OK ? hold_entries(cache, &listing, pool, console, out_holdings, diag)
                               : status;
    if (status == KILN_OK) {
        out_holdings->disk_bytes = listing.disk_bytes;
        status = bypasses_read(cache, pool, &out_holdings->bypasses, diag);
    }
    return status;
}
