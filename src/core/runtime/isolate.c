/* Runs kiln-probe and turns its outcome into a report. Of drivers behind one loader, the bad one is
 * found by a child for each. */
#include "core/runtime/isolate.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "core/runtime/driver.h"
#include "sys/clock.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/process.h"

#define DEFAULT_LIMIT_MS 10000u
#define NS_PER_MS 1000000ull
#define MOST_LIMITS 4u /* no more of them are spent on finding the one that hangs */

static const char asking[] = "probing in a child process";

/* --- what a child says ------------------------------------------------------------------------ */

/* True for an outcome. */
static bool take_field(kiln_probe_report *report, const char *name, const char *value)
{
    const struct {
        const char *name;
        char *field;
        size_t size;
    } texts[] = {{"backend", report->backend, sizeof(report->backend)},
                 {"library", report->library, sizeof(report->library)},
                 {"version", report->version, sizeof(report->version)},
                 {"why", report->why, sizeof(report->why)},
                 {"fix", report->fix, sizeof(report->fix)}};
    uint64_t number = 0;
    for (int i = KILN_PROBE_READY; strcmp(name, "outcome") == 0 && i <= KILN_PROBE_SKIPPED; i++) {
        if (strcmp(kiln_probe_outcome_name((kiln_probe_outcome)i), value) == 0) {
            report->outcome = (kiln_probe_outcome)i;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(name, texts[i].name) == 0) {
            kn_text_put(texts[i].field, texts[i].size, value);
        }
    }
    if (strcmp(name, "devices") == 0 && kn_text_to_u64(value, &number)) {
        report->device_count = (uint32_t)number;
    }
    return false;
}

bool kn_isolate_parse(const char *text, kiln_probe_report *out_report)
{
    bool outcome = false;
    bool ended = false;
    memset(out_report, 0, sizeof(*out_report));
    while (text != NULL && *text != '\0') {
        char line[1024];
        const size_t length = strcspn(text, "\n");
        kn_text_putf(line, sizeof(line), "%.*s", (int)(length < sizeof(line) ? length : 0), text);
        char *equals = strchr(line, '=');
        if (equals != NULL) {
            *equals = '\0';
            outcome = take_field(out_report, line, equals + 1) || outcome;
        }
        ended = ended || strcmp(line, "end") == 0;
        text += length + (text[length] == '\n');
    }
    return outcome && ended;
}

bool kn_isolate_is_unknown(const char *text)
{
    static const char word[] = "unknown\nend\n";
    return text != NULL && kn_text_ends(text, word) &&
           (strcmp(text, word) == 0 || text[strlen(text) - sizeof(word)] == '\n');
}

/* What Windows' C library makes of a line's end becomes one again. */
static void join_line_ends(char *text)
{
    char *to = text;
    for (const char *from = text; from != NULL && *from != '\0'; from++) {
        if (from[0] != '\r' || from[1] != '\n') {
            *to++ = *from;
        }
    }
    if (to != NULL) {
        *to = '\0';
    }
}

/* --- one child -------------------------------------------------------------------------------- */

static void report_ending(const char *backend, const kn_process_result *result, uint32_t limit_ms,
                          kiln_probe_report *report)
{
    const char *fix = "update or remove the driver it loads; KILN_BACKEND chooses another backend";
    if (result->timed_out) {
        kn_report_set(report, backend, KILN_PROBE_TIMED_OUT, fix,
                      "%s did not answer within %u ms (a driver or device that hangs)", backend,
                      (unsigned)limit_ms);
    } else if (result->signal != 0) {
        kn_report_set(report, backend, KILN_PROBE_CRASHED, fix,
                      "the driver of %s crashed its process with %s", backend,
                      kn_process_signal_name(result->signal));
    } else {
        /* A driver that ends the process takes a program along as one that crashes does. */
        kn_report_set(report, backend, KILN_PROBE_CRASHED, fix,
                      "the probe of %s exited with code %d and without a report", backend,
                      result->exit_code);
    }
}

/* The report of a child that has ended, however it did. */
static kiln_status read_result(const char *backend, const char *helper, uint32_t limit_ms,
                               kn_process_result *result, kiln_probe_report *out_report,
                               kiln_diag *diag)
{
    join_line_ends(result->out);
    if (kn_isolate_is_unknown(result->out)) {
        /* Registered by this program: a child cannot know it. The exit code alone does not say so:
         * a driver may end its process with any. */
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, asking,
                             "only this process has the backend %s", backend);
    }
    if (result->exit_code == 0 && kn_isolate_parse(result->out, out_report)) {
        return KILN_OK;
    }
    /* Its first line comes before anything of a driver's. */
    if (!result->timed_out && !kn_text_starts(result->out != NULL ? result->out : "", "probing")) {
        const char *said = result->err != NULL ? result->err : "";
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install kiln whole, for this machine",
                             asking, "%s did not start (exit code %d)%s%.*s", helper,
                             result->exit_code, said[0] != '\0' ? ": " : "",
                             (int)strcspn(said, "\n"), said);
    }
    report_ending(backend, result, limit_ms, out_report);
    return KILN_OK;
}

/* `variable` is one more for the child, "NAME=value", or NULL. */
static kiln_status probe_in_child(const char *backend, const char *backend_path, uint32_t limit_ms,
                                  const char *variable, kiln_probe_report *out_report,
                                  kiln_diag *diag)
{
    kn_process_result result;
    kn_strbuf path;
    memset(out_report, 0, sizeof(*out_report));
    memset(&result, 0, sizeof(result));
    char *helper = kn_paths_helper("kiln-probe");
    if (helper == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "set KILN_LIBEXEC to its directory", asking,
                             "the program kiln-probe is not found");
    }
    kn_strbuf_init(&path, 0);
    kn_strbuf_printf(&path, "KILN_BACKEND_PATH=%s", backend_path != NULL ? backend_path : "");
    const char *argv[] = {helper, backend, NULL};
    const char *environment[3] = {variable};
    if (backend_path != NULL) {
        environment[variable != NULL] = kn_strbuf_text(&path);
    }
    const kn_process_request request = {
        .argv = argv, .environment = environment, .limit_ns = limit_ms * NS_PER_MS};
    const uint64_t start = kn_clock_now();
    kiln_status status =
        kn_strbuf_ok(&path) ? kn_process_run(&request, &result, diag) : kn_no_memory(diag, asking);
    if (status == KILN_OK) {
        status = read_result(backend, helper, limit_ms, &result, out_report, diag);
        out_report->probe_ns = kn_clock_now() - start;
    }
    kn_process_result_deinit(&result);
    kn_strbuf_deinit(&path);
    free(helper);
    return status;
}

/* --- drivers behind one loader ---------------------------------------------------------------- */

static bool took_its_process(const kiln_probe_report *report)
{
    return report->outcome == KILN_PROBE_CRASHED || report->outcome == KILN_PROBE_TIMED_OUT;
}

typedef struct parting {
    const char *backend, *backend_path;
    uint32_t limit_ms;
    uint64_t deadline_ns;
    kn_apart apart;
    char *left_out; /* KN_LEFT_OUT_SIZE */
    kn_strbuf why;  /* "bad.icd: crashed; worse.icd: timed out" */
} parting;

/* A child that sees the one registration `only`, or all but those left out. */
static kiln_status probe_some(parting *p, const char *only, const char *left_out,
                              kiln_probe_report *out_report)
{
    kn_strbuf variable;
    if (kn_clock_now() > p->deadline_ns) {
        return KILN_E_TIMEOUT;
    }
    if (!kn_apart_fill(&p->apart, only, left_out)) {
        return KILN_E_IO;
    }
    kn_strbuf_init(&variable, 0);
    kn_strbuf_printf(&variable, KN_APART_VARIABLE "=%s", p->apart.dir);
    kiln_status status = kn_strbuf_ok(&variable)
                             ? probe_in_child(p->backend, p->backend_path, p->limit_ms,
                                              kn_strbuf_text(&variable), out_report, NULL)
                             : KILN_E_NOMEM;
    kn_strbuf_deinit(&variable);
    return status;
}

static kiln_status probe_one(void *user, const char *name)
{
    parting *p = (parting *)user;
    kiln_probe_report report;
    if (!kn_text_ends(name, KN_APART_END)) {
        return KILN_OK;
    }
    const kiln_status status = probe_some(p, name, "", &report);
    if (status != KILN_OK || !took_its_process(&report)) {
        return status;
    }
    kn_strbuf_printf(&p->why, "%s%s: %s", p->why.length > 0 ? "; " : "", name,
                     kiln_probe_outcome_name(report.outcome));
    return kn_apart_leave_out(p->left_out, name) ? KILN_OK : KILN_E_UNSUPPORTED;
}

/* The whole list took its child: which registration does so by itself, and what do the others give?
 * Without any the loader has to work: what crashes then is not the fault of a registration. */
static bool part_drivers(parting *p, kiln_probe_report *report)
{
    kiln_probe_report some;
    kiln_probe_report rest;
    /* No registration has this name. */
    if (probe_some(p, "/", "", &some) != KILN_OK || took_its_process(&some) ||
        kn_file_list(p->apart.from, probe_one, p, NULL) != KILN_OK || p->left_out[0] == '\0' ||
        !kn_strbuf_ok(&p->why)) {
        return false;
    }
    const bool goes_on =
        probe_some(p, NULL, p->left_out, &rest) == KILN_OK && rest.outcome == KILN_PROBE_READY;
    *report = goes_on ? rest : *report;
    const size_t used = strlen(report->why);
    kn_text_putf(report->why + used, sizeof(report->why) - used, "; %s in %s: %s",
                 goes_on ? "left out" : "at fault", p->apart.from, kn_strbuf_text(&p->why));
    kn_text_putf(report->fix, sizeof(report->fix),
                 "update the driver that %s registers, or remove that file",
                 strchr(kn_strbuf_text(&p->why), ';') == NULL ? "the named file" : "each of them");
    return goes_on;
}

kiln_status kn_isolate_probe(const char *backend, const char *backend_path, uint32_t limit_ms,
                             kiln_probe_report *out_report, char left_out[KN_LEFT_OUT_SIZE],
                             kiln_diag *diag)
{
    parting p = {.backend = backend, .backend_path = backend_path, .left_out = left_out};
    const uint64_t start = kn_clock_now();
    p.limit_ms = limit_ms != 0 ? limit_ms : DEFAULT_LIMIT_MS;
    left_out[0] = '\0';
    kiln_status status = probe_in_child(backend, backend_path, p.limit_ms, NULL, out_report, diag);
    if (status != KILN_OK || !took_its_process(out_report) || !kn_apart_init(&p.apart, backend)) {
        return status;
    }
    kn_strbuf_init(&p.why, sizeof(out_report->why));
    p.deadline_ns = kn_clock_now() + MOST_LIMITS * p.limit_ms * NS_PER_MS;
    if (!part_drivers(&p, out_report)) {
        left_out[0] = '\0';
    }
    out_report->probe_ns = kn_clock_now() - start;
    kn_strbuf_deinit(&p.why);
    kn_apart_deinit(&p.apart);
    return status;
}
