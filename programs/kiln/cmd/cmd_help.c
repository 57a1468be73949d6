/* kiln help [COMMAND] */
#include <stdio.h>

#include "cli/cmd.h"

static const opt_spec specs[] = {OPT_END};

static exit_code run_help(const cmd_context *context, void *fields, const opt_list *arguments)
{
    (void)fields; /* has none */
    if (arguments->count == 0) {
        cmd_print_overview(stdout);
        return EXIT_FINE;
    }
    kiln_diag diag = KILN_DIAG_INIT;
    const cli_command *command = cmd_find(arguments->items[0], &diag);
    if (command == NULL) {
        return cmd_fail(context, &diag);
    }
    cmd_print_help(command, stdout);
    return EXIT_FINE;
}

const cli_command cmd_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "Lists the commands, or explains one",
    .options = specs,
    .max_arguments = 1,
    .run = run_help,
};
