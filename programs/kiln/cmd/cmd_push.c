/* kiln push: gives remotes what manifests name, what a pack holds, or all of the cache. */
#include <string.h>

#include "cmd/ship_command.h"
#include "cmd/transfer_command.h"

static const opt_spec specs[] = {
    TRANSFER_ROWS,
    {"pack", 'p', OPT_TEXT, offsetof(transfer_options, pack), "FILE", "push what this pack holds"},
    {"name", 'n', OPT_TEXT, offsetof(transfer_options, name), "NAME",
     "keep the list of it there, for kiln pull --name NAME"},
    {"replace", 0, OPT_FLAG, offsetof(transfer_options, replace), NULL,
     "replace what the remotes have"},
    SESSION_CACHE_ROW(transfer_options),
    SESSION_JSON_ROW(transfer_options),
    OPT_END};

typedef struct gathering {
    cli_transfer *transfer;
    kiln_diag *diag;
    bool absent; /* a stage is not in the cache */
} gathering;

static kiln_status gather_entry(void *user, const kiln_entry_info *info)
{
    gathering *g = user;
    return transfer_add(g->transfer, &info->key, g->diag);
}

static kiln_status gather_stage(void *user, const kiln_explanation *stage)
{
    gathering *g = user;
    g->absent = g->absent || stage->why != KILN_WHY_HIT;
    return stage->why == KILN_WHY_HIT ? transfer_add(g->transfer, &stage->key, g->diag) : KILN_OK;
}

static kiln_status gather_kernel(cli_transfer *t, const transfer_kernel *one, kiln_diag *diag)
{
    gathering g = {t, diag, false};
    kiln_status status = transfer_plan(t, one, gather_stage, &g, diag);
    if (status == KILN_OK && g.absent) {
        t->missing++;
        console_say(t->context->console, "missing: %s for %s is not in the cache (kiln warm)",
                    one->kernel->name, one->target->name);
    }
    return status;
}

static kiln_status push_all(cli_transfer *t, kiln_pack *pack, kiln_diag *diag)
{
    const transfer_options *options = t->options;
    kiln_status status = KILN_OK;
    size_t kept = 0;
    for (size_t i = 0; status == KILN_OK && i < t->count; i++) {
        console_progress(t->context->console, i, t->count, "entries", 0);
        status = kiln_transfer_push(t->transfer, pack, &t->keys[i], options->replace, diag);
        if (status == KILN_OK) {
            t->moved++;
            t->keys[kept++] = t->keys[i];
        } else if (status == KILN_MISS) { /* a note of this machine, or gone meanwhile */
            status = KILN_OK;
        } else {
            status = transfer_trouble(t, status, diag);
        }
    }
    console_progress_end(t->context->console);
    if (status == KILN_OK && options->name != NULL) {
        status = kiln_transfer_push_list(t->transfer, options->name, t->keys, kept, diag);
    }
    return status;
}

static kiln_status gather_pushed(cli_transfer *t, kiln_pack *pack, const opt_list *manifests,
                                 kiln_diag *diag)
{
    gathering g = {t, diag, false};
    return pack != NULL           ? kiln_pack_walk(pack, NULL, gather_entry, &g, diag)
           : manifests->count > 0 ? transfer_each_kernel(t, manifests, gather_kernel, diag)
                                  : kiln_cache_walk(t->cache, NULL, gather_entry, &g, diag);
}

static exit_code run_push(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const transfer_options *options = fields;
    cli_transfer t;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_pack *pack = NULL;
    if (ship_is_meant(arguments)) {
        return ship_push_command(context, options, arguments);
    }
    if (options->pack != NULL && arguments->count > 0) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "give one of them", "",
                            "both manifests and --pack");
        return cmd_fail(context, &diag);
    }
    for (size_t i = 0; i < arguments->count; i++) {
        if (strstr(arguments->items[i], "://") != NULL) {
            (void)kiln_diag_set(&diag, KILN_E_INVALID, "set KILN_REMOTE to it", arguments->items[i],
                                "the URLs of remotes are not arguments");
            return cmd_fail(context, &diag);
        }
    }
    exit_code code = transfer_open(context, options, &t);
    if (code == EXIT_FINE) {
        kiln_status status =
            options->pack != NULL ? kiln_pack_open(options->pack, &pack, &diag) : KILN_OK;
        if (status == KILN_MISS) {
            status =
                kiln_diag_set(&diag, KILN_E_INVALID, NULL, options->pack, "there is no such file");
        }
        if (status == KILN_OK) {
            status = gather_pushed(&t, pack, arguments, &diag);
        }
        if (status == KILN_OK) {
            status = push_all(&t, pack, &diag);
        }
        const kiln_transfer_counts *counts = kiln_transfer_get_counts(t.transfer);
        code = status == KILN_OK          ? transfer_tell(&t, "pushed", counts, NULL)
               : status == KILN_E_INVALID ? cmd_fail(context, &diag)
                                          : cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    kiln_pack_close(pack);
    transfer_close(&t);
    return code;
}

const cli_command cmd_push = {
    .name = "push",
    .usage = "[oci://REGISTRY/NAME:TAG [RECORDING]|MANIFEST...]",
    .summary = "Gives remotes, or a registry, what manifests name, a pack, or the whole cache",
    .details =
        "Uploads the entries that the manifests' kernels have in the cache for the targets (kiln\n"
        "warm makes them), those of a pack, or, without either, all. What a remote has stays\n"
        "there. KILN_SIGNING_KEY signs.\n\n"
        "To a registry of container images go packs, as an image: one layer a target, of --pack "
        "or\n"
        "of the whole cache. It needs skopeo, which logs in as docker and podman do. oci+http://\n"
        "is a registry without TLS. With a RECORDING that goes there instead: its sources, for "
        "all\n"
        "who may read the registry. Nothing else ever sends one away.",
    .options = specs,
    .options_size = sizeof(transfer_options),
    .min_arguments = 0,
    .max_arguments = 10000,
    .run = run_push,
};
