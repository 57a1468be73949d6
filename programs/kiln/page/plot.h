/* Plots as inline SVG. Shapes scale with the page, so their text is HTML next to them. */
#ifndef KILN_PROGRAM_PAGE_PLOT_H
#define KILN_PROGRAM_PAGE_PLOT_H

#include "page/page.h"

/* One bar a row: its name, how long it is, what is written at its end, its colour ("good", "bad",
 * "plain", "other"). */
typedef struct plot_bar {
    const char *name;
    double value;
    const char *text;
    const char *colour;
} plot_bar;
/* Bars that share a scale. */
void plot_bars(html_page *page, const plot_bar *bars, size_t count);

/* Columns from left to right, with what stands below the first and the last. `labels` are shown
 * when one points at a column. */
typedef struct plot_columns_spec {
    const char *about; /* for those who hear the page */
    const double *values;
    const char *const *labels;
    size_t count;
    const char *left, *right;
} plot_columns_spec;
void plot_columns(html_page *page, const plot_columns_spec *spec);

/* Lines of points (x, y), all of them within 0 to 1. */
typedef struct plot_line {
    const char *name;
    const double *x, *y;
    size_t count;
} plot_line;
typedef struct plot_lines_spec {
    const char *about;
    const plot_line *lines; /* at most PLOT_LINES */
    size_t count;
    const char *left, *right;
} plot_lines_spec;
#define PLOT_LINES 4
void plot_lines(html_page *page, const plot_lines_spec *spec);

#endif
