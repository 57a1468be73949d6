/* kiln cache: where the cache lies, and how large it is. */
#include <inttypes.h>
#include <string.h>

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

static exit_code run_cache(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const cache_options *options = fields;
    const char *action = arguments->items[0];
    kiln_cache *cache = NULL;
    const bool size = strcmp(action, "size") == 0;
    if (!size && strcmp(action, "dir") != 0) {
        kiln_diag diag = KILN_DIAG_INIT;
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "give dir or size", "",
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
    .usage = "dir|size",
    .summary = "Says where the cache lies, or how large it is",
    .details = "dir   prints the directory of the cache\n"
               "size  prints what its entries take on disk, and how many there are",
    .options = specs,
    .options_size = sizeof(cache_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_cache,
};
