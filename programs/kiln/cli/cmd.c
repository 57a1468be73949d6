/* The list of commands, their help, and how they fail. */
#include "cli/cmd.h"

#include <stdio.h>
#include <string.h>

#include <kiln/device.h>
#include <kiln/unstable/names.h>

#include "cli/host.h"

#define COMMAND_ROW(name) &cmd_##name,
static const cli_command *const commands[] = {COMMAND_MAP(COMMAND_ROW) NULL};
#undef COMMAND_ROW

const cli_command *const *cmd_list(void)
{
    return commands;
}

/* With the list of those there are: it is short. */
static void refuse_command(const char *name, kiln_diag *diag)
{
    char fix[320] = "the commands are";
    for (size_t i = 0; commands[i] != NULL; i++) {
        const size_t used = strlen(fix);
        (void)snprintf(fix + used, sizeof(fix) - used, "%s %s", i > 0 ? "," : "",
                       commands[i]->name);
    }
    (void)kiln_diag_set(diag, KILN_E_INVALID, fix, "", "unknown command \"%.60s\"", name);
}

/* What other programs call it; NULL for a word that none does. */
static const char *meant_by(const char *name)
{
    static const char *const words[][2] = {
        {"build", "compile"}, {"make", "compile"},   {"bench", "run"},    {"launch", "run"},
        {"list", "ls"},       {"remove", "prune"},   {"rm", "prune"},     {"delete", "prune"},
        {"gc", "prune"},      {"clean", "clear"},    {"purge", "clear"},  {"info", "doctor"},
        {"probe", "devices"}, {"autotune", "tune"},  {"inspect", "show"}, {"download", "pull"},
        {"upload", "push"},   {"precompile", "warm"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i][0], name) == 0) {
            return words[i][1];
        }
    }
    return NULL;
}

const cli_command *cmd_find(const char *name, kiln_diag *diag)
{
    const char *names[sizeof(commands) / sizeof(commands[0])] = {NULL};
    for (size_t i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
        names[i] = commands[i]->name;
    }
    const char *nearest = meant_by(name);
    nearest = nearest != NULL ? nearest : opt_nearest(names, name);
    if (strcmp(name, "-v") == 0) {
        (void)kiln_diag_set(diag, KILN_E_INVALID, "did you mean kiln -V, the version?", "",
                            "the command is missing before \"-v\"");
    } else if (name[0] == '-') {
        (void)kiln_diag_set(diag, KILN_E_INVALID,
                            "write kiln COMMAND [options]; kiln help lists "
                            "the commands",
                            "", "the command is missing before \"%.60s\"", name);
    } else if (host_exists(name) || kiln_language_of_path(name) != KILN_LANG_NONE) {
        char fix[300];
        (void)snprintf(fix, sizeof(fix), "did you mean: kiln run %.120s, or kiln compile %.120s",
                       name, name);
        (void)kiln_diag_set(diag, KILN_E_INVALID, fix, "", "\"%.60s\" is a file, not a command",
                            name);
    } else if (nearest != NULL) {
        char fix[64];
        (void)snprintf(fix, sizeof(fix), "did you mean %s?", nearest);
        (void)kiln_diag_set(diag, KILN_E_INVALID, fix, "", "unknown command \"%.60s\"", name);
    } else {
        refuse_command(name, diag);
    }
    return NULL;
}

static void print_exit_codes(FILE *file)
{
    (void)fputs("\nExit codes:\n", file);
#define EXIT_LINE(name, value, text) (void)fprintf(file, "  %d  %s\n", (value), (text));
    EXIT_MAP(EXIT_LINE)
#undef EXIT_LINE
}

void cmd_print_help(const cli_command *command, FILE *file)
{
    (void)fprintf(file, "Usage: kiln %s [options]%s%s\n\n%s.\n", command->name,
                  *command->usage != '\0' ? " " : "", command->usage, command->summary);
    if (command->details != NULL) {
        (void)fprintf(file, "\n%s\n", command->details);
    }
    (void)fputs("\nOptions:\n", file);
    opt_print(command->options, file);
    print_exit_codes(file);
}

void cmd_print_overview(FILE *file)
{
    (void)fputs("kiln runs GPU kernels on whatever the machine has, and never compiles the same "
                "thing twice.\n\nUsage: kiln COMMAND [options] [arguments]\n\nCommands:\n",
                file);
    for (size_t i = 0; commands[i] != NULL; i++) {
        (void)fprintf(file, "  %-12s%s\n", commands[i]->name, commands[i]->summary);
    }
    (void)fputs("\nRun kiln COMMAND --help for details.\n", file);
    print_exit_codes(file);
}

exit_code cmd_fail_as(const cmd_context *context, exit_code code, kiln_diag *diag)
{
    console_tell(context->console, context->command != NULL ? context->command->name : "", diag);
    kiln_diag_clear(diag);
    return code;
}

exit_code cmd_fail(const cmd_context *context, kiln_diag *diag)
{
    /* A caller that comes here has failed, whatever the diag forgot to say. */
    return cmd_fail_as(context, diag->status != KILN_OK ? exit_of(diag->status) : EXIT_TROUBLE,
                       diag);
}

exit_code cmd_no_memory(const cmd_context *context)
{
    console_say(context->console, "out of memory");
    return EXIT_TROUBLE;
}
