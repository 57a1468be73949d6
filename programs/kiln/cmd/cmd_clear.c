/* kiln clear: removes every entry. */
#include "cli/removal.h"

#include "cli/session.h"
#include <kiln/unstable/admin.h>

typedef struct clear_options {
    session_options session;
} clear_options;

static const opt_spec specs[] = {SESSION_CACHE_ROW(clear_options), SESSION_JSON_ROW(clear_options),
                                 OPT_END};

static exit_code run_clear(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const clear_options *options = fields;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    kiln_prune_result result = {.struct_size = sizeof(result)};
    (void)arguments; /* takes none */
    exit_code code = session_open_disk_to_write(context, &options->session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    if (kiln_cache_clear(cache, &result, &diag) != KILN_OK) {
        code = cmd_fail_as(context, EXIT_CACHE, &diag);
    } else {
        code = removal_tell(context, &result, false, options->session.json);
    }
    kiln_cache_destroy(cache);
    return code;
}

const cli_command cmd_clear = {
    .name = "clear",
    .usage = "",
    .summary = "Removes every entry of the cache",
    .options = specs,
    .options_size = sizeof(clear_options),
    .run = run_clear,
};
