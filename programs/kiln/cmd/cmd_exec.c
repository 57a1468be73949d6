/* kiln exec: starts a program that knows nothing of kiln, with kiln under the compilers it calls.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/host.h"
#include "exec/audit.h"
#include "exec/child.h"
#include "exec/environment.h"
#include "exec/python.h"
#include "exec/report.h"
#include "exec/trouble.h"

typedef struct exec_options {
    bool stats;
    const char *report;
    bool print;
    bool audit;
    bool no_python;
    bool capture;
    const char *record;
} exec_options;

static const opt_spec specs[] = {{"stats", 0, OPT_FLAG, offsetof(exec_options, stats), NULL,
                                  "print at the end what was compiled, found and bypassed"},
                                 {"report", 0, OPT_TEXT, offsetof(exec_options, report), "FILE",
                                  "write the same as JSON to FILE"},
                                 {"print", 0, OPT_FLAG, offsetof(exec_options, print), NULL,
                                  "print the environment for a shell, and start nothing"},
                                 {"audit", 0, OPT_FLAG, offsetof(exec_options, audit), NULL,
                                  "also serve a program that opens compilers by absolute paths"},
                                 {"no-python", 0, OPT_FLAG, offsetof(exec_options, no_python), NULL,
                                  "leave out the adapters of kiln's Python package"},
                                 {"capture", 0, OPT_FLAG, offsetof(exec_options, capture), NULL,
                                  "store at the end all that PoCL compiled, whatever it takes"},
                                 {"record", 0, OPT_TEXT, offsetof(exec_options, record),
                                  "DIRECTORY",
                                  "record every program with its sources in DIRECTORY"},
                                 OPT_END};

/* `missing`: why there are no libraries, if there are none. */
static bool write_report(const cmd_context *context, const exec_options *options,
                         const exec_environment *environment, const kiln_diag *missing,
                         const char *path)
{
    exec_report report;
    kiln_diag diag = KILN_DIAG_INIT;
    bool written = true;
    if (exec_report_read(path, &report, &diag) != KILN_OK) {
        (void)cmd_fail(context, &diag);
        return false;
    }
    exec_trouble_find(environment, missing, &report);
    if (options->stats) {
        exec_report_print(&report, context->pool,
                          exec_python_bytecode(context->pool, environment->program), stderr);
    }
    if (options->report != NULL) {
        FILE *file = fopen(options->report, "w");
        written = file != NULL && exec_report_print_json(&report, context->pool, file);
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
                             exec_environment *environment, const kiln_diag *missing,
                             const opt_list *arguments)
{
    char *path = exec_child_report(context);
    if (path == NULL) { /* the program is worth more than its report */
        return exec_environment_apply(environment) ? exec_child_become(context, arguments)
                                                   : cmd_no_memory(context);
    }
    exec_environment_add(environment, "KILN_EXEC_REPORT", path);
    const exit_code code = exec_child_run(context, environment, arguments, false);
    (void)write_report(context, options, environment, missing, path);
    (void)remove(path);
    return code;
}

/* What the options ask for besides kiln's libraries. */
static void add_wishes(const exec_options *options, exec_environment *environment)
{
    if (options->record != NULL) {
        exec_environment_add(environment, "KILN_RECORD",
                             host_absolute(environment->pool, options->record));
    }
    if (options->capture) {
        exec_environment_add(environment, "KILN_CAPTURE", "1");
    }
    if (!options->no_python) {
        exec_python_add(environment);
    }
}

static exit_code run_exec(const cmd_context *context, void *fields, const opt_list *arguments)
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
    kiln_status status = exec_environment_make(context->pool, program, &environment, &diag);
    if (status == KILN_OK && options->audit) {
        status = exec_audit_add(context->pool, &environment, NULL, true, &diag);
    }
    add_wishes(options, &environment);
    if (environment.failed) {
        return cmd_no_memory(context);
    }
    if (status != KILN_OK) {
        if (options->print || diag.status != KILN_E_UNAVAILABLE) {
            return cmd_fail(context, &diag);
        }
        /* The program is worth more than the cache. */
        console_tell(context->console, "exec", &diag);
    }
    if (options->print) {
        exec_environment_print(&environment, stdout);
        return EXIT_FINE;
    }
    if (options->stats || options->report != NULL) {
        const exit_code code = run_watched(context, options, &environment, &diag, arguments);
        kiln_diag_clear(&diag);
        return code;
    }
    kiln_diag_clear(&diag);
    return exec_environment_apply(&environment) ? exec_child_become(context, arguments)
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
        "What\nkiln cannot key is compiled as before. KILN_DISABLE=1 takes kiln out.\n\n"
        "The exit code is the program's: 126 if it cannot be started, 127 if it is not found, 128\n"
        "and the signal's number if a signal killed it.",
    .options = specs,
    .options_size = sizeof(exec_options),
    .min_arguments = 0,
    .max_arguments = SIZE_MAX,
    .run = run_exec,
};
