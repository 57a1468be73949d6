/* One HTML page that needs nothing but itself: how it begins and ends, its tables, and text that is
 * escaped on its way into it. What comes from entries, files and drivers goes through page_text
 * alone; markup is written by page_raw, whose format is ours and whose arguments are numbers or
 * ours as well. */
#ifndef KILN_PROGRAM_PAGE_H
#define KILN_PROGRAM_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <kiln/status.h>

#include "cli/pool.h"

/* page.css and page.js, as the build embeds them. */
extern const char page_css[];
extern const char page_js[];

typedef struct html_page {
    FILE *file; /* in memory */
    cli_pool *pool;
    bool failed; /* out of memory somewhere */
    char *text;
    size_t size;
} html_page;

/* Opens a page in memory; finish writes it to `path` and frees it, drop only frees it.
 * KILN_E_NOMEM, KILN_E_IO. */
kiln_status page_open(html_page *page, cli_pool *pool, const char *title, kiln_diag *diag);
kiln_status page_finish(html_page *page, const char *path, kiln_diag *diag);
void page_drop(html_page *page);

void page_raw(html_page *page, const char *format, ...) KILN_PRINTF(2, 3);
/* Text, escaped, for elements and for attributes in double quotes; NULL: memory has run out. */
void page_text(html_page *page, const char *text);

/* A heading with its paragraph: both are ours, the second may hold markup. */
void page_section(html_page *page, const char *heading, const char *paragraph);

/* A figure on top: what it is, what it says. */
void page_card(html_page *page, const char *value, const char *name);

typedef struct page_column {
    const char *title;
    bool number;
} page_column;

void page_table(html_page *page, const page_column *columns, size_t count);
void page_table_end(html_page *page);
void page_row(html_page *page);
/* A cell of text, and one of a number: what is read, and what is sorted by. */
void page_cell(html_page *page, const char *text);
void page_number(html_page *page, double value, const char *text);

/* "2026-11-23 04:30 UTC" and its first part; "" for 0. */
const char *page_time(html_page *page, int64_t ns);
const char *page_day(html_page *page, int64_t ns);
/* "93.1 %"; "nothing yet" for a part of nothing. */
const char *page_share(html_page *page, uint64_t part, uint64_t whole);

#endif
