/* kiln exec: starts a program that knows nothing of kiln, with kiln under the compilers it calls.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/host.h"
#include "exec/environment.h"
#include "exec/report.h"

typedef struct exec_options {
    bool stats;
    const char *report;
    bool print;
} exec_options;

static const opt_spec specs[] = {{"stats", 0, OPT_FLAG, offsetof(exec_options, stats), NULL,
                                  "print at the end what was compiled, found and passed by"},
                                 {"report", 0, OPT_TEXT, offsetof(exec_options, report), "FILE",
                                  "write the same as JSON to FILE"},
                                 {"print", 0, OPT_FLAG, offsetof(exec_options, print), NULL,
                                  "print the environment for a shell, and start nothing"},
                                 OPT_END};

/* The exit codes of env(1) and of shells. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNAL = 128 };

static volatile sig_atomic_t child_id;

static void pass_signal(int number)
{
    const int error = errno;
    if (child_id > 0) {
        (void)kill((pid_t)child_id, number);
    }
    errno = error;
}

static exit_code fail_start(const cmd_context *context, const char *program)
{
    const int error = errno;
    console_say(context->console, "exec: %s: %s (give a program in PATH, or its path)", program,
                strerror(error));
    return (exit_code)(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* Does not return if the program starts. */
static exit_code become_program(const cmd_context *context, const opt_list *arguments)
{
    char **argv = pool_array(context->pool, arguments->count + 1, sizeof(*argv));
    if (argv == NULL) {
        return cmd_no_memory(context);
    }
    for (size_t i = 0; i < arguments->count; i++) {
        argv[i] = (char *)(uintptr_t)arguments->items[i];
    }
    (void)fflush(NULL);
    (void)execvp(argv[0], argv);
    return fail_start(context, argv[0]);
}

/* Ctrl-C reaches the program from the terminal; the other signals are passed on to it. This process
 * ends after the program, so that the report is whole. */
static void watch_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction pass = {.sa_handler = pass_signal, .sa_flags = SA_RESTART};
    (void)sigemptyset(&ignore.sa_mask);
    (void)sigemptyset(&pass.sa_mask);
    (void)sigaction(SIGINT, &ignore, NULL);
    (void)sigaction(SIGQUIT, &ignore, NULL);
    (void)sigaction(SIGTERM, &pass, NULL);
    (void)sigaction(SIGHUP, &pass, NULL);
}

static exit_code wait_for_program(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return EXIT_TROUBLE;
        }
    }
    return (exit_code)(WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status));
}

static bool write_report(const cmd_context *context, const exec_options *options, const char *path)
{
    exec_report report;
    kiln_diag diag = KILN_DIAG_INIT;
    bool written = true;
    if (exec_report_read(path, &report, &diag) != KILN_OK) {
        (void)cmd_fail(context, &diag);
        return false;
    }
    if (options->stats) {
        exec_report_print(&report, context->pool, stderr);
    }
    if (options->report != NULL) {
        FILE *file = fopen(options->report, "w");
        written = file != NULL && exec_report_print_json(&report, file);
        written = file != NULL && fclose(file) == 0 && written;
        if (!written) {
            console_say(context->console, "exec: %s: cannot be written: %s", options->report,
                        strerror(errno));
        }
    }
    return written;
}

/* The program's exit code is this command's, whatever becomes of the report. */
static exit_code run_watched(const cmd_context *context, const exec_options *options,
                             exec_environment *environment, const opt_list *arguments)
{
    const char *directory = getenv("TMPDIR");
    char *path = pool_format(context->pool, "%s/kiln-exec-XXXXXX",
                             directory != NULL && directory[0] == '/' ? directory : "/tmp");
    const int report = path != NULL ? mkstemp(path) : -1;
    if (report < 0) {
        console_say(context->console, "exec: no temporary file for the report: %s (set TMPDIR)",
                    strerror(errno));
        return EXIT_TROUBLE;
    }
    (void)close(report);
    exit_code code = EXIT_TROUBLE;
    if (!exec_environment_add(environment, "KILN_EXEC_REPORT", path)) {
        code = cmd_no_memory(context);
        goto cleanup;
    }
    watch_signals();
    const pid_t child = fork();
    if (child == 0) {
        struct sigaction normal = {.sa_handler = SIG_DFL};
        (void)sigemptyset(&normal.sa_mask);
        (void)sigaction(SIGINT, &normal, NULL);
        (void)sigaction(SIGQUIT, &normal, NULL);
        if (!exec_environment_apply(environment)) {
            _exit((int)cmd_no_memory(context));
        }
        _exit((int)become_program(context, arguments));
    }
    if (child < 0) {
        console_say(context->console, "exec: no process: %s", strerror(errno));
        goto cleanup;
    }
    child_id = (sig_atomic_t)child;
    code = wait_for_program(child);
    (void)write_report(context, options, path);
cleanup:
    (void)unlink(path);
    return code;
}

static exit_code run(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const exec_options *options = fields;
    exec_environment environment;
    kiln_diag diag = KILN_DIAG_INIT;
    if (!options->print && arguments->count == 0) {
        console_say(context->console,
                    "exec: the program is missing (write kiln exec -- PROGRAM ARGUMENTS)");
        return EXIT_USAGE;
    }
    const char *program = arguments->count > 0 ? arguments->items[0] : NULL;
    if (exec_environment_make(context->pool, program, &environment, &diag) != KILN_OK) {
        if (options->print || diag.status != KILN_E_UNAVAILABLE) {
            return cmd_fail(context, &diag);
        }
        /* The program is worth more than the cache. */
        console_tell(context->console, "exec", &diag);
        kiln_diag_clear(&diag);
    }
    if (options->print) {
        exec_environment_print(&environment, stdout);
        return EXIT_FINE;
    }
    if (options->stats || options->report != NULL) {
        return run_watched(context, options, &environment, arguments);
    }
    return exec_environment_apply(&environment) ? become_program(context, arguments)
                                                : cmd_no_memory(context);
}

const cli_command cmd_exec = {
    .name = "exec",
    .usage = "-- PROGRAM [ARGUMENTS]",
    .summary = "Starts a program with kiln under the compilers that it calls",
    .details =
        "The program is not changed: it loads kiln's library in place of NVRTC, which answers "
        "from\n"
        "the cache and calls the NVRTC that the program would have got for what is not there. "
        "What\n"
        "kiln cannot key is compiled as ever. KILN_DISABLE=1 takes kiln out.\n\n"
        "The exit code is the program's: 126 if it cannot be started, 127 if it is not found, 128\n"
        "and the signal's number if a signal ended it.",
    .options = specs,
    .options_size = sizeof(exec_options),
    .min_arguments = 0,
    .max_arguments = SIZE_MAX,
    .run = run,
};
