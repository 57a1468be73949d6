/* kiln verify: reads every entry on disk and checks it. */
#include <kiln/unstable/admin.h>

#include "cli/entry_name.h"
#include "cli/listing.h"
#include "cli/out.h"
#include "cli/removal.h"
#include "cli/session.h"

typedef struct verify_options {
    session_options session;
    bool remove;
} verify_options;

static const opt_spec specs[] = {
    {"remove", 'r', OPT_FLAG, offsetof(verify_options, remove), NULL, "remove the damaged entries"},
    SESSION_CACHE_ROW(verify_options),
    SESSION_JSON_ROW(verify_options),
    OPT_END};

/* Which ones, as far as they can still be looked at. */
static exit_code tell_damaged(const cmd_context *context, kiln_cache *cache)
{
    kiln_diag diag = KILN_DIAG_INIT;
    cli_listing listing;
    if (listing_make(cache, NULL, context->pool, &listing, &diag) != KILN_OK) {
        return cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    for (size_t i = 0; i < listing.count; i++) {
        entry_name name = {.name = ""};
        kiln_key key;
        kiln_status status = kiln_key_parse(listing.entries[i].key, &key, &diag);
        status =
            status == KILN_OK ? entry_name_find(cache, &key, context->pool, &name, &diag) : status;
        if (status == KILN_E_CORRUPT) {
            out_print(stdout, "damaged: %.16s of %s: %s\n", listing.entries[i].key,
                      listing.entries[i].target, diag.why);
        }
        kiln_diag_clear(&diag);
    }
    return EXIT_FINE;
}

/* What is damaged is listed before it is removed. */
static kiln_status verify_entries(const cmd_context *context, const verify_options *options,
                                  kiln_cache *cache, kiln_verify_result *result, kiln_diag *diag)
{
    kiln_status status = kiln_cache_verify(cache, false, result, diag);
    if (status == KILN_OK && result->entries_bad > 0 && !options->session.json) {
        (void)tell_damaged(context, cache); /* its message has been given */
    }
    return status == KILN_OK && result->entries_bad > 0 && options->remove
               ? kiln_cache_verify(cache, true, result, diag)
               : status;
}

static exit_code run_verify(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const verify_options *options = fields;
    kiln_cache *cache = NULL;
    kiln_verify_result result = {.struct_size = sizeof(result)};
    kiln_diag diag = KILN_DIAG_INIT;
    (void)arguments; /* takes none */
    exit_code code = options->remove
                         ? session_open_disk_to_write(context, &options->session, &cache)
                         : session_open_disk(context, &options->session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    code = verify_entries(context, options, cache, &result, &diag) == KILN_OK
               ? removal_tell_verified(context, &result, &options->remove, options->session.json)
               : cmd_fail_as(context, EXIT_CACHE, &diag);
    kiln_cache_destroy(cache);
    return code;
}

const cli_command cmd_verify = {
    .name = "verify",
    .usage = "",
    .summary = "Reads and checks every entry on disk",
    .details = "Damage never reaches a program: every read checks the entry, and a damaged one "
               "is\ncompiled again. This command finds it beforehand; it exits 5 if there was any.",
    .options = specs,
    .options_size = sizeof(verify_options),
    .run = run_verify,
};
