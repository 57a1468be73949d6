/* Programs in the order in which they matter after a driver has changed. A use is stale where the
 * same program has gone through another compiler since, for the same target: its key is an earlier
 * compiler's. */
#include "page/recording_page.h"

#include <stdlib.h>
#include <string.h>

#include "cli/out.h"

enum { SHOWN = 1000 };

typedef struct recorded_row {
    const kiln_recorded_use *use;
    bool is_stale, is_there;
} recorded_row;

typedef struct recorded_rows {
    recorded_row *items;
    size_t count, stale, there;
    size_t programs;
    uint64_t source_bytes;
} recorded_rows;

/* --- what there is ---------------------------------------------------------------------------- */

static int compare_identity(const recorded_row *a, const recorded_row *b)
{
    return a->use->program != b->use->program ? (a->use->program < b->use->program ? -1 : 1)
                                              : strcmp(a->use->target, b->use->target);
}

/* Uses of one program for one target together, the last one first. */
static int compare_recorded(const void *left, const void *right)
{
    const recorded_row *a = left;
    const recorded_row *b = right;
    const int identity = compare_identity(a, b);
    if (identity != 0) {
        return identity;
    }
    return a->use->last_ns != b->use->last_ns
               ? (a->use->last_ns > b->use->last_ns ? -1 : 1)
               : memcmp(&a->use->key, &b->use->key, sizeof(kiln_key));
}

/* Used on most days first, then last. */
static int compare_days(const void *left, const void *right)
{
    const recorded_row *a = left;
    const recorded_row *b = right;
    if (a->use->days != b->use->days) {
        return a->use->days > b->use->days ? -1 : 1;
    }
    return a->use->last_ns != b->use->last_ns
               ? (a->use->last_ns > b->use->last_ns ? -1 : 1)
               : memcmp(&a->use->key, &b->use->key, sizeof(kiln_key));
}

static bool read_rows(html_page *page, const kiln_recording *recording, kiln_cache *cache,
                      recorded_rows *out)
{
    const size_t count = kiln_recording_count(recording);
    *out = (recorded_rows){.items = pool_array(page->pool, count + 1, sizeof(recorded_row))};
    if (out->items == NULL) {
        page->failed = true;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        recorded_row *row = &out->items[out->count++];
        row->use = kiln_recording_use(recording, i);
        kiln_cache_contains(cache, &row->use->key, 1, &row->is_there);
    }
    if (count > 1) {
        qsort(out->items, count, sizeof(recorded_row), compare_recorded);
    }
    for (size_t i = 0; i < count; i++) {
        recorded_row *row = &out->items[i];
        const recorded_row *before = i > 0 ? &out->items[i - 1] : NULL;
        const bool new_program = before == NULL || before->use->program != row->use->program;
        row->is_stale = before != NULL && compare_identity(before, row) == 0;
        out->programs += new_program;
        out->source_bytes += new_program ? row->use->source_bytes : 0;
        out->stale += row->is_stale;
        out->there += row->is_there;
    }
    if (count > 1) {
        qsort(out->items, count, sizeof(recorded_row), compare_days);
    }
    return true;
}

/* --- the page --------------------------------------------------------------------------------- */

static void show_count(html_page *page, uint64_t count, const char *name)
{
    page_card(page, pool_format(page->pool, "%llu", (unsigned long long)count), name);
}

static void show_row(html_page *page, const recorded_row *row)
{
    const kiln_recorded_use *use = row->use;
    page_row(page);
    page_cell(page, use->name[0] != '\0' ? use->name : "(no name)");
    page_cell(page, kiln_language_name(use->language));
    page_cell(page, use->target);
    page_cell(page, row->is_stale   ? "stale"
                    : row->is_there ? "in this cache"
                                    : "not in this cache");
    page_number(page, (double)use->source_bytes, out_bytes(page->pool, use->source_bytes));
    page_number(page, (double)use->compile_ns,
                use->compile_ns > 0 ? out_time(page->pool, use->compile_ns) : "not known");
    page_number(page, (double)use->days, pool_format(page->pool, "%u", (unsigned)use->days));
    page_number(page, (double)use->last_ns, page_day(page, use->last_ns));
    page_cell(page, use->door);
}

static void show_rows(html_page *page, const recorded_rows *rows)
{
    static const page_column columns[] = {
        {"program", false}, {"language", false}, {"target", false},
        {"state", false},   {"source", true},    {"compile time", true},
        {"days", true},     {"last used", true}, {"recorded from", false}};
    page_section(
        page, "Programs, by the days on which they were used",
        "One row for each program and target; a click on a heading sorts. <em>Source</em> is "
        "its text with all headers that it reaches. <em>In this cache</em>: the next start "
        "hits. <em>Not in this cache</em>: <code>kiln warm RECORDING</code> compiles it. "
        "<em>Stale</em>: another compiler or driver has compiled it for the same target "
        "since, under another key.");
    page_table(page, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < rows->count && i < SHOWN; i++) {
        show_row(page, &rows->items[i]);
    }
    page_table_end(page);
    if (rows->count > SHOWN) {
        page_raw(page, "<p class=\"faint\">Of %zu rows the first %d are shown.</p>\n", rows->count,
                 SHOWN);
    }
}

/* Sums of one language and target. */
typedef struct recorded_group {
    const char *language, *target;
    uint64_t programs, stale, compile_ns;
} recorded_group;

static void show_groups(html_page *page, const recorded_rows *rows)
{
    static const page_column columns[] = {{"language", false},
                                          {"target", false},
                                          {"programs", true},
                                          {"stale", true},
                                          {"compile time", true}};
    recorded_group *groups = pool_array(page->pool, rows->count + 1, sizeof(*groups));
    size_t count = 0;
    page->failed = page->failed || groups == NULL;
    for (size_t i = 0; groups != NULL && i < rows->count; i++) {
        const kiln_recorded_use *use = rows->items[i].use;
        const char *language = kiln_language_name(use->language);
        size_t at = 0;
        while (at < count && (strcmp(groups[at].language, language) != 0 ||
                              strcmp(groups[at].target, use->target) != 0)) {
            at++;
        }
        if (at == count) {
            groups[count++] = (recorded_group){.language = language, .target = use->target};
        }
        groups[at].programs += !rows->items[i].is_stale;
        groups[at].stale += rows->items[i].is_stale;
        groups[at].compile_ns += rows->items[i].is_stale ? 0 : use->compile_ns;
    }
    page_section(
        page, "Languages and targets",
        "What <code>kiln warm RECORDING</code> compiles without <code>--target</code>, and "
        "what that took when it was recorded.");
    page_table(page, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        const recorded_group *group = &groups[i];
        page_row(page);
        page_cell(page, group->language);
        page_cell(page, group->target);
        page_number(page, (double)group->programs,
                    pool_format(page->pool, "%llu", (unsigned long long)group->programs));
        page_number(page, (double)group->stale,
                    pool_format(page->pool, "%llu", (unsigned long long)group->stale));
        page_number(page, (double)group->compile_ns, out_time(page->pool, group->compile_ns));
    }
    page_table_end(page);
}

static void show_damage(html_page *page, const kiln_recording *recording)
{
    const char *what = "";
    const size_t damaged = kiln_recording_damage(recording, &what);
    if (damaged > 0) {
        page_raw(page, "<div class=\"note\"><p><strong>%zu damaged:</strong> ", damaged);
        page_text(page, what);
        page_raw(page, ". The rest is whole.</p></div>\n");
    }
}

void recording_page_write(html_page *page, const char *path, const kiln_recording *recording,
                          kiln_cache *cache)
{
    recorded_rows rows;
    if (!read_rows(page, recording, cache, &rows)) {
        return;
    }
    page_raw(page, "<p>What programs asked kiln to compile, with their sources, in <code>");
    page_text(page, path);
    page_raw(page, "</code>: enough to compile it again, for these targets and others, without the "
                   "programs.</p>\n<ul class=\"cards\">\n");
    show_count(page, rows.programs, "programs");
    show_count(page, rows.count - rows.stale, "programs and targets");
    show_count(page, rows.there, "in this cache");
    show_count(page, rows.stale, "stale");
    page_card(page, out_bytes(page->pool, rows.source_bytes),
              "of sources, those shared counted for each");
    page_raw(page, "</ul>\n");
    show_damage(page, recording);
    show_groups(page, &rows);
    show_rows(page, &rows);
    page_raw(page,
             "<div class=\"note\"><p><strong>Not in a recording:</strong> how often a program "
             "was used on a day, and what was compiled by it. <code>kiln report --html "
             "FILE</code> alone shows the cache.</p></div>\n");
}
