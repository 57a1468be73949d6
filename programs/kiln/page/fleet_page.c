/* Totals are those of each cache's last point; a rate over time is that of what was asked for
 * between two points. */
#include "page/fleet_page.h"

#include <math.h>
#include <string.h>

#include "cli/out.h"
#include "page/plot.h"
#include "page/sums.h"

static const metrics_point *last_point(const metrics_series *series)
{
    return &series->points[series->count - 1];
}

static const char *series_name(html_page *page, const metrics_set *set,
                               const metrics_series *series)
{
    size_t same = 0;
    for (size_t i = 0; i < set->count && same < 2; i++) {
        same += strcmp(set->series[i].file, series->file) == 0;
    }
    return same < 2 || series->labels[0] == '\0'
               ? series->file
               : pool_format(page->pool, "%s {%s}", series->file, series->labels);
}

/* --- machines --------------------------------------------------------------------------------- */

static void show_machine(html_page *page, const metrics_set *set, const metrics_series *series)
{
    const metrics_point *point = last_point(series);
    const uint64_t *counters = point->counters;
    const uint64_t hits = sums_hits(counters);
    const uint64_t asked = hits + counters[KILN_COUNTER_MISSES];
    static const kiln_counter counts[] = {KILN_COUNTER_MISSES, KILN_COUNTER_COMPILES};
    static const kiln_counter times[] = {KILN_COUNTER_SAVED_NS, KILN_COUNTER_COMPILE_NS,
                                         KILN_COUNTER_BYPASS_NS};
    page_row(page);
    page_cell(page, series_name(page, set, series));
    page_number(page, asked > 0 ? 1e6 * (double)hits / (double)asked : -1,
                page_share(page, hits, asked));
    for (size_t i = 0; i < 2; i++) {
        const uint64_t count = counters[counts[i]];
        page_number(page, (double)count,
                    pool_format(page->pool, "%llu", (unsigned long long)count));
    }
    for (size_t i = 0; i < 3; i++) {
        page_number(page, (double)counters[times[i]], out_time(page->pool, counters[times[i]]));
    }
    page_number(page, (double)point->entries,
                pool_format(page->pool, "%llu", (unsigned long long)point->entries));
    page_number(page, (double)point->bytes, out_bytes(page->pool, point->bytes));
    const uint64_t errors = counters[KILN_COUNTER_IO_ERRORS] + counters[KILN_COUNTER_CORRUPT] +
                            counters[KILN_COUNTER_PUT_FAILURES] +
                            counters[KILN_COUNTER_REMOTE_ERRORS];
    page_number(page, (double)errors, pool_format(page->pool, "%llu", (unsigned long long)errors));
}

static void show_machines(html_page *page, const metrics_set *set)
{
    static const page_column columns[] = {
        {"machine", false}, {"hit rate", true},  {"misses", true},    {"compiles", true},
        {"saved", true},    {"compiling", true}, {"bypassing", true}, {"entries", true},
        {"size", true},     {"errors", true}};
    page_section(page, "Machines",
                 "One row for each file, or for each cache of a file. <em>Saved</em> is compile "
                 "time that hits made unnecessary, <em>bypassing</em> the time of compiles that no "
                 "cache can answer. A machine with a low hit rate next to others with a high one "
                 "often has another driver, or a cache of its own that starts empty.");
    page_table(page, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < set->count; i++) {
        show_machine(page, set, &set->series[i]);
    }
    page_table_end(page);
}

/* --- time ------------------------------------------------------------------------------------- */

/* The rates between neighbours that have times, a step each; those between which nothing was asked
 * for, or the counters began again, are left out. */
static size_t rate_points(html_page *page, const metrics_series *series, double begin, double end,
                          plot_line *out_line)
{
    double *x = pool_array(page->pool, series->count, 2 * sizeof(*x));
    double *y = pool_array(page->pool, series->count, 2 * sizeof(*y));
    const double span = end > begin ? end - begin : 1;
    size_t count = 0;
    for (size_t i = 1; x != NULL && y != NULL && i < series->count; i++) {
        const metrics_point *from = &series->points[i - 1];
        const metrics_point *to = &series->points[i];
        const uint64_t hits = sums_hits(to->counters) - sums_hits(from->counters);
        const uint64_t misses =
            to->counters[KILN_COUNTER_MISSES] - from->counters[KILN_COUNTER_MISSES];
        const bool again = sums_hits(to->counters) < sums_hits(from->counters) ||
                           to->counters[KILN_COUNTER_MISSES] < from->counters[KILN_COUNTER_MISSES];
        if (!isnan(from->time) && !again && hits + misses > 0) {
            x[count] = (from->time - begin) / span;
            x[count + 1] = (to->time - begin) / span;
            y[count] = (double)hits / (double)(hits + misses);
            y[count + 1] = y[count];
            count += 2;
        }
    }
    page->failed = page->failed || x == NULL || y == NULL;
    *out_line = (plot_line){NULL, x, y, count};
    return count;
}

static void find_times(const metrics_set *set, double *begin, double *end)
{
    *begin = INFINITY;
    *end = -INFINITY;
    for (size_t i = 0; i < set->count; i++) {
        for (size_t j = 0; j < set->series[i].count; j++) {
            const double time = set->series[i].points[j].time;
            *begin = !isnan(time) && time < *begin ? time : *begin;
            *end = !isnan(time) && time > *end ? time : *end;
        }
    }
}

static void show_rates(html_page *page, const metrics_set *set)
{
    plot_line lines[PLOT_LINES];
    size_t count = 0, more = 0;
    double begin, end;
    find_times(set, &begin, &end);
    page_section(page, "Hit rates over time",
                 "The rate of what was asked for between one sample and the next. The bottom of "
                 "the plot is 0&nbsp;%, its top 100&nbsp;%.");
    for (size_t i = 0; i < set->count; i++) {
        plot_line line;
        if (rate_points(page, &set->series[i], begin, end, &line) == 0) {
            continue;
        }
        if (count == PLOT_LINES) {
            more++;
            continue;
        }
        lines[count] = line;
        lines[count++].name = series_name(page, set, &set->series[i]);
    }
    if (count == 0) {
        page_raw(page,
                 "<div class=\"note\"><p><strong>Not in these files:</strong> a rate over time "
                 "needs two samples of a cache with their times. Let a timer append <code>kiln "
                 "stats --openmetrics --timestamps</code> to a file.</p></div>\n");
        return;
    }
    const plot_lines_spec spec = {.about = "Hit rate of each machine, 0 % to 100 %",
                                  .lines = lines,
                                  .count = count,
                                  .left = page_time(page, (int64_t)(begin * 1e9)),
                                  .right = page_time(page, (int64_t)(end * 1e9))};
    plot_lines(page, &spec);
    if (more > 0) {
        page_raw(page,
                 "<p class=\"faint\">Of %zu machines with times the first %d are drawn.</p>\n",
                 count + more, PLOT_LINES);
    }
}

void fleet_page_write(html_page *page, const metrics_set *set)
{
    uint64_t sum[KILN_COUNTERS] = {0};
    uint64_t entries = 0, bytes = 0;
    for (size_t i = 0; i < set->count; i++) {
        const metrics_point *point = last_point(&set->series[i]);
        for (size_t j = 0; j < KILN_COUNTERS; j++) {
            sum[j] += point->counters[j];
        }
        entries += point->entries;
        bytes += point->bytes;
    }
    page_raw(page,
             "<p>kiln keeps what GPU compilers made, so that no program waits for the same "
             "compile twice. These are the totals of %zu %s, each since it was made, from "
             "their metrics.</p>\n",
             set->count, set->count == 1 ? "cache" : "caches");
    sums_cards(page, sum, entries, bytes);
    show_rates(page, set);
    show_machines(page, set);
    sums_sections(page, sum);
    page_raw(page,
             "<div class=\"note\"><p><strong>Not in metrics:</strong> single programs, targets "
             "and what is stale. <code>kiln report --html FILE</code> on a machine shows "
             "them.</p></div>\n");
}
