/* The page as a stream in memory: it reaches its file whole or not at all. */
#include "page/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kiln/version.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "cli/out.h"

/* --- text ------------------------------------------------------------------------------------- */

void page_raw(html_page *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(page->file, format, args);
    va_end(args);
}

void page_text(html_page *page, const char *text)
{
    const char *clean = text != NULL ? out_clean(page->pool, text) : NULL;
    page->failed = page->failed || clean == NULL;
    for (; clean != NULL && *clean != '\0'; clean++) {
        switch (*clean) {
        case '<':
            (void)fputs("&lt;", page->file);
            break;
        case '>':
            (void)fputs("&gt;", page->file);
            break;
        case '&':
            (void)fputs("&amp;", page->file);
            break;
        case '"':
            (void)fputs("&quot;", page->file);
            break;
        case '\'':
            (void)fputs("&#39;", page->file);
            break;
        default:
            (void)fputc(*clean, page->file);
        }
    }
}

/* --- the frame -------------------------------------------------------------------------------- */

kiln_status page_open(html_page *page, cli_pool *pool, const char *title, kiln_diag *diag)
{
    *page = (html_page){.pool = pool};
    page->file = host_text_open(&page->text, &page->size);
    if (page->file == NULL) {
        return diag_no_memory(diag, "making a page");
    }
    page_raw(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>");
    page_text(page, title);
    page_raw(page, "</title>\n<style>\n");
    (void)fputs(page_css, page->file);
    page_raw(page, "</style>\n</head>\n<body>\n<main>\n<h1>");
    page_text(page, title);
    page_raw(page, "</h1>\n");
    return KILN_OK;
}

kiln_status page_finish(html_page *page, const char *path, kiln_diag *diag)
{
    page_raw(page, "<p class=\"faint\">Made by kiln ");
    page_text(page, kiln_version());
    page_raw(page, " on ");
    page_text(page, page_time(page, host_wall()));
    page_raw(page, ". Nothing on this page is loaded from elsewhere.</p>\n</main>\n<script>\n");
    (void)fputs(page_js, page->file);
    page_raw(page, "</script>\n</body>\n</html>\n");
    const bool written = host_text_finish(page->file, &page->text, &page->size);
    kiln_status status = written && !page->failed ? KILN_OK : diag_no_memory(diag, "making a page");
    if (status == KILN_OK) {
        status = host_write_file(path, page->text, page->size, diag);
    }
    page_drop(page);
    return status;
}

void page_drop(html_page *page)
{
    if (page->file != NULL) {
        (void)fclose(page->file);
    }
    free(page->text);
    *page = (html_page){NULL, NULL, false, NULL, 0};
}

/* --- parts ------------------------------------------------------------------------------------ */

void page_section(html_page *page, const char *heading, const char *paragraph)
{
    page_raw(page, "<h2>%s</h2>\n<p>%s</p>\n", heading, paragraph);
}

void page_card(html_page *page, const char *value, const char *name)
{
    page_raw(page, "<li><b>");
    page_text(page, value);
    page_raw(page, "</b><span>");
    page_text(page, name);
    page_raw(page, "</span></li>\n");
}

void page_table(html_page *page, const page_column *columns, size_t count)
{
    page_raw(page, "<div class=\"wide\"><table>\n<thead><tr>");
    for (size_t i = 0; i < count; i++) {
        page_raw(page, "<th scope=\"col\"%s>%s</th>", columns[i].number ? " class=\"n\"" : "",
                 columns[i].title);
    }
    page_raw(page, "</tr></thead>\n<tbody>");
}

void page_table_end(html_page *page)
{
    page_raw(page, "\n</tbody></table></div>\n");
}

void page_row(html_page *page)
{
    page_raw(page, "\n<tr>"); /* its end is implied by the next one's beginning */
}

void page_cell(html_page *page, const char *text)
{
    page_raw(page, "<td class=\"text\">");
    page_text(page, text);
    page_raw(page, "</td>");
}

void page_number(html_page *page, double value, const char *text)
{
    page_raw(page, "<td class=\"n\" data-v=\"%.0f\">", value);
    page_text(page, text);
    page_raw(page, "</td>");
}

/* --- units ------------------------------------------------------------------------------------ */

static const char *format_time(html_page *page, int64_t ns, const char *format)
{
    char text[64] = "";
    struct tm parts;
    const time_t seconds = (time_t)(ns / 1000000000);
    if (ns > 0 && gmtime_r(&seconds, &parts) != NULL) {
        (void)strftime(text, sizeof(text), format, &parts);
    }
    return pool_text(page->pool, text, strlen(text));
}

const char *page_time(html_page *page, int64_t ns)
{
    return format_time(page, ns, "%Y-%m-%d %H:%M UTC");
}

const char *page_day(html_page *page, int64_t ns)
{
    return format_time(page, ns, "%Y-%m-%d");
}

const char *page_share(html_page *page, uint64_t part, uint64_t whole)
{
    return whole == 0 ? "nothing yet"
                      : pool_format(page->pool, "%.1f %%", 100.0 * (double)part / (double)whole);
}
