/* kiln report: one page about a cache, about a recording, or about the caches of a fleet by their
 * metrics. */
#include <string.h>

#include "cli/out.h"
#include "cli/session.h"
#include "page/page.h"
#include "page/report_json.h"

typedef struct report_options {
    session_options session;
    const char *html;
    opt_list metrics;
} report_options;

static const opt_spec specs[] = {
    {"html", 0, OPT_TEXT, offsetof(report_options, html), "FILE", "write the page to FILE"},
    {"metrics", 'm', OPT_LIST, offsetof(report_options, metrics), "FILE",
     "the page is about the caches whose OpenMetrics text FILE holds (more may follow)"},
    SESSION_CACHE_ROW(report_options),
    {"json", 0, OPT_FLAG, offsetof(report_options, session.json), NULL,
     "print the data of the page as JSON"},
    OPT_END};

/* Frees `report`, which is NULL when memory ran out. */
static exit_code finish_report(const cmd_context *context, const report_options *options,
                               json_t *report)
{
    kiln_diag diag = KILN_DIAG_INIT;
    if (options->session.json) {
        return out_json(stdout, report) ? EXIT_FINE : cmd_no_memory(context);
    }
    if (page_write(report, options->html, &diag) != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    console_note(context->console, "report: %s is written: open it in a browser", options->html);
    return EXIT_FINE;
}

static exit_code report_metrics(const cmd_context *context, const report_options *options,
                                const opt_list *arguments)
{
    metrics_set set = {.pool = context->pool};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < options->metrics.count; i++) {
        status = metrics_read(&set, options->metrics.items[i], &diag);
    }
    for (size_t i = 0; status == KILN_OK && i < arguments->count; i++) {
        status = metrics_read(&set, arguments->items[i], &diag);
    }
    return status == KILN_OK ? finish_report(context, options, report_fleet_json(&set))
                             : cmd_fail(context, &diag);
}

static exit_code report_cache(const cmd_context *context, const report_options *options)
{
    kiln_cache *cache = NULL;
    holdings held;
    kiln_diag diag = KILN_DIAG_INIT;
    exit_code code = session_open_disk(context, &options->session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    code = holdings_read(cache, context->pool, context->console, &held, &diag) == KILN_OK
               ? finish_report(context, options, report_cache_json(&held))
               : cmd_fail_as(context, EXIT_CACHE, &diag);
    kiln_cache_destroy(cache);
    return code;
}

static exit_code report_recording(const cmd_context *context, const report_options *options,
                                  const char *path)
{
    session_options session = options->session;
    kiln_cache *cache = NULL;
    kiln_recording *recording = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    session.no_record = true;
    exit_code code = session_open_disk(context, &session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    if (kiln_recording_open(path, &recording, &diag) == KILN_OK) {
        code = finish_report(context, options, report_recording_json(path, recording, cache));
    } else {
        code = cmd_fail(context, &diag);
    }
    kiln_recording_close(recording);
    kiln_cache_destroy(cache);
    return code;
}

/* The recording that the arguments name; NULL: the report is about the cache, or about metrics. */
static const char *choose_recording(const opt_list *arguments, bool fleet)
{
    return !fleet && arguments->count == 1 && kiln_recording_is(arguments->items[0])
               ? arguments->items[0]
               : NULL;
}

static exit_code run_report(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const report_options *options = fields;
    kiln_diag diag = KILN_DIAG_INIT;
    const bool fleet = options->metrics.count > 0;
    const char *recording = choose_recording(arguments, fleet);
    if ((options->html == NULL) != options->session.json) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "give --html FILE, or --json", "",
                            options->html == NULL ? "where to write the page is missing"
                                                  : "--html and --json are two reports");
        return cmd_fail(context, &diag);
    }
    if (arguments->count > 0 && !fleet && recording == NULL) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID,
                            "name one recording, or write --metrics before files of metrics", "",
                            "unexpected argument \"%.100s\"", arguments->items[0]);
        return cmd_fail(context, &diag);
    }
    if (fleet && (options->session.cache_dir != NULL || options->session.name_space != NULL)) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "make two pages", "--metrics",
                            "it cannot be combined with --cache-dir");
        return cmd_fail(context, &diag);
    }
    return fleet               ? report_metrics(context, options, arguments)
           : recording != NULL ? report_recording(context, options, recording)
                               : report_cache(context, options);
}

const cli_command cmd_report = {
    .name = "report",
    .usage = "[RECORDING|FILE...]",
    .summary = "Writes a web page about what the cache holds and whether it helped",
    .details =
        "One file that needs no network: where time went, why something was compiled, programs,\n"
        "targets, sizes, what is stale. Of a RECORDING (KILN_RECORD) it shows the programs by "
        "language,\n"
        "size and last use, and which are stale. With --metrics it is about the caches of many "
        "machines, "
        "by\n"
        "what `kiln stats --openmetrics` printed on each: one file a machine. With --timestamps,\n"
        "and appended by a timer, these files show hit rates over time.",
    .options = specs,
    .options_size = sizeof(report_options),
    .min_arguments = 0,
    .max_arguments = 10000,
    .run = run_report,
};
