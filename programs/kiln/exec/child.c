/* See child.h. POSIX. */
#include "exec/child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLOSE_ON_EXEC = 1 }; /* MFD_CLOEXEC */

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

exit_code exec_child_become(const cmd_context *context, const opt_list *arguments)
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

/* The signals that this process takes otherwise than the program: the terminal sends the first two
 * to both, the next two are passed on, and without the last one a child's status is lost. */
typedef struct watched_signal {
    int number;
    void (*handler)(int number);
    struct sigaction before; /* the program's: it may ignore some (nohup(1)) */
} watched_signal;

static watched_signal watched[] = {{SIGINT, SIG_IGN, {.sa_flags = 0}},
                                   {SIGQUIT, SIG_IGN, {.sa_flags = 0}},
                                   {SIGTERM, pass_signal, {.sa_flags = 0}},
                                   {SIGHUP, pass_signal, {.sa_flags = 0}},
                                   {SIGCHLD, SIG_DFL, {.sa_flags = 0}}};
enum { WATCHED = sizeof(watched) / sizeof(watched[0]) };

/* This process ends after the program, so that the report is whole. */
static void watch_signals(void)
{
    for (size_t i = 0; i < WATCHED; i++) {
        struct sigaction action = {.sa_handler = watched[i].handler, .sa_flags = SA_RESTART};
        (void)sigemptyset(&action.sa_mask);
        (void)sigaction(watched[i].number, &action, &watched[i].before);
    }
}

static void restore_signals(void)
{
    for (size_t i = 0; i < WATCHED; i++) {
        (void)sigaction(watched[i].number, &watched[i].before, NULL);
    }
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

/* In memory, under a name that the program's processes can open while this one lives. */
static char *make_nameless_report(const cmd_context *context)
{
    const int file = (int)syscall(SYS_memfd_create, "kiln-exec", CLOSE_ON_EXEC);
    char *path =
        file >= 0 ? pool_format(context->pool, "/proc/%ld/fd/%d", (long)getpid(), file) : NULL;
    if (path != NULL && access(path, R_OK | W_OK) == 0) {
        return path;
    }
    if (file >= 0) {
        (void)close(file);
    }
    return NULL;
}

char *exec_child_report(const cmd_context *context)
{
    const char *directory = getenv("TMPDIR");
    char *path = pool_format(context->pool, "%s/kiln-exec-XXXXXX",
                             directory != NULL && directory[0] == '/' ? directory : "/tmp");
    const int report = path != NULL ? mkstemp(path) : -1;
    if (report >= 0) {
        (void)close(report);
        return path;
    }
    const int error = errno;
    path = make_nameless_report(context);
    if (path == NULL) {
        console_say(context->console,
                    "exec: no report: no temporary file can be created: %s (set TMPDIR)",
                    strerror(error));
    }
    return path;
}

exit_code exec_child_run(const cmd_context *context, const exec_environment *environment,
                         const opt_list *arguments, bool aside)
{
    watch_signals();
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        restore_signals();
        if (!exec_environment_apply(environment)) {
            _exit((int)cmd_no_memory(context));
        }
        if (aside && dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
            _exit(EXIT_NOT_EXECUTABLE);
        }
        _exit((int)exec_child_become(context, arguments));
    }
    if (child < 0) {
        console_say(context->console, "exec: cannot start a process: %s", strerror(errno));
        return EXIT_TROUBLE;
    }
    child_id = (sig_atomic_t)child;
    return wait_for_program(child);
}
