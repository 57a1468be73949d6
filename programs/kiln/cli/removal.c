/* One summary for two commands, each. */
#include "cli/removal.h"

#include <inttypes.h>

#include <kiln/unstable/admin.h>

#include "cli/out.h"

static bool print_removal_json(const kiln_prune_result *result)
{
    json_t *root = json_object();
    out_json_set(&root, "entries_seen", out_json_u64(result->entries_seen));
    out_json_set(&root, "bytes_seen", out_json_u64(result->bytes_seen));
    out_json_set(&root, "entries_removed", out_json_u64(result->entries_removed));
    out_json_set(&root, "bytes_removed", out_json_u64(result->bytes_removed));
    out_json_set(&root, "temporaries_removed", out_json_u64(result->temporaries_removed));
    return out_json(stdout, root);
}

exit_code removal_tell(const cmd_context *context, const kiln_prune_result *result, bool dry,
                       bool json)
{
    if (json) {
        return print_removal_json(result) ? EXIT_FINE : cmd_no_memory(context);
    }
    const char *removed = out_bytes(context->pool, result->bytes_removed);
    const char *seen = out_bytes(context->pool, result->bytes_seen);
    if (removed == NULL || seen == NULL) {
        return cmd_no_memory(context);
    }
    (void)printf("%s %" PRIu64 " of %" PRIu64 " entries, %s of %s",
                 dry ? "would remove" : "removed", result->entries_removed, result->entries_seen,
                 removed, seen);
    if (result->temporaries_removed > 0) {
        (void)printf(", and %" PRIu64 " leftover temporary %s", result->temporaries_removed,
                     result->temporaries_removed == 1 ? "file" : "files");
    }
    (void)putchar('\n');
    return EXIT_FINE;
}

exit_code removal_tell_verified(const cmd_context *context, const kiln_verify_result *result,
                                const bool *removed, bool json)
{
    const bool gone = removed != NULL && *removed;
    json_t *root = json ? json_object() : NULL;
    const char *bytes = out_bytes(context->pool, result->bytes);
    if (json) {
        out_json_set(&root, "good", out_json_u64(result->entries_good));
        out_json_set(&root, "damaged", out_json_u64(result->entries_bad));
        if (removed != NULL) {
            out_json_set(&root, "removed", out_json_u64(gone ? result->entries_bad : 0));
        }
        out_json_set(&root, "bytes", out_json_u64(result->bytes));
    }
    if (bytes == NULL || (json && !out_json(stdout, root))) {
        return cmd_no_memory(context);
    }
    if (!json) {
        (void)printf("%" PRIu64 " good, %" PRIu64 " damaged%s, %s read\n", result->entries_good,
                     result->entries_bad, gone && result->entries_bad > 0 ? " and removed" : "",
                     bytes);
    }
    return result->entries_bad > 0 ? EXIT_DAMAGE : EXIT_FINE;
}
