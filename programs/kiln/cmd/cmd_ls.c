/* kiln ls: the entries on disk, last used first. */
#include "cli/chosen_target.h"
#include "cli/diag.h"
#include "cli/entry_name.h"
#include "cli/listing.h"
#include "cli/out.h"
#include "cli/session.h"

typedef struct ls_options {
    session_options session;
    const char *target;
    bool full, all;
    opt_number limit;
} ls_options;

static const opt_spec specs[] = {
    {"target", 't', OPT_TEXT, offsetof(ls_options, target), "NAME", "only entries of this target"},
    {"full", 'f', OPT_FLAG, offsetof(ls_options, full), NULL, "print whole keys"},
    {"all", 'a', OPT_FLAG, offsetof(ls_options, all), NULL,
     "list kiln's own notes, too: headers of sources, what toolchains said"},
    {"limit", 'n', OPT_COUNT, offsetof(ls_options, limit), "N", "print at most N entries"},
    SESSION_CACHE_ROW(ls_options),
    SESSION_JSON_ROW(ls_options),
    OPT_END};

/* The entries that are shown, with what they are called. */
typedef struct ls_rows {
    const listing_entry **entries;
    entry_name *names;
    size_t count;
    size_t notes; /* that are not among them */
    uint64_t bytes;
} ls_rows;

static bool is_past(const ls_options *options, const ls_rows *rows)
{
    return options->limit.given && rows->count >= options->limit.value;
}

/* What is damaged or gone is left out: kiln verify finds it. */
static kiln_status choose_rows(const cmd_context *context, const ls_options *options,
                               kiln_cache *cache, const cli_listing *listing, ls_rows *out_rows,
                               kiln_diag *diag)
{
    enum { STEP = 256 };
    *out_rows = (ls_rows){
        .entries = pool_array(context->pool, listing->count + 1, sizeof(*out_rows->entries)),
        .names = pool_array(context->pool, listing->count + 1, sizeof(*out_rows->names))};
    if (out_rows->entries == NULL || out_rows->names == NULL) {
        return diag_no_memory(diag, "listing the cache");
    }
    for (size_t i = 0; i < listing->count; i++) {
        const listing_entry *entry = &listing->entries[i];
        entry_name *name = &out_rows->names[out_rows->count];
        kiln_key key;
        if (i % STEP == 0) {
            console_progress(context->console, i, listing->count, "entries", 0.0);
        }
        kiln_status status = kiln_key_parse(entry->key, &key, diag);
        status =
            status == KILN_OK ? entry_name_find(cache, &key, context->pool, name, diag) : status;
        if (status == KILN_E_NOMEM) {
            return status;
        }
        kiln_diag_clear(diag);
        const bool hidden =
            status == KILN_OK && name->note && !options->all && !options->session.json;
        out_rows->notes += hidden;
        if (status == KILN_OK && !hidden && !is_past(options, out_rows)) {
            out_rows->entries[out_rows->count++] = entry;
        }
        out_rows->bytes += status == KILN_OK && !hidden ? entry->stored_size : 0;
    }
    console_progress_end(context->console);
    return KILN_OK;
}

static bool print_entry_table(const cmd_context *context, const ls_options *options,
                              const cli_listing *listing, const ls_rows *rows)
{
    cli_pool *pool = context->pool;
    out_table table = out_table_make(pool, "key|name|stage|target|>size|used");
    for (size_t i = 0; i < rows->count; i++) {
        const listing_entry *entry = rows->entries[i];
        const char *cells[] = {pool_format(pool, "%.*s", options->full ? 64 : 16, entry->key),
                               rows->names[i].name,
                               rows->names[i].stage,
                               entry->target,
                               out_bytes(pool, entry->stored_size),
                               out_ago(pool, entry->used_ns)};
        out_table_add(&table, cells);
    }
    if (rows->count > 0 && !out_table_print(&table, stdout)) {
        return false;
    }
    const size_t count = listing->count - rows->notes;
    const char *total = out_bytes(pool, rows->bytes);
    (void)printf("%zu %s, %s", count, count == 1 ? "entry" : "entries",
                 total != NULL ? total : "?");
    if (rows->notes > 0) {
        (void)printf(" (and %zu %s of kiln's: --all)", rows->notes,
                     rows->notes == 1 ? "note" : "notes");
    }
    (void)putchar('\n');
    return true;
}

static bool print_entries_json(const cli_listing *listing, const ls_rows *rows,
                               const char *root_dir)
{
    json_t *root = json_object();
    json_t *entries = json_array();
    for (size_t i = 0; i < rows->count; i++) {
        const listing_entry *entry = rows->entries[i];
        json_t *row = json_object();
        out_json_set(&row, "key", out_json_text(entry->key));
        out_json_set(&row, "name", out_json_text(rows->names[i].name));
        out_json_set(&row, "stage", out_json_text(rows->names[i].stage));
        out_json_set(&row, "note", json_boolean(rows->names[i].note));
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
    ls_rows rows;
    if (listing_make(cache, options->target, context->pool, &listing, &diag) != KILN_OK ||
        choose_rows(context, options, cache, &listing, &rows, &diag) != KILN_OK) {
        code = cmd_fail_as(context, EXIT_CACHE, &diag);
    } else {
        bool good = options->session.json
                        ? print_entries_json(&listing, &rows, kiln_cache_root(cache))
                        : print_entry_table(context, options, &listing, &rows);
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
