/* See report.h. The file was written by other processes: nothing in it is trusted to be whole. */
#include "exec/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "cli/out.h"
#include "compilers/libraries.h"

enum { FIELDS = 6, REPORT_LIMIT = 256 << 20 };
enum { FIELD_WHAT, FIELD_ORIGIN, FIELD_TOOK, FIELD_SAVED, FIELD_NAME, FIELD_REASON };

static void add_reason(exec_report *report, const char *text, uint64_t took_ns)
{
    for (size_t i = 0; i < report->reason_count; i++) {
        if (strncmp(report->reasons[i].text, text, EXEC_REASON_SIZE - 1) == 0) {
            report->reasons[i].count++;
            report->reasons[i].took_ns += took_ns;
            return;
        }
    }
    if (report->reason_count < EXEC_REASONS_MAX) {
        const size_t at = report->reason_count++;
        (void)snprintf(report->reasons[at].text, EXEC_REASON_SIZE, "%s", text);
        report->reasons[at].count = 1;
        report->reasons[at].took_ns = took_ns;
    }
}

static bool is_hit(const char *origin)
{
    static const char *const hits[] = {"memory", "disk", "pack", "remote", "shared"};
    for (size_t i = 0; i < sizeof(hits) / sizeof(*hits); i++) {
        if (strcmp(origin, hits[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* --- troubles --------------------------------------------------------------------------------- */

const exec_trouble *exec_report_trouble(const exec_report *report, const char *what)
{
    for (size_t i = 0; i < report->trouble_count; i++) {
        if (strcmp(report->troubles[i].what, what) == 0) {
            return &report->troubles[i];
        }
    }
    return NULL;
}

void exec_report_add_trouble(exec_report *report, const exec_trouble *trouble)
{
    if (report->trouble_count < EXEC_TROUBLES_MAX &&
        exec_report_trouble(report, trouble->what) == NULL) {
        report->troubles[report->trouble_count++] = *trouble;
    }
}

const char *exec_trouble_fix(const exec_trouble *trouble)
{
    if (strcmp(trouble->what, "core") == 0) {
        return "install the whole package kiln";
    }
    return strstr(trouble->reason, "KILN_") != NULL
               ? "unset it"
               : "name a directory that can be written with KILN_CACHE_DIR";
}

bool exec_trouble_matters(const exec_report *report, const exec_trouble *trouble)
{
    return !trouble->reads || report->hits == 0 || report->compiled > 0;
}

static const char *effect_of(const exec_trouble *trouble)
{
    if (strcmp(trouble->what, "cache") != 0) {
        return "it can do nothing";
    }
    return trouble->reads ? "nothing new is stored" : "nothing is kept";
}

static bool is_trouble(const char *origin)
{
    return strcmp(origin, "off") == 0 || strcmp(origin, "read-only") == 0;
}

static void cut_text(char *out, size_t size, const char *text)
{
    const size_t length = strnlen(text, size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

static void take_trouble(exec_report *report, char *const fields[FIELDS])
{
    exec_trouble trouble = {.reads = strcmp(fields[FIELD_ORIGIN], "off") != 0};
    cut_text(trouble.what, sizeof(trouble.what), fields[FIELD_WHAT]);
    cut_text(trouble.object, sizeof(trouble.object), fields[FIELD_NAME]);
    cut_text(trouble.reason, sizeof(trouble.reason), fields[FIELD_REASON]);
    exec_report_add_trouble(report, &trouble);
}

/* --- compiles --------------------------------------------------------------------------------- */

uint64_t exec_report_asked(const exec_report *report)
{
    return report->compiled + report->hits + report->bypassed + report->failed;
}

uint64_t exec_report_not_stored(const exec_report *report)
{
    return report->left > report->stored ? report->left - report->stored : 0;
}

const exec_frontend *exec_report_frontend(const exec_report *report, const char *what)
{
    for (size_t i = 0; i < report->frontend_count; i++) {
        if (strcmp(report->frontends[i].what, what) == 0) {
            return &report->frontends[i];
        }
    }
    return NULL;
}

static void count_frontend(exec_report *report, const char *what, bool answered)
{
    const exec_frontend *known = exec_report_frontend(report, what);
    size_t at = known != NULL ? (size_t)(known - report->frontends) : report->frontend_count;
    if (at == EXEC_FRONTENDS_MAX) {
        return;
    }
    if (known == NULL) {
        report->frontend_count++;
        cut_text(report->frontends[at].what, sizeof(report->frontends[at].what), what);
    }
    report->frontends[at].answered += answered;
    report->frontends[at].bypassed += !answered;
}

static void count_compile(exec_report *report, char *const fields[FIELDS])
{
    uint64_t took = 0;
    uint64_t saved = 0;
    const bool read =
        opt_parse_count(fields[FIELD_TOOK], &took) && opt_parse_count(fields[FIELD_SAVED], &saved);
    const uint64_t asked = exec_report_asked(report);
    if (read && is_hit(fields[FIELD_ORIGIN])) {
        report->hits++;
        report->saved_ns += saved > took ? saved - took : 0;
    } else if (read && strcmp(fields[FIELD_ORIGIN], "compiled") == 0) {
        report->compiled++;
        report->compile_ns += took;
    } else if (read && strcmp(fields[FIELD_ORIGIN], "bypassed") == 0) {
        report->bypassed++;
        report->bypass_ns += took;
        add_reason(report, fields[FIELD_REASON], took);
    } else if (read && strcmp(fields[FIELD_ORIGIN], "failed") == 0) {
        report->failed++;
    } else {
        report->unread++;
    }
    if (exec_report_asked(report) > asked) {
        count_frontend(report, fields[FIELD_WHAT], strcmp(fields[FIELD_ORIGIN], "bypassed") != 0);
    }
}

static void count_line(exec_report *report, char *const fields[FIELDS])
{
    if (is_trouble(fields[FIELD_ORIGIN])) {
        take_trouble(report, fields);
    } else if (strcmp(fields[FIELD_WHAT], "binary") == 0) {
        report->binaries = true;
        report->pyopencl = report->pyopencl || strcmp(fields[FIELD_NAME], "pyopencl") == 0;
    } else if (strcmp(fields[FIELD_ORIGIN], "left") == 0) {
        report->left++;
    } else if (strcmp(fields[FIELD_ORIGIN], "stored") == 0) {
        report->stored++;
    } else {
        count_compile(report, fields);
    }
}

void exec_report_add(exec_report *report, const char *line)
{
    char copy[4097];
    char *fields[FIELDS];
    size_t count = 0;
    (void)snprintf(copy, sizeof(copy), "%s", line);
    for (char *at = copy; count < FIELDS;) {
        char *tab = strchr(at, '\t');
        fields[count++] = at;
        if (tab == NULL) {
            break;
        }
        *tab = '\0';
        at = tab + 1;
    }
    if (count == FIELDS) {
        count_line(report, fields);
    } else {
        report->unread++;
    }
}

kiln_status exec_report_read(const char *path, exec_report *out_report, kiln_diag *diag)
{
    char *data = NULL;
    size_t size = 0;
    memset(out_report, 0, sizeof(*out_report));
    kiln_status status = host_read_file(path, REPORT_LIMIT, &data, &size, diag);
    for (char *at = data; status == KILN_OK && at < data + size;) {
        char *end = memchr(at, '\n', (size_t)(data + size - at));
        if (end == NULL) {
            out_report->unread++; /* its writer was killed */
            break;
        }
        *end = '\0';
        exec_report_add(out_report, at);
        at = end + 1;
    }
    free(data);
    return status;
}

static const char *time_of(cli_pool *pool, uint64_t ns)
{
    const char *text = out_time(pool, ns);
    return text != NULL ? text : "?";
}

/* What a loader says of a file begins with its name, often. */
static const char *describe_trouble(cli_pool *pool, const exec_trouble *trouble)
{
    const bool named =
        trouble->object[0] == '\0' || strstr(trouble->reason, trouble->object) != NULL;
    return pool_format(pool, "%s: %s%s%s (%s)", effect_of(trouble), named ? "" : trouble->object,
                       named ? "" : ": ", trouble->reason, exec_trouble_fix(trouble));
}

/* The last one that matters; the verdict tells it. */
static const exec_trouble *last_trouble(const exec_report *report)
{
    const exec_trouble *last = NULL;
    for (size_t i = 0; i < report->trouble_count; i++) {
        const exec_trouble *trouble = &report->troubles[i];
        last = exec_trouble_matters(report, trouble) ? trouble : last;
    }
    return last;
}

/* Why a program that asked for nothing did not. */
static const char *explain_silence(const exec_report *report, cli_pool *pool)
{
    const char *names = "";
    for (int i = 0; names != NULL && i < KN_LIBRARIES; i++) {
        if (kn_library_keeps_name(&kn_libraries[i])) {
            names = pool_format(pool, "%s%s, ", names, kn_libraries[i].name);
        }
    }
    if (names == NULL) {
        return NULL;
    }
    if (report->pyopencl) {
        return "pyopencl's own cache answers first: set PYOPENCL_NO_CACHE=1";
    }
    return report->binaries
               ? "this program loads OpenCL binaries that it keeps itself: it compiles nothing"
               : pool_format(pool,
                             "this program called none of %sptxas, OpenCL, Vulkan "
                             "(run kiln doctor -- PROGRAM for what it loads)",
                             names);
}

/* Why not all kernels were found, or "". */
static const char *explain_rest(const exec_report *report, cli_pool *pool)
{
    const exec_trouble *trouble = last_trouble(report);
    if (trouble != NULL) {
        return describe_trouble(pool, trouble);
    }
    if (report->bypassed > 0 && report->reason_count > 0) {
        return pool_format(pool, "%" PRIu64 " cannot be cached: %s", report->bypassed,
                           report->reasons[0].text);
    }
    if (report->compiled > 0) {
        return pool_format(pool, "%" PRIu64 " compiled in %s", report->compiled,
                           time_of(pool, report->compile_ns));
    }
    return report->failed > 0 ? pool_format(pool, "%" PRIu64 " did not compile", report->failed)
                              : "";
}

const char *exec_report_verdict(const exec_report *report, cli_pool *pool)
{
    const uint64_t asked = exec_report_asked(report);
    const char *why = explain_rest(report, pool);
    if (asked == 0) {
        return why == NULL || *why != '\0' ? why : explain_silence(report, pool);
    }
    const char *saved =
        report->hits > 0 ? pool_format(pool, ", %s saved", time_of(pool, report->saved_ns)) : "";
    return why == NULL || saved == NULL
               ? NULL
               : pool_format(pool, "%" PRIu64 " of %" PRIu64 " %s found%s%s%s", report->hits, asked,
                             asked == 1 ? "kernel" : "kernels", saved, *why != '\0' ? "; " : "",
                             why);
}

static void print_troubles(const exec_report *report, cli_pool *pool, FILE *file)
{
    const exec_trouble *last = last_trouble(report);
    for (size_t i = 0; i < report->trouble_count; i++) {
        const exec_trouble *trouble = &report->troubles[i];
        const char *text = describe_trouble(pool, trouble);
        if (exec_trouble_matters(report, trouble) && trouble != last && text != NULL) {
            out_print(file, "kiln: %s\n", text);
        }
    }
}

void exec_report_print(const exec_report *report, cli_pool *pool, const char *note, FILE *file)
{
    const uint64_t asked = exec_report_asked(report);
    const uint64_t spent_ns = report->compile_ns + report->bypass_ns;
    const uint64_t left = exec_report_not_stored(report);
    const char *verdict = exec_report_verdict(report, pool);
    (void)fprintf(file,
                  "kiln: %" PRIu64 " %s asked for: %" PRIu64 " %s, %" PRIu64 " compiled, %" PRIu64
                  " bypassed, %" PRIu64 " failed\n",
                  asked, asked == 1 ? "compile" : "compiles", report->hits,
                  report->hits == 1 ? "hit" : "hits", report->compiled, report->bypassed,
                  report->failed);
    if (spent_ns > 0) {
        (void)fprintf(file, "kiln: %s saved, %s spent compiling\n", time_of(pool, report->saved_ns),
                      time_of(pool, spent_ns));
    }
    if (left > 0) {
        (void)fprintf(file,
                      "kiln: not stored: run `kiln exec --capture` once (%" PRIu64
                      " OpenCL %s, whose kernels PoCL would all compile for that)\n",
                      left, left == 1 ? "program" : "programs");
    }
    print_troubles(report, pool, file);
    for (size_t i = 0; i < report->reason_count; i++) {
        out_print(file, "kiln: bypassed (%" PRIu64 ", %s): %s\n", report->reasons[i].count,
                  time_of(pool, report->reasons[i].took_ns), report->reasons[i].text);
    }
    if (note != NULL) {
        out_print(file, "kiln: %s\n", note);
    }
    out_paint(file, OUT_BOLD);
    out_print(file, "kiln: %s", verdict != NULL ? verdict : "out of memory");
    out_paint(file, OUT_PLAIN);
    (void)fputc('\n', file);
}

json_t *exec_report_troubles_json(const exec_report *report)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < report->trouble_count; i++) {
        const exec_trouble *trouble = &report->troubles[i];
        json_t *row = json_object();
        if (!exec_trouble_matters(report, trouble)) {
            json_decref(row);
            continue;
        }
        out_json_set(&row, "what", out_json_text(trouble->what));
        out_json_set(&row, "object", out_json_text(trouble->object));
        out_json_set(&row, "reason", out_json_text(trouble->reason));
        out_json_set(&row, "fix", out_json_text(exec_trouble_fix(trouble)));
        out_json_append(&rows, row);
    }
    return rows;
}

bool exec_report_print_json(const exec_report *report, cli_pool *pool, FILE *file)
{
    const char *verdict = exec_report_verdict(report, pool);
    json_t *root = json_object();
    json_t *reasons = json_array();
    out_json_set(&root, "hits", out_json_u64(report->hits));
    out_json_set(&root, "compiled", out_json_u64(report->compiled));
    out_json_set(&root, "bypassed", out_json_u64(report->bypassed));
    out_json_set(&root, "failed", out_json_u64(report->failed));
    out_json_set(&root, "not_stored", out_json_u64(exec_report_not_stored(report)));
    out_json_set(&root, "saved_ms", out_json_ms(report->saved_ns));
    out_json_set(&root, "compile_ms", out_json_ms(report->compile_ns));
    out_json_set(&root, "bypass_ms", out_json_ms(report->bypass_ns));
    for (size_t i = 0; i < report->reason_count; i++) {
        json_t *row = json_object();
        out_json_set(&row, "reason", out_json_text(report->reasons[i].text));
        out_json_set(&row, "count", out_json_u64(report->reasons[i].count));
        out_json_set(&row, "ms", out_json_ms(report->reasons[i].took_ns));
        out_json_append(&reasons, row);
    }
    out_json_set(&root, "bypasses", reasons);
    out_json_set(&root, "troubles", exec_report_troubles_json(report));
    out_json_set(&root, "verdict", verdict != NULL ? out_json_text(verdict) : NULL);
    return out_json(file, root);
}
