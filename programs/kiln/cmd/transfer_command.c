/* What kiln push and kiln pull share. This file must not know the direction. */
#include "cmd/transfer_command.h"

#include <inttypes.h>
#include <string.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "cli/out.h"
#include "kernel/kernel_source.h"
#include "manifest/manifest.h"

exit_code transfer_open(const cmd_context *context, const transfer_options *options,
                        cli_transfer *out_transfer)
{
    kiln_diag diag = KILN_DIAG_INIT;
    memset(out_transfer, 0, sizeof(*out_transfer));
    out_transfer->context = context;
    out_transfer->options = options;
    exit_code code = session_open_disk(context, &options->session, &out_transfer->cache);
    if (code == EXIT_FINE && kiln_transfer_open(options->remote, out_transfer->cache,
                                                &out_transfer->transfer, &diag) != KILN_OK) {
        code = diag.status == KILN_E_INVALID ? cmd_fail(context, &diag)
                                             : cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    return code;
}

void transfer_close(cli_transfer *t)
{
    targets_close(&t->targets);
    kiln_transfer_close(t->transfer);
    kiln_cache_destroy(t->cache);
}

/* Where `key` is, or would be. Keys are digests: any of their bytes will do. */
static size_t *find_place(const cli_transfer *t, const kiln_key *key)
{
    uint64_t hash;
    memcpy(&hash, key->bytes, sizeof(hash));
    const size_t mask = 2 * t->capacity - 1;
    size_t at = (size_t)hash & mask;
    while (t->places[at] != 0 && memcmp(&t->keys[t->places[at] - 1], key, sizeof(*key)) != 0) {
        at = (at + 1) & mask;
    }
    return &t->places[at];
}

static bool grow_keys(cli_transfer *t)
{
    cli_pool *pool = t->context->pool;
    const size_t capacity = t->capacity > 0 ? t->capacity * 2 : 256; /* a power of two */
    kiln_key *keys = pool_array(pool, capacity, sizeof(*keys));
    size_t *places = pool_array(pool, capacity, 2 * sizeof(*places));
    if (keys == NULL || places == NULL) {
        return false;
    }
    if (t->count > 0) {
        memcpy(keys, t->keys, t->count * sizeof(*keys));
    }
    t->keys = keys;
    t->places = places;
    t->capacity = capacity;
    for (size_t i = 0; i < t->count; i++) {
        *find_place(t, &keys[i]) = i + 1;
    }
    return true;
}

kiln_status transfer_add(cli_transfer *t, const kiln_key *key, kiln_diag *diag)
{
    if (t->capacity > 0 && *find_place(t, key) != 0) {
        return KILN_OK;
    }
    if (t->count == t->capacity && !grow_keys(t)) {
        return diag_no_memory(diag, "collecting keys");
    }
    size_t *place = find_place(t, key);
    t->keys[t->count++] = *key;
    *place = t->count;
    return KILN_OK;
}

/* --- manifests -------------------------------------------------------------------------------- */

static void tell_missing(cli_transfer *t, const transfer_kernel *one, const char *why)
{
    t->missing++;
    console_say(t->context->console, "missing: %s for %s: %s", one->kernel->name, one->target->name,
                why);
}

static kiln_status visit_kernel(cli_transfer *t, const transfer_kernel *one,
                                transfer_kernel_fn *visit, kiln_diag *diag)
{
    if (one->target->runtime == NULL) {
        tell_missing(t, one, one->target->reason);
        return KILN_OK;
    }
    kiln_status status = visit(t, one, diag);
    if (status == KILN_E_UNSUPPORTED) {
        tell_missing(t, one, diag->why);
        kiln_diag_clear(diag);
        status = KILN_OK;
    }
    return status;
}

kiln_status transfer_each_kernel(cli_transfer *t, const opt_list *manifests,
                                 transfer_kernel_fn *visit, kiln_diag *diag)
{
    cli_pool *pool = t->context->pool;
    kiln_status status = targets_read(&t->options->targets, pool, &t->targets, diag);
    if (status == KILN_OK) {
        status = targets_open(&t->targets, t->cache, pool, diag);
    }
    for (size_t i = 0; status == KILN_OK && i < manifests->count; i++) {
        cli_manifest manifest;
        status = manifest_read_to_compile(manifests->items[i], pool, &manifest, diag);
        for (size_t k = 0; status == KILN_OK && k < manifest.count * t->targets.count; k++) {
            const transfer_kernel one = {&manifest.kernels[k % manifest.count],
                                         &t->targets.items[k / manifest.count]};
            console_progress(t->context->console, k, manifest.count * t->targets.count,
                             one.kernel->name, 0);
            status = visit_kernel(t, &one, visit, diag);
        }
    }
    console_progress_end(t->context->console);
    return status;
}

static kiln_status plan_form(const transfer_kernel *one, const kernel_form *form,
                             kiln_explanation_fn *visit, void *user, kiln_diag *diag)
{
    kernel_source given;
    kiln_status status = kernel_source_read_file(one->kernel, form, "transfer", &given, diag);
    if (status == KILN_OK) {
        status = kiln_compile_plan(one->target->runtime, one->target->name, &given.source, visit,
                                   user, diag);
    }
    kernel_source_deinit(&given);
    return status;
}

kiln_status transfer_plan(const cli_transfer *t, const transfer_kernel *one,
                          kiln_explanation_fn *visit, void *user, kiln_diag *diag)
{
    kiln_status status = KILN_E_UNSUPPORTED;
    (void)t;
    for (size_t i = 0; status == KILN_E_UNSUPPORTED && i < one->kernel->form_count; i++) {
        kiln_diag_clear(diag);
        status = plan_form(one, &one->kernel->forms[i], visit, user, diag);
        status = status == KILN_E_UNAVAILABLE ? KILN_E_UNSUPPORTED : status;
    }
    return status;
}

/* --- reports ---------------------------------------------------------------------------------- */

kiln_status transfer_trouble(cli_transfer *t, kiln_status status, kiln_diag *diag)
{
    char line[1536];
    if (status == KILN_E_UNAVAILABLE || status == KILN_E_TIMEOUT || status == KILN_E_NOMEM) {
        return status; /* the next ones would not fare better */
    }
    const bool refused = status == KILN_E_REJECTED || status == KILN_E_CORRUPT;
    t->refused += refused;
    t->failed += !refused;
    (void)kiln_diag_format(diag, line, sizeof(line));
    if (t->refused + t->failed <= 5) { /* the rest is counted */
        console_say(t->context->console, "%s", line[0] != '\0' ? line : kiln_status_text(status));
    }
    kiln_diag_clear(diag);
    return KILN_OK;
}

static bool print_transfer_json(const cli_transfer *t, const char *verb,
                                const kiln_transfer_counts *counts, const kiln_pack_info *pack)
{
    json_t *root = json_object();
    out_json_set(&root, verb, out_json_u64(t->moved));
    out_json_set(&root, "present", out_json_u64(t->present));
    out_json_set(&root, "missing", out_json_u64(t->missing));
    out_json_set(&root, "refused", out_json_u64(t->refused));
    out_json_set(&root, "failed", out_json_u64(t->failed));
    out_json_set(&root, "sent_bytes", out_json_u64(counts->bytes_out));
    out_json_set(&root, "sent_unpacked_bytes", out_json_u64(counts->raw_out));
    out_json_set(&root, "received_bytes", out_json_u64(counts->bytes_in));
    out_json_set(&root, "received_unpacked_bytes", out_json_u64(counts->raw_in));
    out_json_set(&root, "pack_entries", pack != NULL ? out_json_u64(pack->entries) : json_null());
    return out_json(stdout, root);
}

static bool print_transfer_text(const cli_transfer *t, const char *verb,
                                const kiln_transfer_counts *counts, const kiln_pack_info *pack)
{
    cli_pool *pool = t->context->pool;
    const char *wire = out_bytes(pool, counts->bytes_out + counts->bytes_in);
    const char *raw = out_bytes(pool, counts->raw_out + counts->raw_in);
    if (wire == NULL || raw == NULL) {
        return false;
    }
    const bool moved = counts->raw_out + counts->raw_in > 0;
    (void)printf("%" PRIu64 " %s, %s on the wire%s%s%s, %" PRIu64 " there already, %" PRIu64
                 " missing, %" PRIu64 " refused, %" PRIu64 " failed\n",
                 t->moved, verb, wire, moved ? " (" : "", moved ? raw : "",
                 moved ? " unpacked)" : "", t->present, t->missing, t->refused, t->failed);
    if (pack != NULL) {
        out_print(stdout, "%s: %" PRIu64 " entries\n", t->options->pack, pack->entries);
    }
    return true;
}

exit_code transfer_tell(const cli_transfer *t, const char *verb, const kiln_transfer_counts *counts,
                        const kiln_pack_info *pack)
{
    bool good = t->options->session.json ? print_transfer_json(t, verb, counts, pack)
                                         : print_transfer_text(t, verb, counts, pack);
    if (!good) {
        return cmd_no_memory(t->context);
    }
    return t->refused > 0                      ? EXIT_DAMAGE
           : t->failed > 0                     ? EXIT_CACHE
           : t->options->all && t->missing > 0 ? EXIT_UNAVAILABLE
                                               : EXIT_FINE;
}
