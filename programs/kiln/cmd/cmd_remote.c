/* kiln remote check: whether the remotes answer, read and write. */
#include <inttypes.h>
#include <string.h>

#include <kiln/unstable/remote.h>

#include "cli/out.h"
#include "cli/session.h"

typedef struct remote_options {
    session_options session;
} remote_options;

static const opt_spec specs[] = {SESSION_JSON_ROW(remote_options), OPT_END};

typedef struct remote_work {
    const cmd_context *context;
    const char *list;
    bool json, all_good;
    size_t count;
    json_t *array;
} remote_work;

static const char *yes_or_no(bool is)
{
    return is ? "yes" : "no";
}

static void add_remote_json(remote_work *work, const kiln_remote_report *report)
{
    json_t *one = json_object();
    out_json_set(&one, "remote", out_json_text(report->name));
    out_json_set(&one, "reachable", json_boolean(report->reachable));
    out_json_set(&one, "readable", json_boolean(report->readable));
    out_json_set(&one, "writable", json_boolean(report->writable));
    out_json_set(&one, "leases", json_boolean(report->leases));
    out_json_set(&one, "latency_ms",
                 report->latency_ns > 0 ? out_json_ms(report->latency_ns) : json_null());
    out_json_set(&one, "clock_ahead_ms",
                 report->reachable && report->has_clock
                     ? out_json_real((double)report->clock_ahead_ns / 1e6)
                     : json_null());
    out_json_set(&one, "takes", out_json_text(report->takes));
    out_json_set(&one, "why", out_json_text(report->why));
    out_json_append(&work->array, one);
}

static kiln_status print_remote(void *user, const kiln_remote_report *report)
{
    remote_work *work = user;
    work->count++;
    work->all_good = work->all_good && report->why[0] == '\0';
    if (work->json) {
        add_remote_json(work, report);
        return KILN_OK;
    }
    const char *name = out_clean(work->context->pool, report->name);
    const char *why = out_clean(work->context->pool, report->why);
    if (name == NULL || why == NULL) {
        return KILN_E_NOMEM;
    }
    (void)printf("%s\n", name);
    out_pair(stdout, "  reachable", "%s", yes_or_no(report->reachable));
    out_pair(stdout, "  readable", "%s", yes_or_no(report->readable));
    out_pair(stdout, "  writable", "%s", yes_or_no(report->writable));
    out_pair(stdout, "  leases", "%s", yes_or_no(report->leases));
    out_pair(stdout, "  takes", "%s", report->takes);
    if (report->latency_ns > 0) {
        out_pair(stdout, "  latency", "%.3f ms", (double)report->latency_ns / 1e6);
    }
    if (report->reachable && report->has_clock) {
        const int64_t ms = report->clock_ahead_ns / 1000000; /* not -0.000 */
        out_pair(stdout, "  clock", "%+.3f s", (double)ms / 1e3);
    }
    if (why[0] != '\0') {
        out_pair(stdout, "  trouble", "%s", why);
    }
    return KILN_OK;
}

static exit_code check_remotes(remote_work *work)
{
    const cmd_context *context = work->context;
    kiln_diag diag = KILN_DIAG_INIT;
    work->array = work->json ? json_array() : NULL;
    kiln_status status = kiln_remote_check(work->list, print_remote, work, &diag);
    if (status == KILN_OK && work->count == 0) {
        status = kiln_diag_set(&diag, KILN_E_INVALID, "set KILN_REMOTE, or give URLs", "",
                               "no remote is configured");
    }
    if (status != KILN_OK) {
        json_decref(work->array);
        return status == KILN_E_NOMEM ? cmd_no_memory(context) : cmd_fail(context, &diag);
    }
    if (work->json && !out_json(stdout, work->array)) {
        return cmd_no_memory(context);
    }
    return work->all_good ? EXIT_FINE : EXIT_CACHE;
}

static exit_code run_remote(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const remote_options *options = fields;
    remote_work work = {.context = context, .json = options->session.json, .all_good = true};
    kiln_diag diag = KILN_DIAG_INIT;
    if (strcmp(arguments->items[0], "check") != 0) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "give check", "",
                            "kiln remote has no action \"%.60s\"", arguments->items[0]);
        return cmd_fail(context, &diag);
    }
    for (size_t i = 1; i < arguments->count; i++) {
        work.list = work.list == NULL
                        ? arguments->items[i]
                        : pool_format(context->pool, "%s %s", work.list, arguments->items[i]);
        if (work.list == NULL) {
            return cmd_no_memory(context);
        }
    }
    return check_remotes(&work);
}

const cli_command cmd_remote = {
    .name = "remote",
    .usage = "check [URL...]",
    .summary = "Checks that remotes answer, read and write",
    .details =
        "check  asks those that KILN_REMOTE names, or the URLs given; exits 4 if one is not as\n"
        "       it should be. Writes an entry of its own and removes it.",
    .options = specs,
    .options_size = sizeof(remote_options),
    .min_arguments = 1,
    .max_arguments = 9,
    .run = run_remote,
};
