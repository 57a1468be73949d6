/* Sections in the order in which a person asks: did it help, why not, what is in it, what may go.
 */
#include "page/cache_page.h"

#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "cli/out.h"
#include "page/plot.h"
#include "page/sums.h"

#define DAY_NS INT64_C(86400000000000)

enum { SHOWN = 1000, DAYS = 30, SIZES = 12, STALE_DAYS = 30 };

/* What later uses would have cost: they were answered by the entry. */
static uint64_t saved_by(const held_entry *entry)
{
    return entry->uses > 1 ? entry->compile_ns * (entry->uses - 1) : 0;
}

static void show_key(html_page *page, const held_entry *entry)
{
    char key[KILN_KEY_TEXT_SIZE];
    kiln_key_format(&entry->key, key);
    page_raw(page, "<td><code>%.16s</code></td>", key); /* hexadecimal digits */
}

/* --- programs --------------------------------------------------------------------------------- */

static void show_program(html_page *page, const held_entry *entry)
{
    const char *made = page_day(page, entry->created_ns);
    page_row(page);
    page_cell(page, entry->name);
    page_cell(page, entry->stage);
    page_cell(page, entry->target);
    page_number(page, (double)entry->compile_ns,
                entry->compile_ns > 0 ? out_time(page->pool, entry->compile_ns) : "not known");
    page_number(page, (double)entry->uses,
                entry->uses > 0 ? pool_format(page->pool, "%llu", (unsigned long long)entry->uses)
                                : "\u2013");
    page_number(page, (double)saved_by(entry),
                saved_by(entry) > 0 ? out_time(page->pool, saved_by(entry)) : "\u2013");
    page_number(page, (double)entry->stored_size, out_bytes(page->pool, entry->stored_size));
    page_number(page, (double)entry->created_ns, made);
    page_number(page, (double)entry->used_ns, page_day(page, entry->used_ns));
    show_key(page, entry);
}

static void show_programs(html_page *page, const holdings *held)
{
    static const page_column columns[] = {
        {"program", false},  {"stage", false}, {"target", false}, {"compile time", true},
        {"uses", true},      {"saved", true},  {"size", true},    {"made", true},
        {"last used", true}, {"key", false}};
    size_t programs = 0;
    page_section(page, "Programs, by what they cost",
                 "One row for each compiled result, the dearest first; a click on a heading sorts. "
                 "An entry keeps its source's digest and not its name: a program is shown by its "
                 "entry points or file where the recipe has them, and by its definitions. "
                 "<em>Uses</em> are starts of a program through kiln's runtime, as far as its "
                 "table of uses goes back; hits of other programs are in the totals above and in "
                 "no row. <em>Saved</em> is the compile time times the uses after the first, an "
                 "estimate. <code>kiln show KEY</code> prints everything about one.");
    for (size_t i = 0; i < held->count; i++) {
        programs += !held->entries[i].note;
    }
    if (programs == 0) {
        page_raw(page, "<p class=\"faint\">There are none.</p>\n");
        return;
    }
    page_table(page, columns, sizeof(columns) / sizeof(columns[0]));
    size_t shown = 0;
    for (size_t i = 0; i < held->count && shown < SHOWN; i++) {
        if (!held->entries[i].note) {
            show_program(page, &held->entries[i]);
            shown++;
        }
    }
    page_table_end(page);
    if (shown < programs) {
        page_raw(page,
                 "<p class=\"faint\">The %zu dearest of %zu are shown; <code>kiln ls</code> "
                 "lists all.</p>\n",
                 shown, programs);
    }
}

/* --- time ------------------------------------------------------------------------------------- */

static void show_days(html_page *page, const holdings *held, const char *about, bool by_use)
{
    double values[DAYS] = {0};
    const char *labels[DAYS] = {NULL};
    const int64_t now = host_wall();
    size_t older = 0;
    for (size_t i = 0; i < held->count; i++) {
        const held_entry *entry = &held->entries[i];
        const int64_t then = by_use ? entry->used_ns : entry->created_ns;
        const int64_t age = then < now ? (now - then) / DAY_NS : 0;
        if (!entry->note && age < DAYS) {
            values[DAYS - 1 - age] += 1;
        } else {
            older += !entry->note;
        }
    }
    for (int i = 0; i < DAYS; i++) {
        const char *day = page_day(page, now - (DAYS - 1 - i) * DAY_NS);
        labels[i] = pool_format(page->pool, "%.0f in the 24 hours to the end of %s", values[i],
                                day != NULL ? day : "?");
    }
    const plot_columns_spec spec = {
        .about = about,
        .values = values,
        .labels = labels,
        .count = DAYS,
        .left = pool_format(page->pool, "30 days ago (%zu are older)", older),
        .right = "now"};
    plot_columns(page, &spec);
}

static void show_history(html_page *page, const holdings *held)
{
    page_section(page, "Over time",
                 "When the results that are here now were compiled, and when they were last used. "
                 "A burst of compiles after a quiet time is often a new driver, compiler or "
                 "version of the program.");
    show_days(page, held, "Results by the day on which they were compiled", false);
    show_days(page, held, "Results by the day on which they were last used", true);
    page_raw(page, "<div class=\"note\"><p><strong>Not kept:</strong> a cache has totals since it "
                   "was made, and no history of its hits. For hit rates over time let a timer "
                   "append <code>kiln stats --openmetrics --timestamps</code> to a file, and make "
                   "this page with <code>kiln report --metrics FILE</code>.</p></div>\n");
}

/* --- targets and sizes ------------------------------------------------------------------------ */

typedef struct target_sum {
    const char *name;
    uint64_t entries, bytes, compile_ns;
} target_sum;

static int compare_targets(const void *left, const void *right)
{
    const held_entry *a = *(const held_entry *const *)left;
    const held_entry *b = *(const held_entry *const *)right;
    return strcmp(a->target, b->target);
}

static void show_target(html_page *page, const target_sum *sum)
{
    page_row(page);
    page_cell(page, sum->name);
    page_number(page, (double)sum->entries,
                pool_format(page->pool, "%llu", (unsigned long long)sum->entries));
    page_number(page, (double)sum->bytes, out_bytes(page->pool, sum->bytes));
    page_number(page, (double)sum->compile_ns, out_time(page->pool, sum->compile_ns));
}

static void show_targets(html_page *page, const holdings *held)
{
    static const page_column columns[] = {
        {"target", false}, {"entries", true}, {"size", true}, {"compile time", true}};
    const held_entry **sorted = pool_array(page->pool, held->count + 1, sizeof(*sorted));
    page_section(page, "Targets",
                 "What the results are for: a device with its driver, or <code>portable</code> for "
                 "what runs anywhere (SPIR-V, and kiln's own notes).");
    if (sorted == NULL || held->count == 0) {
        page->failed = page->failed || sorted == NULL;
        page_raw(page, "<p class=\"faint\">There are none.</p>\n");
        return;
    }
    for (size_t i = 0; i < held->count; i++) {
        sorted[i] = &held->entries[i];
    }
    qsort(sorted, held->count, sizeof(*sorted), compare_targets);
    page_table(page, columns, sizeof(columns) / sizeof(columns[0]));
    target_sum sum = {.name = sorted[0]->target};
    for (size_t i = 0; i < held->count; i++) {
        if (strcmp(sorted[i]->target, sum.name) != 0) {
            show_target(page, &sum);
            sum = (target_sum){.name = sorted[i]->target};
        }
        sum.entries++;
        sum.bytes += sorted[i]->stored_size;
        sum.compile_ns += sorted[i]->compile_ns;
    }
    show_target(page, &sum);
    page_table_end(page);
}

static void show_sizes(html_page *page, const holdings *held)
{
    double values[SIZES] = {0};
    const char *labels[SIZES] = {NULL};
    for (size_t i = 0; i < held->count; i++) {
        size_t class = 0;
        for (uint64_t most = 256; class + 1 < SIZES && held->entries[i].stored_size > most;
             most *= 4) {
            class ++;
        }
        values[class] += 1;
    }
    for (size_t i = 0; i < SIZES; i++) {
        labels[i] = pool_format(
            page->pool, "%.0f of %s %s", values[i], i + 1 < SIZES ? "at most" : "more than",
            out_bytes(page->pool, UINT64_C(256) << (2 * (i + 1 < SIZES ? i : i - 1))));
    }
    const plot_columns_spec spec = {.about = "Entries by size; each column is four times as large "
                                             "as the one before it",
                                    .values = values,
                                    .labels = labels,
                                    .count = SIZES,
                                    .left = "up to 256 B",
                                    .right = "over 256 MiB"};
    page_section(page, "Sizes",
                 "How large the files of the entries are, kiln's own notes included.");
    plot_columns(page, &spec);
}

/* --- what may go ------------------------------------------------------------------------------ */

static void show_gone(html_page *page, const holdings *held)
{
    static const page_column columns[] = {
        {"program", false}, {"target", false}, {"size", true}, {"why", false}, {"key", false}};
    size_t gone = 0;
    for (size_t i = 0; i < held->count; i++) {
        gone += held->entries[i].gone != NULL;
    }
    page_raw(page,
             "<h3>Made for a driver or device that is gone</h3>\n<p>%zu, by what the drivers "
             "of this machine say today. <code>kiln prune --unreachable</code> removes "
             "them.</p>\n",
             gone);
    if (gone > 0) {
        page_table(page, columns, sizeof(columns) / sizeof(columns[0]));
    }
    for (size_t i = 0; i < held->count; i++) {
        const held_entry *entry = &held->entries[i];
        if (entry->gone != NULL) {
            page_row(page);
            page_cell(page, entry->name);
            page_cell(page, entry->target);
            page_number(page, (double)entry->stored_size,
                        out_bytes(page->pool, entry->stored_size));
            page_cell(page, entry->gone);
            show_key(page, entry);
        }
    }
    if (gone > 0) {
        page_table_end(page);
    }
    for (size_t i = 0; i < held->left_alone_count; i++) {
        page_raw(page, "<p class=\"faint\">Not looked at: ");
        page_text(page, held->left_alone[i]);
        page_raw(page, "</p>\n");
    }
}

static void show_stale(html_page *page, const holdings *held)
{
    const int64_t bound = host_wall() - STALE_DAYS * DAY_NS;
    size_t old = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < held->count; i++) {
        const bool is_old = held->entries[i].used_ns < bound;
        old += is_old;
        bytes += is_old ? held->entries[i].stored_size : 0;
    }
    page_section(page, "What is stale",
                 "Nothing here can be used wrongly: a changed source, header, option, compiler or "
                 "driver has another key. Stale entries only take room.");
    page_raw(page, "<p>Not used for %d days: %zu of %zu entries, ", (int)STALE_DAYS, old,
             held->count);
    page_text(page, out_bytes(page->pool, bytes));
    page_raw(page, ". <code>kiln prune --max-age 30d</code> removes them.</p>\n");
    if (held->asked) {
        show_gone(page, held);
    } else {
        page_raw(page, "<p class=\"faint\">Which entries are for drivers and devices that are gone "
                       "was not asked: <code>kiln report --unreachable</code> asks the drivers of "
                       "this machine.</p>\n");
    }
    if (held->unreadable > 0) {
        page_raw(page,
                 "<p>%zu entries could not be read and are not on this page: <code>kiln "
                 "verify</code> says why.</p>\n",
                 held->unreadable);
    }
}

/* --- all of it -------------------------------------------------------------------------------- */

static void show_bypasses(html_page *page, const holdings *held)
{
    static const page_column columns[] = {
        {"reason", false}, {"compiles", true}, {"time", true}, {"the last one", false}};
    page_section(
        page, "What bypassed the cache",
        "Compiles whose result depends on more than a key can hold, such as the date. They "
        "are right, and paid every time.");
    if (held->bypasses.count == 0) {
        page_raw(page, "<p class=\"faint\">Nothing did.</p>\n");
        return;
    }
    page_table(page, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < held->bypasses.count; i++) {
        const kiln_bypass *one = &held->bypasses.items[i];
        page_row(page);
        page_cell(page, one->reason);
        page_number(page, (double)one->count,
                    pool_format(page->pool, "%llu", (unsigned long long)one->count));
        page_number(page, (double)one->time_ns,
                    one->time_ns > 0 ? out_time(page->pool, one->time_ns) : "not known");
        page_cell(page, one->what);
    }
    page_table_end(page);
}

void cache_page_write(html_page *page, const holdings *held)
{
    page_raw(page, "<p class=\"faint\">");
    page_text(page, held->root);
    page_raw(page,
             "</p>\n<p>kiln keeps what GPU compilers made, so that no program on this machine "
             "waits for the same compile twice. Programs ask for a compiled kernel by a key "
             "made of everything that its result depends on; what is found is not compiled "
             "again. These are the totals of all programs that used this cache directory "
             "since it was made.</p>\n");
    sums_cards(page, held->counters, held->count + held->unreadable, held->disk_bytes);
    sums_sections(page, held->counters);
    show_bypasses(page, held);
    show_history(page, held);
    show_programs(page, held);
    show_targets(page, held);
    show_sizes(page, held);
    show_stale(page, held);
}
