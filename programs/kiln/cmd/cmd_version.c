/* kiln version: of the command and of the library it runs with. */
#include <kiln/version.h>

#include "cli/out.h"
#include "cli/session.h"

typedef struct version_options {
    session_options session;
} version_options;

static const opt_spec specs[] = {SESSION_JSON_ROW(version_options), OPT_END};

static exit_code run_version(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const version_options *options = fields;
    (void)arguments; /* takes none */
    if (!options->session.json) {
        (void)printf("kiln %s\n", kiln_version());
        return EXIT_FINE;
    }
    json_t *root = json_object();
    out_json_set(&root, "version", out_json_text(KILN_VERSION));
    out_json_set(&root, "library", out_json_text(kiln_version()));
    return out_json(stdout, root) ? EXIT_FINE : cmd_no_memory(context);
}

const cli_command cmd_version = {
    .name = "version",
    .usage = "",
    .summary = "Prints the version",
    .options = specs,
    .options_size = sizeof(version_options),
    .run = run_version,
};
