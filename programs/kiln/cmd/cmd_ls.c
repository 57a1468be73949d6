/* kiln ls: the entries on disk, last used first. */
#include "cli/chosen_target.h"
#include "cli/listing.h"
#include "cli/out.h"
#include "cli/session.h"

typedef struct ls_options {
    session_options session;
    const char *target;
    bool full;
    opt_number limit;
} ls_options;

static const opt_spec specs[] = {
    {"target", 't', OPT_TEXT, offsetof(ls_options, target), "NAME", "only entries of this target"},
    {"full", 'f', OPT_FLAG, offsetof(ls_options, full), NULL, "print whole keys"},
    {"limit", 'n', OPT_COUNT, offsetof(ls_options, limit), "N", "print at most N entries"},
    SESSION_CACHE_ROW(ls_options),
    SESSION_JSON_ROW(ls_options),
    OPT_END};

static bool print_entry_table(const cmd_context *context, const ls_options *options,
                              const cli_listing *listing, size_t shown)
{
    static const out_column columns[] = {
        {"key", false}, {"target", false}, {"size", true}, {"used", false}};
    cli_pool *pool = context->pool;
    out_table table;
    out_table_init(&table, pool, columns, 4);
    for (size_t i = 0; i < shown; i++) {
        const listing_entry *entry = &listing->entries[i];
        const char *cells[] = {pool_format(pool, "%.*s", options->full ? 64 : 16, entry->key),
                               entry->target, out_bytes(pool, entry->stored_size),
                               out_ago(pool, entry->used_ns)};
        out_table_add(&table, cells);
    }
    if (shown > 0 && !out_table_print(&table, stdout)) {
        return false;
    }
    const char *total = out_bytes(pool, listing->bytes);
    (void)printf("%zu %s, %s\n", listing->count, listing->count == 1 ? "entry" : "entries",
                 total != NULL ? total : "?");
    return true;
}

static bool print_entries_json(const cli_listing *listing, size_t shown, const char *root_dir)
{
    json_t *root = json_object();
    json_t *entries = json_array();
    for (size_t i = 0; i < shown; i++) {
        const listing_entry *entry = &listing->entries[i];
        json_t *row = json_object();
        out_json_set(&row, "key", out_json_text(entry->key));
        out_json_set(&row, "target", out_json_text(entry->target));
        out_json_set(&row, "stored_bytes", out_json_u64(entry->stored_size));
        out_json_set(&row, "used_ns", json_integer(entry->used_ns));
        out_json_append(&entries, row);
    }
    out_json_set(&root, "root", out_json_text(root_dir));
    out_json_set(&root, "count", out_json_u64(listing->count));
    out_json_set(&root, "bytes", out_json_u64(listing->bytes));
    out_json_set(&root, "entries", entries);
    return out_json(stdout, root);
}

static exit_code run_ls(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const ls_options *options = fields;
    kiln_cache *cache = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_listing listing;
    (void)arguments; /* takes none */
    exit_code code = session_open_disk(context, &options->session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    code = chosen_target_check(context, cache, options->target);
    if (code != EXIT_FINE) {
        kiln_cache_destroy(cache);
        return code;
    }
    if (listing_make(cache, options->target, context->pool, &listing, &diag) != KILN_OK) {
        code = cmd_fail_as(context, EXIT_CACHE, &diag);
    } else {
        size_t shown = listing.count;
        if (options->limit.given && options->limit.value < shown) {
            shown = (size_t)options->limit.value;
        }
        bool good = options->session.json
                        ? print_entries_json(&listing, shown, kiln_cache_root(cache))
                        : print_entry_table(context, options, &listing, shown);
        code = good ? EXIT_FINE : cmd_no_memory(context);
    }
    kiln_cache_destroy(cache);
    return code;
}

const cli_command cmd_ls = {
    .name = "ls",
    .usage = "",
    .summary = "Lists the entries of the cache, last used first",
    .options = specs,
    .options_size = sizeof(ls_options),
    .run = run_ls,
};
