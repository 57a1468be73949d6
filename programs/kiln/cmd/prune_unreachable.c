/* kiln prune --unreachable: asks the drivers, removes, and reports what went and what was left
 * alone.
 */
#include "cmd/prune_unreachable.h"

#include <inttypes.h>

#include <kiln/unstable/unreachable.h>

#include "cli/out.h"

typedef struct telling {
    const cmd_context *context;
    bool json;
    json_t *entries;
    json_t *alone;
} telling;

static void add_unreachable_json(telling *t, const kiln_unreachable *told)
{
    json_t *one = json_object();
    out_json_set(&one, "backend", out_json_text(told->backend));
    out_json_set(&one, "why", out_json_text(told->why));
    if (told->entry != NULL) {
        char key[KILN_KEY_TEXT_SIZE];
        kiln_key_format(&told->entry->key, key);
        out_json_set(&one, "key", out_json_text(key));
        out_json_set(&one, "target", out_json_text(told->entry->target));
        out_json_set(&one, "bytes", out_json_u64(told->entry->stored_size));
    }
    out_json_append(told->entry != NULL ? &t->entries : &t->alone, one);
}

static void print_unreachable(void *user, const kiln_unreachable *told)
{
    telling *t = user;
    if (t->json) {
        add_unreachable_json(t, told);
    } else if (told->entry != NULL) {
        char key[KILN_KEY_TEXT_SIZE];
        kiln_key_format(&told->entry->key, key);
        out_print(stdout, "%.16s  %s  %s\n", key, told->entry->target, told->why);
    } else {
        out_print(stdout, "%s is left alone: %s\n", told->backend, told->why);
    }
}

static exit_code finish_prune(telling *t, const kiln_prune_result *result, bool dry_run)
{
    if (t->json) {
        json_t *root = json_object();
        out_json_set(&root, "dry_run", json_boolean(dry_run));
        out_json_set(&root, "entries_seen", out_json_u64(result->entries_seen));
        out_json_set(&root, "bytes_seen", out_json_u64(result->bytes_seen));
        out_json_set(&root, "entries_removed", out_json_u64(result->entries_removed));
        out_json_set(&root, "bytes_removed", out_json_u64(result->bytes_removed));
        out_json_set(&root, "entries", t->entries);
        out_json_set(&root, "left_alone", t->alone);
        return out_json(stdout, root) ? EXIT_FINE : cmd_no_memory(t->context);
    }
    const char *removed = out_bytes(t->context->pool, result->bytes_removed);
    const char *seen = out_bytes(t->context->pool, result->bytes_seen);
    if (removed == NULL || seen == NULL) {
        return cmd_no_memory(t->context);
    }
    (void)printf("%s %" PRIu64 " of %" PRIu64 " entries, %s of %s\n",
                 dry_run ? "would remove" : "removed", result->entries_removed,
                 result->entries_seen, removed, seen);
    return EXIT_FINE;
}

exit_code prune_unreachable(const cmd_context *context, const session_options *options,
                            bool dry_run)
{
    session_options session = *options;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    kiln_runtime *runtime = NULL;
    kiln_prune_result result = {.struct_size = sizeof(result)};
    telling t = {.context = context, .json = options->json};
    session.fresh_probe = true; /* what was remembered may have gone */
    exit_code code = dry_run ? session_open_disk(context, &session, &cache)
                             : session_open_disk_to_write(context, &session, &cache);
    if (code == EXIT_FINE) {
        code = session_open_runtime(context, &session, cache, &runtime);
    }
    if (code == EXIT_FINE) {
        t.entries = t.json ? json_array() : NULL;
        t.alone = t.json ? json_array() : NULL;
        const kiln_unreachable_options how = {
            .struct_size = sizeof(how), .dry_run = dry_run, .visit = print_unreachable, .user = &t};
        if (kiln_runtime_prune_unreachable(runtime, &how, &result, &diag) == KILN_OK) {
            code = finish_prune(&t, &result, dry_run);
        } else {
            json_decref(t.entries);
            json_decref(t.alone);
            code = cmd_fail_as(context, EXIT_CACHE, &diag);
        }
    }
    session_close(cache, runtime);
    return code;
}
