/* kiln pull: gets from remotes what manifests name, or what was pushed under a name, into the cache
 * and into a pack. */
#include <string.h>

#include "cmd/ship_command.h"
#include "cmd/transfer_command.h"

static const opt_spec specs[] = {TRANSFER_ROWS,
                                 {"name", 'n', OPT_TEXT, offsetof(transfer_options, name), "NAME",
                                  "pull what kiln push --name NAME pushed"},
                                 {"pack", 'p', OPT_TEXT, offsetof(transfer_options, pack), "FILE",
                                  "write a pack of exactly these entries, too"},
                                 {"unsigned", 0, OPT_FLAG, offsetof(transfer_options, unsigned_too),
                                  NULL, "oci://: take packs though no key is set to judge them by"},
                                 SESSION_CACHE_ROW(transfer_options),
                                 SESSION_JSON_ROW(transfer_options),
                                 OPT_END};

/* False: it is not here now. */
static kiln_status pull_one(cli_transfer *t, const kiln_key *key, bool *out_here, kiln_diag *diag)
{
    bool present = false;
    kiln_status status = kiln_transfer_pull(t->transfer, key, &present, diag);
    *out_here = status == KILN_OK;
    if (status == KILN_OK) {
        t->moved += !present;
        t->present += present;
        return transfer_add(t, key, diag);
    }
    if (status == KILN_MISS) {
        t->missing++;
        return KILN_OK;
    }
    return transfer_trouble(t, status, diag);
}

/* --- manifests -------------------------------------------------------------------------------- */

typedef struct looking {
    cli_transfer *transfer;
    kiln_diag *diag;
    bool absent; /* `key` is the first that is not here */
    kiln_key key;
} looking;

static kiln_status look_at_stage(void *user, const kiln_explanation *stage)
{
    looking *l = user;
    const size_t before = l->transfer->count;
    if (stage->why == KILN_WHY_NEW && !l->absent) {
        l->absent = true;
        l->key = stage->key;
    }
    if (stage->why != KILN_WHY_HIT) {
        return KILN_OK;
    }
    kiln_status status = transfer_add(l->transfer, &stage->key, l->diag);
    l->transfer->present += l->transfer->count > before;
    return status;
}

/* A stage's key is known when the one before it is here: pulls, and looks again. */
static kiln_status pull_kernel(cli_transfer *t, const transfer_kernel *one, kiln_diag *diag)
{
    kiln_key last;
    memset(&last, 0, sizeof(last));
    for (bool here = true; here;) {
        looking l = {.transfer = t, .diag = diag};
        kiln_status status = transfer_plan(t, one, look_at_stage, &l, diag);
        if (status != KILN_OK || !l.absent) {
            return status;
        }
        if (memcmp(&last, &l.key, sizeof(last)) == 0) {
            return KILN_OK; /* it came, and went again: a full disk */
        }
        last = l.key;
        const uint64_t missing = t->missing;
        status = pull_one(t, &l.key, &here, diag);
        if (status != KILN_OK) {
            return status;
        }
        if (t->missing > missing) {
            console_say(t->context->console, "missing: %s for %s", one->kernel->name,
                        one->target->name);
        }
    }
    return KILN_OK;
}

/* --- a list ----------------------------------------------------------------------------------- */

static kiln_status pull_name(cli_transfer *t, kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    kiln_status status = kiln_transfer_pull_list(t->transfer, t->options->name, &blob, diag);
    if (status == KILN_MISS) {
        return kiln_diag_set(diag, KILN_E_INVALID, "kiln push --name makes it", t->options->name,
                             "no remote has such a list");
    }
    const size_t count = status == KILN_OK ? kiln_blob_size(blob) / sizeof(kiln_key) : 0;
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        kiln_key key;
        bool here = false;
        memcpy(&key, (const char *)kiln_blob_data(blob) + i * sizeof(key), sizeof(key));
        console_progress(t->context->console, i, count, "entries", 0);
        status = pull_one(t, &key, &here, diag);
    }
    console_progress_end(t->context->console);
    kiln_blob_release(blob);
    return status;
}

/* --- the command ------------------------------------------------------------------------------ */

static kiln_status write_pulled_pack(const cli_transfer *t, kiln_pack_info *info, kiln_diag *diag)
{
    kiln_pack_writer *writer = NULL;
    kiln_status status = kiln_pack_writer_create(t->options->pack, NULL, &writer, diag);
    for (size_t i = 0; status == KILN_OK && i < t->count; i++) {
        status = kiln_pack_writer_add(writer, t->cache, &t->keys[i], NULL, diag);
        status = status == KILN_MISS ? KILN_OK : status; /* evicted meanwhile */
    }
    if (status == KILN_OK) {
        status = kiln_pack_writer_finish(writer, info, diag);
    }
    kiln_pack_writer_destroy(writer);
    return status;
}

static exit_code run_pull(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const transfer_options *options = fields;
    cli_transfer t;
    kiln_pack_info info = {.struct_size = sizeof(info)};
    kiln_diag diag = KILN_DIAG_INIT;
    if (ship_is_meant(arguments)) {
        return ship_pull_command(context, options, arguments);
    }
    if (options->unsigned_too) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "set KILN_TRUST=any", "--unsigned",
                            "it is for registries (oci://)");
        return cmd_fail(context, &diag);
    }
    if ((options->name != NULL) == (arguments->count > 0)) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "give manifests, or --name NAME", "",
                            "neither manifests nor --name is given");
        return cmd_fail(context, &diag);
    }
    exit_code code = transfer_open(context, options, &t);
    if (code == EXIT_FINE) {
        kiln_status status = options->name != NULL
                                 ? pull_name(&t, &diag)
                                 : transfer_each_kernel(&t, arguments, pull_kernel, &diag);
        if (status == KILN_OK && options->pack != NULL) {
            status = write_pulled_pack(&t, &info, &diag);
        }
        const kiln_transfer_counts *counts = kiln_transfer_get_counts(t.transfer);
        code = status == KILN_OK
                   ? transfer_tell(&t, "pulled", counts, options->pack != NULL ? &info : NULL)
               : status == KILN_E_INVALID ? cmd_fail(context, &diag)
                                          : cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    transfer_close(&t);
    return code;
}

const cli_command cmd_pull = {
    .name = "pull",
    .usage = "[oci://REGISTRY/NAME:TAG [DIRECTORY]|MANIFEST...]",
    .summary = "Gets what manifests name, or what was pushed, from remotes or a registry",
    .details =
        "Into the cache, and with --pack into a pack as well. Nothing is compiled: what no remote\n"
        "has is reported as missing. KILN_TRUST decides what is taken; exits 5 if something was\n"
        "refused or damaged.\n\n"
        "From a registry of container images (oci+http:// without TLS) come the packs that kiln\n"
        "push put there: into the cache, or, with --pack, into that file instead. A key of\n"
        "KILN_TRUSTED_KEYS must have signed them. It needs skopeo. With a new DIRECTORY it is a\n"
        "recording that comes from there.",
    .options = specs,
    .options_size = sizeof(transfer_options),
    .min_arguments = 0,
    .max_arguments = 10000,
    .run = run_pull,
};
