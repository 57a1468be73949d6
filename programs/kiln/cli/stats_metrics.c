/* OpenMetrics 1.0: families with HELP, TYPE and UNIT, one sample each, and the end marked. */
#include "cli/stats_metrics.h"

#include <inttypes.h>
#include <string.h>

/* The label's value, escaped as the format wants it. */
static void put_label(FILE *file, const char *root)
{
    (void)fputs("{cache=\"", file);
    for (; *root != '\0'; root++) {
        if (*root == '\\' || *root == '"') {
            (void)fprintf(file, "\\%c", *root);
        } else if (*root == '\n') {
            (void)fputs("\\n", file);
        } else {
            (void)fputc(*root, file);
        }
    }
    (void)fputs("\"}", file);
}

static void put_head(FILE *file, const char *name, const char *type, const char *unit,
                     const char *help, int help_length)
{
    (void)fprintf(file, "# HELP kiln_cache_%s %.*s\n# TYPE kiln_cache_%s %s\n", name, help_length,
                  help, name, type);
    if (unit != NULL) {
        (void)fprintf(file, "# UNIT kiln_cache_%s %s\n", name, unit);
    }
}

static void put_gauge(FILE *file, const char *root, const char *name, const char *unit,
                      const char *help, uint64_t value)
{
    put_head(file, name, "gauge", unit, help, (int)strlen(help));
    (void)fprintf(file, "kiln_cache_%s", name);
    put_label(file, root);
    (void)fprintf(file, " %" PRIu64 "\n", value);
}

static void put_counter(FILE *file, const char *root, const char *name, const char *help,
                        uint64_t value)
{
    char family[64];
    const size_t length = strlen(name);
    const bool time = length > 3 && strcmp(name + length - 3, "_ns") == 0;
    const bool bytes = length > 6 && strcmp(name + length - 6, "_bytes") == 0;
    if (time) { /* the text of the table ends in ", ns" */
        (void)snprintf(family, sizeof(family), "%.*s_seconds", (int)length - 3, name);
    } else {
        (void)snprintf(family, sizeof(family), "%s", name);
    }
    const char *unit = time ? "seconds" : bytes ? "bytes" : NULL;
    put_head(file, family, "counter", unit, help, (int)(time ? strcspn(help, ",") : strlen(help)));
    (void)fprintf(file, "kiln_cache_%s_total", family);
    put_label(file, root);
    if (time) {
        (void)fprintf(file, " %" PRIu64 ".%09" PRIu64 "\n", value / 1000000000, value % 1000000000);
    } else {
        (void)fprintf(file, " %" PRIu64 "\n", value);
    }
}

void stats_print_metrics(FILE *file, const char *root, uint64_t entries, uint64_t bytes,
                         const kiln_cache_stats *stats)
{
    put_gauge(file, root, "entries", NULL, "entries on disk", entries);
    put_gauge(file, root, "size_bytes", "bytes", "what they take on disk", bytes);
#define COUNTER_SAMPLE(name, text) put_counter(file, root, #name, (text), stats->name);
    KILN_CACHE_COUNTERS(COUNTER_SAMPLE)
#undef COUNTER_SAMPLE
    (void)fputs("# EOF\n", file);
}
