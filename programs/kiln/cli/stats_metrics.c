/* OpenMetrics 1.0: families with HELP, TYPE and UNIT, one sample each, and the end marked. */
#include "cli/stats_metrics.h"

#include <inttypes.h>
#include <string.h>

#include <kiln/unstable/counters.h>

/* A label's value, escaped as the format wants it. */
static void put_value(FILE *file, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"') {
            (void)fprintf(file, "\\%c", *value);
        } else if (*value == '\n') {
            (void)fputs("\\n", file);
        } else {
            (void)fputc(*value, file);
        }
    }
}

/* What all samples have: the cache, and when they were taken (ns since 1970; 0: not said). */
typedef struct metrics_stamp {
    const char *root;
    int64_t time_ns;
} metrics_stamp;

/* After a value. */
static void end_sample(FILE *file, const metrics_stamp *stamp)
{
    if (stamp->time_ns > 0) {
        (void)fprintf(file, " %" PRId64 ".%03" PRId64, stamp->time_ns / 1000000000,
                      stamp->time_ns / 1000000 % 1000);
    }
    (void)fputc('\n', file);
}

static void put_label(FILE *file, const metrics_stamp *stamp)
{
    (void)fputs("{cache=\"", file);
    put_value(file, stamp->root);
    (void)fputs("\"}", file);
}

static void put_head(FILE *file, const char *name, const char *type, const char *unit,
                     const char *help)
{
    (void)fprintf(file, "# HELP kiln_cache_%s %s\n# TYPE kiln_cache_%s %s\n", name, help, name,
                  type);
    if (unit != NULL) {
        (void)fprintf(file, "# UNIT kiln_cache_%s %s\n", name, unit);
    }
}

static void put_gauge(FILE *file, const metrics_stamp *stamp, const char *name, const char *unit,
                      const char *help, uint64_t value)
{
    put_head(file, name, "gauge", unit, help);
    (void)fprintf(file, "kiln_cache_%s", name);
    put_label(file, stamp);
    (void)fprintf(file, " %" PRIu64, value);
    end_sample(file, stamp);
}

/* OpenMetrics wants a unit at the end of the name: "_ns" becomes "_seconds", and bytes have a unit
 * where the name ends so. */
static void put_counter(FILE *file, const metrics_stamp *stamp, uint32_t counter, uint64_t value)
{
    char family[64];
    const char *name = kiln_counter_name(counter);
    const size_t length = strlen(name);
    const bool time = strcmp(kiln_counter_unit(counter), "ns") == 0;
    const bool bytes = length > 6 && strcmp(name + length - 6, "_bytes") == 0;
    if (time) {
        (void)snprintf(family, sizeof(family), "%.*s_seconds", (int)length - 3, name);
    } else {
        (void)snprintf(family, sizeof(family), "%s", name);
    }
    const char *unit = time ? "seconds" : bytes ? "bytes" : NULL;
    put_head(file, family, "counter", unit, kiln_counter_text(counter));
    (void)fprintf(file, "kiln_cache_%s_total", family);
    put_label(file, stamp);
    if (time) {
        (void)fprintf(file, " %" PRIu64 ".%09" PRIu64, value / 1000000000, value % 1000000000);
    } else {
        (void)fprintf(file, " %" PRIu64, value);
    }
    end_sample(file, stamp);
}

/* One reason of a list that is cut at some length: gauges, which may go down. */
static void put_reason(FILE *file, const metrics_stamp *stamp, const char *name, const char *reason)
{
    (void)fprintf(file, "kiln_cache_%s{cache=\"", name);
    put_value(file, stamp->root);
    (void)fputs("\",reason=\"", file);
    put_value(file, reason);
    (void)fputs("\"} ", file);
}

static void put_bypasses(FILE *file, const metrics_stamp *stamp, const cli_bypasses *bypasses)
{
    static const char help[] = "compiles that bypassed the cache, by reason";
    static const char time_help[] = "time spent on them";
    if (bypasses->count == 0) {
        return;
    }
    put_head(file, "bypass_compiles", "gauge", NULL, help);
    for (size_t i = 0; i < bypasses->count; i++) {
        put_reason(file, stamp, "bypass_compiles", bypasses->items[i].reason);
        (void)fprintf(file, "%" PRIu64, bypasses->items[i].count);
        end_sample(file, stamp);
    }
    put_head(file, "bypass_time_seconds", "gauge", "seconds", time_help);
    for (size_t i = 0; i < bypasses->count; i++) {
        const uint64_t ns = bypasses->items[i].time_ns;
        put_reason(file, stamp, "bypass_time_seconds", bypasses->items[i].reason);
        (void)fprintf(file, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
        end_sample(file, stamp);
    }
}

void stats_print_metrics(FILE *file, const char *root, int64_t time_ns, uint64_t entries,
                         uint64_t bytes, const uint64_t *counters, const cli_bypasses *bypasses)
{
    const metrics_stamp own = {root, time_ns};
    const metrics_stamp *stamp = &own;
    put_gauge(file, stamp, "entries", NULL, "entries on disk", entries);
    put_gauge(file, stamp, "size_bytes", "bytes", "size of the entries on disk", bytes);
    for (uint32_t i = 0; i < KILN_COUNTERS; i++) {
        put_counter(file, stamp, i, counters[i]);
    }
    put_bypasses(file, stamp, bypasses);
    (void)fputs("# EOF\n", file);
}
