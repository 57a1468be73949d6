/* The kiln command: finds the command, parses its options, runs it. The command uses the library's
 * public headers only: whatever it does, a program of yours can do. */
#include <stdio.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/probe.h>

#include "cli/cmd.h"
#include "cli/host.h"
#include "cli/out.h"
#include "exec/environment.h"

static exit_code usage_error(const cmd_context *context, kiln_diag *diag)
{
    return cmd_fail_as(context, EXIT_USAGE, diag);
}

static bool names_backend(const cli_command *command, const char *word)
{
    bool takes = false, is_one = false;
    for (const opt_spec *spec = command->options; spec->name != NULL || spec->letter != 0; spec++) {
        takes = takes || (spec->name != NULL && strcmp(spec->name, "backend") == 0);
    }
    for (size_t i = 0; takes && kiln_backend_name(i) != NULL; i++) {
        is_one = is_one || strcmp(kiln_backend_name(i), word) == 0;
    }
    return is_one;
}

static exit_code check_arguments(const cmd_context *context, const opt_list *arguments)
{
    const cli_command *command = context->command;
    kiln_diag diag = KILN_DIAG_INIT;
    char fix[128];
    (void)snprintf(fix, sizeof(fix), "write kiln %s [options]%s%s", command->name,
                   *command->usage != '\0' ? " " : "", command->usage);
    if (arguments->count < command->min_arguments) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, fix, "", "an argument is missing");
        return usage_error(context, &diag);
    }
    if (arguments->count > 0 && names_backend(command, arguments->items[0]) &&
        !host_exists(arguments->items[0])) {
        (void)snprintf(fix, sizeof(fix), "did you mean --backend %.60s?", arguments->items[0]);
        (void)kiln_diag_set(&diag, KILN_E_INVALID, fix, "", "unexpected argument \"%.100s\"",
                            arguments->items[0]);
        return usage_error(context, &diag);
    }
    if (arguments->count > command->max_arguments) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, fix, "", "unexpected argument \"%.100s\"",
                            arguments->items[command->max_arguments]);
        return usage_error(context, &diag);
    }
    return EXIT_FINE;
}

static exit_code run_command(const cmd_context *context, int argc, char **argv)
{
    const cli_command *command = context->command;
    kiln_diag diag = KILN_DIAG_INIT;
    opt_list arguments = {NULL, 0};
    bool help = false;
    void *options = pool_alloc(context->pool, command->options_size + 1);
    if (options == NULL) {
        return cmd_no_memory(context);
    }
    if (opt_parse(command->options, argc, argv, context->pool, options, &arguments, &help, &diag) !=
        KILN_OK) {
        return cmd_fail(context, &diag);
    }
    if (help) {
        cmd_print_help(command, stdout);
        return EXIT_FINE;
    }
    exit_code code = check_arguments(context, &arguments);
    return code == EXIT_FINE ? command->run(context, options, &arguments) : code;
}

/* The library takes a malformed one for "off". A program under kiln exec starts all the same, and
 * the doctor tells it with the rest. */
static kiln_status check_log_level(kiln_diag *diag)
{
    static const char *const levels[] = {"off", "error", "warn", "info", "debug", ""};
    const char *level = getenv("KILN_LOG");
    for (size_t i = 0; level != NULL && i < sizeof(levels) / sizeof(*levels); i++) {
        if (strcmp(level, levels[i]) == 0) {
            return KILN_OK;
        }
    }
    return level == NULL
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, "set it to off, error, warn, info or debug",
                               "environment variable KILN_LOG", "\"%.40s\" is not a level", level);
}

/* Finds the command that the first argument names. */
static exit_code choose_command(cmd_context *context, int argc, char **argv)
{
    kiln_diag diag = KILN_DIAG_INIT;
    if (argc < 2) {
        cmd_print_overview(stderr);
        (void)fputs("\nkiln: the command is missing (begin with: kiln devices)\n", stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        name = "version";
    }
    context->command = cmd_find(name, &diag);
    const bool goes_on = context->command == &cmd_exec || context->command == &cmd_doctor;
    return context->command != NULL && (goes_on || check_log_level(&diag) == KILN_OK)
               ? EXIT_FINE
               : usage_error(context, &diag);
}

int main(int argc, char **argv)
{
    cli_pool pool = POOL_INIT;
    host_keep_streams();
    cmd_context context = {NULL, &pool, console_create()};
    if (argc > 1 && strncmp(argv[1], "--color=", 8) == 0 && out_color_choose(argv[1] + 8)) {
        argc--;
        argv++;
    }
    if (context.console == NULL) {
        (void)fputs("kiln: out of memory\n", stderr);
        return EXIT_TROUBLE;
    }
    exit_code code = choose_command(&context, argc, argv);
    if (code == EXIT_FINE && !exec_environment_leave_layer(&pool)) {
        code = cmd_no_memory(&context);
    }
    if (code == EXIT_FINE) {
        code = run_command(&context, argc - 2, argv + 2);
    }
    host_end_if_interrupted();
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        if (!host_reader_is_gone(stdout)) {
            console_say(context.console, "cannot write to standard output");
        }
        code = code == EXIT_FINE ? EXIT_TROUBLE : code;
    }
    console_destroy(context.console);
    pool_deinit(&pool);
    return (int)code;
}
