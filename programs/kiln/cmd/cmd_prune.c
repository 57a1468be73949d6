/* kiln prune: removes entries by age, size and target. */
#include <kiln/unstable/admin.h>

#include "cli/chosen_target.h"
#include "cli/removal.h"
#include "cli/session.h"

typedef struct prune_options {
    session_options session;
    opt_number max_age;
    opt_number max_size;
    const char *target;
    bool dry_run;
} prune_options;

static const opt_spec specs[] = {{"max-age", 0, OPT_DURATION, offsetof(prune_options, max_age),
                                  "TIME", "remove entries not used for TIME (30d, 12h)"},
                                 {"max-size", 0, OPT_SIZE, offsetof(prune_options, max_size),
                                  "BYTES", "then the least recently used beyond BYTES (2G)"},
                                 {"target", 't', OPT_TEXT, offsetof(prune_options, target), "NAME",
                                  "look at this target only; alone: remove all of it"},
                                 {"dry-run", 0, OPT_FLAG, offsetof(prune_options, dry_run), NULL,
                                  "only report what would be removed"},
                                 SESSION_CACHE_ROW(prune_options),
                                 SESSION_JSON_ROW(prune_options),
                                 OPT_END};

static exit_code run_prune(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const prune_options *options = fields;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    kiln_prune_result result = {.struct_size = sizeof(result)};
    kiln_prune_options prune = {
        .struct_size = sizeof(prune), .max_bytes = UINT64_MAX, .target = options->target};
    (void)arguments; /* takes none */
    if (!options->max_age.given && !options->max_size.given && options->target == NULL) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "give --max-age, --max-size or --target", "",
                            "no option says what to remove");
        return cmd_fail(context, &diag);
    }
    if (options->max_age.given) {
        /* To the library 0 means any age; the user who says 0 means everything. */
        prune.max_age_ns = options->max_age.value > 0 ? options->max_age.value : 1;
    }
    if (options->max_size.given) {
        prune.max_bytes = options->max_size.value;
    } else if (!options->max_age.given) {
        prune.max_bytes = 0;
    }
    exit_code code = options->dry_run
                         ? session_open_disk(context, &options->session, &cache)
                         : session_open_disk_to_write(context, &options->session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    code = chosen_target_check(context, cache, options->target);
    if (code != EXIT_FINE) {
        kiln_cache_destroy(cache);
        return code;
    }
    if ((options->dry_run ? kiln_cache_prune_plan : kiln_cache_prune)(cache, &prune, &result,
                                                                      &diag) != KILN_OK) {
        code = cmd_fail_as(context, EXIT_CACHE, &diag);
    } else {
        code = removal_tell(context, &result, options->dry_run, options->session.json);
    }
    kiln_cache_destroy(cache);
    return code;
}

const cli_command cmd_prune = {
    .name = "prune",
    .usage = "",
    .summary = "Removes entries by age, size or target",
    .details = "Programs that use the cache meanwhile are not disturbed: they compile again what\n"
               "they still need.",
    .options = specs,
    .options_size = sizeof(prune_options),
    .run = run_prune,
};
