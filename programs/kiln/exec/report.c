/* See report.h. The file was written by other processes: nothing in it is trusted to be whole. */
#include "exec/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "cli/out.h"

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

static void count_line(exec_report *report, char *const fields[FIELDS])
{
    uint64_t took = 0;
    uint64_t saved = 0;
    const bool read =
        opt_parse_count(fields[FIELD_TOOK], &took) && opt_parse_count(fields[FIELD_SAVED], &saved);
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

void exec_report_print(const exec_report *report, cli_pool *pool, FILE *file)
{
    const uint64_t asked = report->compiled + report->hits + report->bypassed + report->failed;
    (void)fprintf(file,
                  "kiln: %" PRIu64 " compiles asked for: %" PRIu64 " hits, %" PRIu64
                  " compiled, %" PRIu64 " bypassed, %" PRIu64 " failed\n",
                  asked, report->hits, report->compiled, report->bypassed, report->failed);
    if (asked > 0) {
        (void)fprintf(file, "kiln: %s saved, %s spent compiling\n", time_of(pool, report->saved_ns),
                      time_of(pool, report->compile_ns + report->bypass_ns));
    }
    for (size_t i = 0; i < report->reason_count; i++) {
        out_print(file, "kiln: bypassed (%" PRIu64 ", %s): %s\n", report->reasons[i].count,
                  time_of(pool, report->reasons[i].took_ns), report->reasons[i].text);
    }
}

bool exec_report_print_json(const exec_report *report, FILE *file)
{
    json_t *root = json_object();
    json_t *reasons = json_array();
    out_json_set(&root, "hits", out_json_u64(report->hits));
    out_json_set(&root, "compiled", out_json_u64(report->compiled));
    out_json_set(&root, "bypassed", out_json_u64(report->bypassed));
    out_json_set(&root, "failed", out_json_u64(report->failed));
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
    return out_json(file, root);
}
