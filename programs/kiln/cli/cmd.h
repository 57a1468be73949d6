/* What a command is, and the list of them. One file a command: cmd_<name>.c, with its struct of
 * options, its table of them, and one constant `cmd_<name>` at the bottom. */
#ifndef KILN_PROGRAM_CMD_H
#define KILN_PROGRAM_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/console.h"
#include "cli/exit.h"
#include "cli/opt.h"
#include "cli/pool.h"

struct cli_command;

/* What every command gets. */
typedef struct cmd_context {
    const struct cli_command *command;
    cli_pool *pool;
    cli_console *console;
} cmd_context;

typedef struct cli_command {
    const char *name;
    const char *usage;   /* arguments, "MANIFEST|FILE" */
    const char *summary; /* one line */
    const char *details; /* paragraphs for --help; NULL if the options say it all */
    const opt_spec *options;
    size_t options_size; /* of the struct that `run` gets, zeroed and then filled */
    size_t min_arguments, max_arguments;
    exit_code (*run)(const cmd_context *context, void *options, const opt_list *arguments);
} cli_command;

/* X(name): in the order in which help lists them. */
#define COMMAND_MAP(X)                                                                             \
    X(devices)                                                                                     \
    X(doctor)                                                                                      \
    X(run)                                                                                         \
    X(compile)                                                                                     \
    X(warm)                                                                                        \
    X(exec)                                                                                        \
    X(tune)                                                                                        \
    X(explain)                                                                                     \
    X(stats)                                                                                       \
    X(config)                                                                                      \
    X(cache)                                                                                       \
    X(report)                                                                                      \
    X(ls)                                                                                          \
    X(show)                                                                                        \
    X(verify)                                                                                      \
    X(prune)                                                                                       \
    X(clear)                                                                                       \
    X(pack)                                                                                        \
    X(remote)                                                                                      \
    X(push)                                                                                        \
    X(pull)                                                                                        \
    X(key)                                                                                         \
    X(completion)                                                                                  \
    X(version)                                                                                     \
    X(help)

#define COMMAND_DECLARE(name) extern const cli_command cmd_##name;
COMMAND_MAP(COMMAND_DECLARE)
#undef COMMAND_DECLARE

/* All commands, NULL after the last; and one by name, NULL with a diag that proposes another. */
const cli_command *const *cmd_list(void);
const cli_command *cmd_find(const char *name, kiln_diag *diag);
void cmd_print_help(const cli_command *command, FILE *file);
void cmd_print_overview(FILE *file);

/* Prints the diag on standard error and returns its exit code; clears the diag. */
exit_code cmd_fail(const cmd_context *context, kiln_diag *diag);
/* The same with an exit code of the caller's choice. */
exit_code cmd_fail_as(const cmd_context *context, exit_code code, kiln_diag *diag);
exit_code cmd_no_memory(const cmd_context *context);

#endif
