/* kiln cache: where the cache lies, how large it is, and its namespaces. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/admin.h>

#include "cli/listing.h"
#include "cli/out.h"
#include "cli/session.h"

typedef struct cache_options {
    session_options session;
} cache_options;

static const opt_spec specs[] = {SESSION_CACHE_ROW(cache_options), SESSION_JSON_ROW(cache_options),
                                 OPT_END};

static bool print_cache_json(const char *root, const cli_listing *listing)
{
    json_t *object = json_object();
    out_json_set(&object, "root", out_json_text(root));
    out_json_set(&object, "entries", out_json_u64(listing->count));
    out_json_set(&object, "bytes", out_json_u64(listing->disk_bytes));
    return out_json(stdout, object);
}

static exit_code tell_size(const cmd_context *context, const cache_options *options,
                           kiln_cache *cache)
{
    cli_listing listing;
    kiln_diag diag = KILN_DIAG_INIT;
    if (listing_make(cache, NULL, context->pool, &listing, &diag) != KILN_OK) {
        return cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    if (options->session.json) {
        return print_cache_json(kiln_cache_root(cache), &listing) ? EXIT_FINE
                                                                  : cmd_no_memory(context);
    }
    const char *bytes = out_bytes(context->pool, listing.disk_bytes);
    if (bytes == NULL) {
        return cmd_no_memory(context);
    }
    (void)printf("%s in %zu %s\n", bytes, listing.count, listing.count == 1 ? "entry" : "entries");
    return EXIT_FINE;
}

/* --- namespaces ------------------------------------------------------------------------------- */

typedef struct namespace_list {
    cli_pool *pool;
    const char **names;
    size_t count, capacity;
} namespace_list;

static kiln_status add_namespace(void *user, const char *name)
{
    namespace_list *list = user;
    const char **names =
        pool_grow(list->pool, list->names, &list->capacity, list->count, sizeof(*names));
    const char *copy = pool_text(list->pool, name, strlen(name));
    if (names == NULL || copy == NULL) {
        return KILN_E_NOMEM;
    }
    list->names = names;
    list->names[list->count++] = copy;
    return KILN_OK;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Adds a row for one namespace, or for the rest of the cache (""). */
static exit_code add_row(const cmd_context *context, const cache_options *options, const char *name,
                         out_table *table, json_t **rows)
{
    session_options session = options->session;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    cli_listing listing;
    session.name_space = name;
    exit_code code = session_open_disk(context, &session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    if (listing_make(cache, NULL, context->pool, &listing, &diag) != KILN_OK) {
        kiln_cache_destroy(cache);
        return cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    kiln_cache_destroy(cache);
    const char *cells[] = {*name != '\0' ? name : "(none)",
                           pool_format(context->pool, "%zu", listing.count),
                           out_bytes(context->pool, listing.disk_bytes)};
    if (cells[1] == NULL || cells[2] == NULL) {
        return cmd_no_memory(context);
    }
    out_table_add(table, cells);
    json_t *row = json_object();
    out_json_set(&row, "namespace", out_json_text(name));
    out_json_set(&row, "entries", out_json_u64(listing.count));
    out_json_set(&row, "bytes", out_json_u64(listing.disk_bytes));
    out_json_append(rows, row);
    return EXIT_FINE;
}

static exit_code list_namespaces(const cmd_context *context, const cache_options *options)
{
    session_options whole = options->session;
    namespace_list list = {.pool = context->pool};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    whole.name_space = "";
    exit_code code = session_open_disk(context, &whole, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    kiln_status status = kiln_cache_walk_namespaces(cache, add_namespace, &list, &diag);
    kiln_cache_destroy(cache);
    if (status != KILN_OK) {
        return status == KILN_E_NOMEM ? cmd_no_memory(context)
                                      : cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    if (list.count > 1) {
        qsort(list.names, list.count, sizeof(*list.names), compare_names);
    }
    out_table table = out_table_make(context->pool, "namespace|>entries|>size");
    json_t *rows = json_array();
    code = add_row(context, options, "", &table, &rows);
    for (size_t i = 0; code == EXIT_FINE && i < list.count; i++) {
        code = add_row(context, options, list.names[i], &table, &rows);
    }
    if (code == EXIT_FINE && options->session.json) {
        return out_json(stdout, rows) ? EXIT_FINE : cmd_no_memory(context);
    }
    json_decref(rows);
    return code == EXIT_FINE && !out_table_print(&table, stdout) ? cmd_no_memory(context) : code;
}

static exit_code run_cache(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const cache_options *options = fields;
    const char *action = arguments->items[0];
    kiln_cache *cache = NULL;
    const bool size = strcmp(action, "size") == 0;
    if (strcmp(action, "namespaces") == 0) {
        return list_namespaces(context, options);
    }
    if (!size && strcmp(action, "dir") != 0) {
        kiln_diag diag = KILN_DIAG_INIT;
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "give dir, size or namespaces", "",
                            "kiln cache has no action \"%.60s\"", action);
        return cmd_fail(context, &diag);
    }
    exit_code code = session_open_disk(context, &options->session, &cache);
    if (code == EXIT_FINE && (size || options->session.json)) {
        code = tell_size(context, options, cache);
    } else if (code == EXIT_FINE) {
        out_print(stdout, "%s\n", kiln_cache_root(cache));
    }
    kiln_cache_destroy(cache);
    return code;
}

const cli_command cmd_cache = {
    .name = "cache",
    .usage = "dir|size|namespaces",
    .summary = "Says where the cache lies, how large it is, and its namespaces",
    .details = "dir         prints the directory of the cache\n"
               "size        prints what its entries take on disk, and how many there are\n"
               "namespaces  lists the parts of the cache that KILN_NAMESPACE has named",
    .options = specs,
    .options_size = sizeof(cache_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_cache,
};
