/* kiln show KEY: everything an entry says about itself. */
#include <inttypes.h>

#include <kiln/unstable/admin.h>

#include "cli/entry_name.h"
#include "cli/host.h"
#include "cli/listing.h"
#include "cli/out.h"
#include "cli/session.h"

typedef struct show_options {
    session_options session;
    const char *output;
} show_options;

static const opt_spec specs[] = {{"output", 'o', OPT_TEXT, offsetof(show_options, output), "FILE",
                                  "also write the payload to FILE"},
                                 SESSION_CACHE_ROW(show_options),
                                 SESSION_JSON_ROW(show_options),
                                 OPT_END};

/* What the visitor needs; it prints while the entry's strings live. */
typedef struct show_visit {
    const cmd_context *context;
    bool json;
} show_visit;

static bool print_entry_text(const show_visit *visit, const kiln_entry_info *info)
{
    cli_pool *pool = visit->context->pool;
    char key[KILN_KEY_TEXT_SIZE];
    kiln_key_format(&info->key, key);
    const char *stored = out_bytes(pool, info->stored_size);
    const char *payload = out_bytes(pool, info->payload_size);
    const char *facts = out_bytes(pool, info->facts_size);
    const char *created = out_ago(pool, info->created_ns);
    const char *used = out_ago(pool, info->used_ns);
    const char *compile = out_time(pool, info->compile_ns);
    entry_name name = {.name = ""};
    if (!entry_name_of(pool, info, &name) || stored == NULL || payload == NULL || facts == NULL ||
        created == NULL || used == NULL || compile == NULL) {
        return false;
    }
    out_pair(stdout, "name", "%s", name.name);
    out_pair(stdout, "stage", "%s", name.stage);
    out_pair(stdout, "key", "%s", key);
    out_pair(stdout, "target", "%s", info->target);
    out_pair(stdout, "stored", "%s", stored);
    out_pair(stdout, "payload", "%s", payload);
    out_pair(stdout, "facts", "%s", facts);
    out_pair(stdout, "created", "%s", created);
    out_pair(stdout, "used", "%s", used);
    out_pair(stdout, "compile time", "%s", info->compile_ns > 0 ? compile : "not known");
    out_pair(stdout, "kiln", "%s", info->kiln_version != NULL ? info->kiln_version : "");
    (void)putchar('\n');
    out_write(stdout, info->recipe != NULL ? info->recipe : "");
    return true;
}

static bool print_entry_json(cli_pool *pool, const kiln_entry_info *info)
{
    char key[KILN_KEY_TEXT_SIZE];
    entry_name name = {.name = ""};
    if (!entry_name_of(pool, info, &name)) {
        return false;
    }
    kiln_key_format(&info->key, key);
    json_t *root = json_object();
    out_json_set(&root, "key", out_json_text(key));
    out_json_set(&root, "name", out_json_text(name.name));
    out_json_set(&root, "stage", out_json_text(name.stage));
    out_json_set(&root, "target", out_json_text(info->target));
    out_json_set(&root, "stored_bytes", out_json_u64(info->stored_size));
    out_json_set(&root, "payload_bytes", out_json_u64(info->payload_size));
    out_json_set(&root, "facts_bytes", out_json_u64(info->facts_size));
    out_json_set(&root, "created_ns", json_integer(info->created_ns));
    out_json_set(&root, "used_ns", json_integer(info->used_ns));
    out_json_set(&root, "compile_ms", out_json_ms(info->compile_ns));
    out_json_set(&root, "kiln_version",
                 out_json_text(info->kiln_version != NULL ? info->kiln_version : ""));
    out_json_set(&root, "recipe", out_json_text(info->recipe != NULL ? info->recipe : ""));
    return out_json(stdout, root);
}

static kiln_status print_entry(void *user, const kiln_entry_info *info)
{
    const show_visit *visit = user;
    bool good =
        visit->json ? print_entry_json(visit->context->pool, info) : print_entry_text(visit, info);
    return good ? KILN_OK : KILN_E_NOMEM;
}

static kiln_status write_payload(kiln_cache *cache, const kiln_key *key, const char *path,
                                 kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    kiln_status status = kiln_cache_get(cache, key, &blob, NULL, diag);
    if (status == KILN_OK) {
        status = host_write_file(path, kiln_blob_data(blob), kiln_blob_size(blob), diag);
    } else if (status == KILN_MISS) {
        status = kiln_diag_set(diag, KILN_MISS, "unset KILN_RECACHE and KILN_NO_CACHE", path,
                               "nothing is written: the entry is gone or unusable");
    }
    kiln_blob_release(blob);
    return status;
}

static exit_code show_entry(const cmd_context *context, const show_options *options,
                            kiln_cache *cache, const char *prefix)
{
    kiln_diag diag = KILN_DIAG_INIT;
    cli_listing listing;
    kiln_key key;
    show_visit visit = {context, options->session.json};
    kiln_status status = listing_make(cache, NULL, context->pool, &listing, &diag);
    if (status != KILN_OK) {
        return cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    status = listing_find(&listing, prefix, &key, &diag);
    if (status == KILN_OK) {
        status = kiln_cache_inspect(cache, &key, print_entry, &visit, &diag);
        if (status != KILN_OK && diag.status == KILN_OK) {
            (void)kiln_diag_set(&diag, status, NULL, prefix, "%s", kiln_status_text(status));
        }
    }
    if (status == KILN_OK && options->output != NULL) {
        status = write_payload(cache, &key, options->output, &diag);
    }
    return status == KILN_OK ? EXIT_FINE : cmd_fail(context, &diag);
}

static exit_code run_show(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const show_options *options = fields;
    kiln_cache *cache = NULL;
    exit_code code = session_open_disk(context, &options->session, &cache);
    if (code == EXIT_FINE) {
        code = show_entry(context, options, cache, arguments->items[0]);
        kiln_cache_destroy(cache);
    }
    return code;
}

const cli_command cmd_show = {
    .name = "show",
    .usage = "KEY",
    .summary = "Shows one entry: its recipe, sizes and times",
    .details = "KEY is a whole key or its first digits (4 or more) where they are unique.",
    .options = specs,
    .options_size = sizeof(show_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_show,
};
