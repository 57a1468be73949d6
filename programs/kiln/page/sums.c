/* Every name is the counter's own text, so that the page and `kiln stats` say the same. */
#include "page/sums.h"

#include <string.h>

#include <kiln/cache.h>

#include "cli/out.h"
#include "page/plot.h"

enum { MOST_BARS = 16 };

uint64_t sums_hits(const uint64_t *counters)
{
    return counters[KILN_COUNTER_HITS_MEMORY] + counters[KILN_COUNTER_HITS_DISK] +
           counters[KILN_COUNTER_HITS_PACK] + counters[KILN_COUNTER_HITS_REMOTE] +
           counters[KILN_COUNTER_HITS_SHARED];
}

static const char *count_text(html_page *page, uint64_t count)
{
    return pool_format(page->pool, "%llu", (unsigned long long)count);
}

void sums_cards(html_page *page, const uint64_t *counters, uint64_t entries, uint64_t bytes)
{
    const uint64_t hits = sums_hits(counters);
    const uint64_t asked = hits + counters[KILN_COUNTER_MISSES];
    page_raw(page, "<ul class=\"cards\">\n");
    page_card(page, page_share(page, hits, asked), "hit rate: asked for, and found");
    page_card(page, out_time(page->pool, counters[KILN_COUNTER_SAVED_NS]),
              "compile time saved by hits");
    page_card(page, out_time(page->pool, counters[KILN_COUNTER_COMPILE_NS]),
              "time spent compiling");
    page_card(page, count_text(page, counters[KILN_COUNTER_COMPILES]), "compiles");
    page_card(page, count_text(page, entries), "entries stored now");
    page_card(page, out_bytes(page->pool, bytes), "on disk");
    page_raw(page, "</ul>\n");
}

static void add_count(plot_bar *bars, size_t *count, html_page *page, const uint64_t *counters,
                      kiln_counter counter, const char *colour)
{
    const char *name = kiln_counter_text(counter);
    name += strncmp(name, "misses ", 7) == 0 ? 7 : 0;
    if (counters[counter] > 0) {
        bars[(*count)++] = (plot_bar){name, (double)counters[counter],
                                      count_text(page, counters[counter]), colour};
    }
}

static void show_times(html_page *page, const uint64_t *counters)
{
    static const struct {
        kiln_counter counter;
        const char *colour;
    } rows[] = {{KILN_COUNTER_SAVED_NS, "good"},
                {KILN_COUNTER_COMPILE_NS, "bad"},
                {KILN_COUNTER_BYPASS_NS, "other"}};
    plot_bar bars[MOST_BARS];
    for (size_t i = 0; i < 3; i++) {
        const uint64_t ns = counters[rows[i].counter];
        bars[i] = (plot_bar){kiln_counter_text(rows[i].counter), (double)ns,
                             out_time(page->pool, ns), rows[i].colour};
    }
    page_section(page, "Where time went",
                 "A hit saves the time that the compile took when it was made. Compiles that "
                 "bypassed the cache are paid again by every process; below is why.");
    plot_bars(page, bars, 3);
}

static void show_answers(html_page *page, const uint64_t *counters)
{
    static const kiln_counter tiers[] = {KILN_COUNTER_HITS_MEMORY, KILN_COUNTER_HITS_DISK,
                                         KILN_COUNTER_HITS_PACK, KILN_COUNTER_HITS_REMOTE,
                                         KILN_COUNTER_HITS_SHARED};
    plot_bar bars[MOST_BARS];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
        add_count(bars, &count, page, counters, tiers[i], "good");
    }
    if (counters[KILN_COUNTER_MISSES] > 0) {
        bars[count++] = (plot_bar){"misses", (double)counters[KILN_COUNTER_MISSES],
                                   count_text(page, counters[KILN_COUNTER_MISSES]), "bad"};
    }
    page_section(page, "Where answers came from",
                 "Number of times that a program asked for a binary. A <em>hit</em> was found; a "
                 "<em>miss</em> had to be compiled.");
    if (count > 0) {
        plot_bars(page, bars, count);
    } else {
        page_raw(page, "<p class=\"faint\">Nothing has been asked for yet.</p>\n");
    }
}

static void show_misses(html_page *page, const uint64_t *counters)
{
    plot_bar bars[KILN_COUNTERS];
    size_t count = 0;
    for (uint32_t i = 0; i < KILN_COUNTERS; i++) {
        if (strncmp(kiln_counter_name(i), "misses_", 7) == 0) {
            add_count(bars, &count, page, counters, (kiln_counter)i, "bad");
        }
    }
    page_section(page, "Why something had to be compiled",
                 "Misses by reason. Some of <em>never seen before</em> are the price of a first "
                 "start; many of <em>evicted</em> mean that the cache is too small. "
                 "<code>kiln explain FILE</code> names the difference for one kernel.");
    if (count > 0) {
        plot_bars(page, bars, count);
    } else {
        page_raw(page, "<p class=\"faint\">There were no misses with a known reason.</p>\n");
    }
}

void sums_sections(html_page *page, const uint64_t *counters)
{
    show_times(page, counters);
    show_answers(page, counters);
    show_misses(page, counters);
}
