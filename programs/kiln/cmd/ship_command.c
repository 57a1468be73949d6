/* Options that only remotes have are refused here, so that none is passed over. */
#include "cmd/ship_command.h"

#include <inttypes.h>

#include <kiln/unstable/recording.h>

#include "cli/out.h"
#include "ship/client.h"
#include "ship/ship_recording.h"

bool ship_is_meant(const opt_list *arguments)
{
    return arguments->count > 0 && client_means_place(arguments->items[0]);
}

/* What is pulled is put where nothing is yet. */
static bool is_recording_meant(const opt_list *arguments, bool pull)
{
    return arguments->count == 2 && (pull || kiln_recording_is(arguments->items[1]));
}

static kiln_status check_ship_options(const transfer_options *options, const opt_list *arguments,
                                      bool pull, kiln_diag *diag)
{
    const char *given = options->name != NULL        ? "--name"
                        : options->remote != NULL    ? "--remote"
                        : options->targets.count > 0 ? "--target"
                        : options->all               ? "--all"
                        : options->replace           ? "--replace"
                                                     : NULL;
    if (given != NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "leave it out", given,
                             "it is for remotes, not for a registry");
    }
    if (arguments->count == 2 && options->pack != NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give one of them", arguments->items[1],
                             "a recording, and --pack");
    }
    if (arguments->count > (is_recording_meant(arguments, pull) ? 2u : 1u)) {
        return kiln_diag_set(diag, KILN_E_INVALID,
                             "make a pack of manifests first: kiln warm --pack FILE", "",
                             "unexpected argument \"%.100s\"", arguments->items[1]);
    }
    return KILN_OK;
}

/* KILN_E_UNSUPPORTED is that something is not installed, or that a newer kiln is needed. */
static exit_code fail_ship(const cmd_context *context, kiln_diag *diag)
{
    const kiln_status status = diag->status;
    return status == KILN_E_REJECTED      ? cmd_fail_as(context, EXIT_DAMAGE, diag)
           : status == KILN_E_UNSUPPORTED ? cmd_fail_as(context, EXIT_UNAVAILABLE, diag)
           : status == KILN_E_UNAVAILABLE ? cmd_fail_as(context, EXIT_CACHE, diag)
                                          : cmd_fail(context, diag);
}

static exit_code tell_shipped(const cmd_context *context, const transfer_options *options,
                              const char *verb, const ship_result *result)
{
    if (options->session.json) {
        json_t *root = json_object();
        out_json_set(&root, verb, out_json_u64(result->entries));
        out_json_set(&root, "layers", out_json_u64(result->layers));
        out_json_set(&root, "pack_bytes", out_json_u64(result->bytes));
        out_json_set(&root, "signed", json_boolean(result->is_signed));
        if (result->digest[0] != '\0') {
            out_json_set(&root, "digest", out_json_text(result->digest));
        }
        return out_json(stdout, root) ? EXIT_FINE : cmd_no_memory(context);
    }
    const char *size = out_bytes(context->pool, result->bytes);
    if (size == NULL) {
        return cmd_no_memory(context);
    }
    (void)printf("%" PRIu64 " %s in %zu %s, %s, %s\n", result->entries, verb, result->layers,
                 result->layers == 1 ? "layer" : "layers", size,
                 result->is_signed ? "signed" : "not signed");
    if (result->digest[0] != '\0') {
        (void)printf("%s\n", result->digest);
    }
    return EXIT_FINE;
}

static exit_code run_ship_recording(const cmd_context *context, const transfer_options *options,
                                    const opt_list *arguments, bool pull)
{
    const char *place = arguments->items[0], *path = arguments->items[1];
    kiln_diag diag = KILN_DIAG_INIT;
    ship_result result;
    kiln_status status =
        pull ? ship_pull_recording(context, place, path, options->unsigned_too, &result, &diag)
             : ship_push_recording(context, place, path, &result, &diag);
    return status == KILN_OK ? tell_shipped(context, options, pull ? "pulled" : "pushed", &result)
                             : fail_ship(context, &diag);
}

/* Without --pack the whole cache is what goes up, and what is filled. */
static exit_code run_ship(const cmd_context *context, const transfer_options *options,
                          const opt_list *arguments, bool pull)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    ship_result result;
    if (check_ship_options(options, arguments, pull, &diag) != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    if (is_recording_meant(arguments, pull)) {
        return run_ship_recording(context, options, arguments, pull);
    }
    if (options->pack == NULL) {
        const exit_code code = (pull ? session_open_disk_to_write
                                     : session_open_disk)(context, &options->session, &cache);
        if (code != EXIT_FINE) {
            return code;
        }
    }
    const char *place = arguments->items[0];
    kiln_status status = pull ? ship_pull(context, place, cache, options->pack,
                                          options->unsigned_too, &result, &diag)
                              : ship_push(context, place, cache, options->pack, &result, &diag);
    if (!pull && status == KILN_MISS) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "kiln pack create makes one", options->pack,
                            "there is no such file");
    }
    exit_code code = status == KILN_OK
                         ? tell_shipped(context, options, pull ? "pulled" : "pushed", &result)
                         : fail_ship(context, &diag);
    kiln_cache_destroy(cache);
    return code;
}

exit_code ship_push_command(const cmd_context *context, const transfer_options *options,
                            const opt_list *arguments)
{
    return run_ship(context, options, arguments, false);
}

exit_code ship_pull_command(const cmd_context *context, const transfer_options *options,
                            const opt_list *arguments)
{
    return run_ship(context, options, arguments, true);
}
