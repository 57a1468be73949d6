/* Rectangles and lines; colours are classes of page.css. */
#include "page/plot.h"

void plot_bars(html_page *page, const plot_bar *bars, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        most = bars[i].value > most ? bars[i].value : most;
    }
    page_raw(page, "<div class=\"bars\">\n");
    for (size_t i = 0; i < count; i++) {
        const double share = most > 0 ? 100 * bars[i].value / most : 0;
        page_raw(page, "<div class=\"name\">");
        page_text(page, bars[i].name);
        page_raw(page, "</div><div class=\"value\">");
        page_text(page, bars[i].text);
        page_raw(page,
                 "</div><svg aria-hidden=\"true\"><rect class=\"%s\" width=\"%.2f%%\" "
                 "height=\"100%%\"/></svg>\n",
                 bars[i].colour, share);
    }
    page_raw(page, "</div>\n");
}

static void begin_figure(html_page *page, const char *about, const char *box)
{
    page_raw(page, "<figure><svg role=\"img\" aria-label=\"");
    page_text(page, about);
    page_raw(page, "\" viewBox=\"%s\" preserveAspectRatio=\"none\">\n", box);
}

static void end_figure(html_page *page, const char *left, const char *right, const char *about)
{
    page_raw(page, "</svg>\n<div class=\"axis\"><span>");
    page_text(page, left);
    page_raw(page, "</span><span>");
    page_text(page, right);
    page_raw(page, "</span></div><figcaption>");
    page_text(page, about);
    page_raw(page, "</figcaption></figure>\n");
}

void plot_columns(html_page *page, const plot_columns_spec *spec)
{
    double most = 0;
    for (size_t i = 0; i < spec->count; i++) {
        most = spec->values[i] > most ? spec->values[i] : most;
    }
    begin_figure(page, spec->about, "0 0 1000 100");
    const double step = 1000 / (double)(spec->count > 0 ? spec->count : 1);
    for (size_t i = 0; i < spec->count; i++) {
        const double height = most > 0 ? 95 * spec->values[i] / most : 0;
        page_raw(
            page,
            "<rect class=\"plain\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>",
            (double)i * step + step * 0.08, 100 - height, step * 0.84, height);
        page_text(page, spec->labels[i]);
        page_raw(page, "</title></rect>\n");
    }
    end_figure(page, spec->left, spec->right,
               pool_format(page->pool, "%s. Highest column: %.0f", spec->about, most));
}

void plot_lines(html_page *page, const plot_lines_spec *spec)
{
    begin_figure(page, spec->about, "0 0 1000 100");
    for (size_t i = 0; i < spec->count; i++) {
        const plot_line *line = &spec->lines[i];
        page_raw(page, "<polyline class=\"l%zu\" points=\"", i % PLOT_LINES);
        for (size_t j = 0; j < line->count; j++) {
            page_raw(page, "%.2f,%.2f ", 1000 * line->x[j], 98 - 96 * line->y[j]);
        }
        page_raw(page, "\"/>\n");
    }
    end_figure(page, spec->left, spec->right, spec->about);
    page_raw(page, "<ul class=\"legend\">");
    for (size_t i = 0; i < spec->count; i++) {
        page_raw(page,
                 "<li><svg viewBox=\"0 0 22 10\" aria-hidden=\"true\"><path class=\"l%zu\" "
                 "d=\"M0 5H22\"/></svg> ",
                 i % PLOT_LINES);
        page_text(page, spec->lines[i].name);
        page_raw(page, "</li>");
    }
    page_raw(page, "</ul>\n");
}
