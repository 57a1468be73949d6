/* Tables, units, JSON. Knows nothing of any command. */
#include "cli/out.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "cli/opt.h"

/* --- color ------------------------------------------------------------------------------------ */

static enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color = COLOR_AUTO;

bool out_color_choose(const char *when)
{
    if (strcmp(when, "always") == 0) {
        color = COLOR_ALWAYS;
    } else if (strcmp(when, "never") == 0) {
        color = COLOR_NEVER;
    } else if (strcmp(when, "auto") == 0) {
        color = COLOR_AUTO;
    } else {
        return false;
    }
    return true;
}

static bool is_colored(FILE *file)
{
    const char *unwanted = getenv("NO_COLOR");
    return color == COLOR_ALWAYS ||
           (color == COLOR_AUTO && (unwanted == NULL || *unwanted == '\0') && host_can_draw(file));
}

void out_paint(FILE *file, out_style style)
{
    static const char *const codes[] = {"0", "1", "32", "1;31", "33"};
    if (is_colored(file)) {
        (void)fprintf(file, "\033[%sm", codes[style]);
    }
}

/* --- tables ----------------------------------------------------------------------------------- */

struct out_row {
    struct out_row *next;
    const char *cells[];
};

out_table out_table_make(cli_pool *pool, const char *titles)
{
    char *at = pool_text(pool, titles, strlen(titles));
    out_table table = {.pool = pool, .failed = at == NULL};
    while (at != NULL && table.column_count < OUT_COLUMNS_MAX) {
        const bool right = *at == '>';
        char *end = strchr(at, '|');
        if (end != NULL) {
            *end++ = '\0';
        }
        table.columns[table.column_count++] = (out_column){at + right, right};
        at = end;
    }
    return table;
}

void out_table_add(out_table *table, const char *const *cells)
{
    size_t count = table->column_count;
    struct out_row *row =
        pool_alloc(table->pool, sizeof(struct out_row) + count * sizeof(const char *));
    for (size_t i = 0; i < count && row != NULL; i++) {
        row->cells[i] = cells[i] != NULL ? out_clean(table->pool, cells[i]) : NULL;
        table->failed = table->failed || row->cells[i] == NULL;
    }
    if (row == NULL) {
        table->failed = true;
        return;
    }
    if (table->last != NULL) {
        table->last->next = row;
    } else {
        table->first = row;
    }
    table->last = row;
}

/* Columns on the screen: code points. Wide and combining characters are not distinguished. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0u) != 0x80u;
    }
    return width;
}

/* Bytes of the first `width` code points. */
static size_t bytes_of(const char *text, size_t width)
{
    size_t bytes = 0;
    while (text[bytes] != '\0' && (width > 0 || ((unsigned char)text[bytes] & 0xC0u) == 0x80u)) {
        width -= ((unsigned char)text[bytes] & 0xC0u) != 0x80u;
        bytes++;
    }
    return bytes;
}

static void print_cell(FILE *file, const char *text, size_t width, bool right, bool last)
{
    size_t own = width_of(text);
    int gap = own < width ? (int)(width - own) : 0;
    if (own > width) {
        (void)fprintf(file, "%.*s..", (int)bytes_of(text, width - 2), text);
    } else if (right) {
        (void)fprintf(file, "%*s%s", gap, "", text);
    } else {
        (void)fprintf(file, "%s%*s", text, last ? 0 : gap, "");
    }
    (void)fputs(last ? "\n" : "  ", file);
}

/* Makes the widest texts narrower until the row fits. False: it never will. */
static bool fit_widths(const out_table *table, size_t *widths, size_t limit)
{
    enum { NARROWEST = 16, GAP = 2 };
    size_t total = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        total += widths[i] + (i > 0 ? GAP : 0);
    }
    while (total > limit) {
        size_t *widest = NULL;
        for (size_t i = 0; i < table->column_count; i++) {
            const bool cut = !table->columns[i].right && widths[i] > NARROWEST;
            widest = cut && (widest == NULL || widths[i] > *widest) ? &widths[i] : widest;
        }
        if (widest == NULL) {
            return false;
        }
        --*widest;
        total--;
    }
    return true;
}

/* A row a paragraph: its first cell, and below it the others with their titles. */
static void print_paragraphs(const out_table *table, FILE *file)
{
    size_t width = 0;
    for (size_t i = 1; i < table->column_count; i++) {
        const size_t own = width_of(table->columns[i].title);
        width = own > width ? own : width;
    }
    for (const struct out_row *row = table->first; row != NULL; row = row->next) {
        out_paint(file, OUT_BOLD);
        (void)fprintf(file, "%s", row->cells[0]);
        out_paint(file, OUT_PLAIN);
        (void)fputc('\n', file);
        for (size_t i = 1; i < table->column_count; i++) {
            if (row->cells[i][0] != '\0') {
                (void)fprintf(file, "  ");
                print_cell(file, table->columns[i].title, width, false, false);
                (void)fprintf(file, "%s\n", row->cells[i]);
            }
        }
    }
}

static size_t width_limit(FILE *file)
{
    const char *columns = getenv("COLUMNS");
    uint64_t count = 0;
    if (columns != NULL && opt_parse_count(columns, &count) && count > 0 && count < 10000) {
        return (size_t)count;
    }
    return host_is_terminal(file) ? host_columns() : SIZE_MAX;
}

bool out_table_print(const out_table *table, FILE *file)
{
    size_t count = table->column_count;
    size_t *widths = pool_array(table->pool, count, sizeof(*widths));
    if (table->failed || widths == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        widths[i] = width_of(table->columns[i].title);
        for (const struct out_row *row = table->first; row != NULL; row = row->next) {
            size_t width = width_of(row->cells[i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    if (!fit_widths(table, widths, width_limit(file))) {
        print_paragraphs(table, file);
        return true;
    }
    out_paint(file, OUT_BOLD);
    for (size_t i = 0; i < count; i++) {
        print_cell(file, table->columns[i].title, widths[i], table->columns[i].right,
                   i + 1 == count);
    }
    out_paint(file, OUT_PLAIN);
    for (const struct out_row *row = table->first; row != NULL; row = row->next) {
        for (size_t i = 0; i < count; i++) {
            print_cell(file, row->cells[i], widths[i], table->columns[i].right, i + 1 == count);
        }
    }
    return true;
}

void out_pair(FILE *file, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(file, "%-20s", name);
    out_vprint(file, format, args);
    (void)fputc('\n', file);
    va_end(args);
}

char *out_bytes(cli_pool *pool, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95 && unit < 4) {
        value /= 1024;
        unit++;
    }
    return pool_format(pool, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

char *out_ms(cli_pool *pool, uint64_t ns)
{
    return pool_format(pool, "%.3f", (double)ns / 1e6);
}

char *out_time(cli_pool *pool, uint64_t ns)
{
    if (ns == 0) {
        return pool_text(pool, "0 s", 3);
    }
    if (ns < 1000000u) {
        return pool_format(pool, "%.1f us", (double)ns / 1e3);
    }
    if (ns < 1000000000u) {
        return pool_format(pool, "%.1f ms", (double)ns / 1e6);
    }
    if (ns < 120000000000u) {
        return pool_format(pool, "%.1f s", (double)ns / 1e9);
    }
    if (ns < 7200000000000u) {
        return pool_format(pool, "%.1f min", (double)ns / 60e9);
    }
    return pool_format(pool, "%.1f h", (double)ns / 3600e9);
}

char *out_ago(cli_pool *pool, int64_t then_ns)
{
    if (then_ns <= 0) {
        return pool_text(pool, "never", 5);
    }
    int64_t seconds = (host_wall() - then_ns) / 1000000000;
    if (seconds < 60) {
        return pool_text(pool, "just now", 8); /* clocks ahead of ours too */
    }
    if (seconds < 3600) {
        return pool_format(pool, "%" PRId64 " min ago", seconds / 60);
    }
    if (seconds < 48 * 3600) {
        return pool_format(pool, "%" PRId64 " h ago", seconds / 3600);
    }
    return pool_format(pool, "%" PRId64 " days ago", seconds / 86400);
}

/* Length of the UTF-8 sequence at `text`, 0 if there is none. Over-long forms, surrogates and
 * values past U+10FFFF are refused, as jansson does. */
static size_t utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80 ? 1 : 0;
    uint32_t value = text[0];
    uint32_t least = 0;
    if (text[0] >= 0xC2 && text[0] <= 0xDF) {
        length = 2;
        value = text[0] & 0x1Fu;
        least = 0x80;
    } else if (text[0] >= 0xE0 && text[0] <= 0xEF) {
        length = 3;
        value = text[0] & 0x0Fu;
        least = 0x800;
    } else if (text[0] >= 0xF0 && text[0] <= 0xF4) {
        length = 4;
        value = text[0] & 0x07u;
        least = 0x10000;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0u) != 0x80u) {
            return 0;
        }
        value = value << 6 | (text[i] & 0x3Fu);
    }
    bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    return value < least || surrogate || value > 0x10FFFF ? 0 : length;
}

/* Copies one character, or what stands for it where a terminal would not print it: control
 * characters (also those of two bytes, U+0080 to U+009F) and what is not UTF-8. Returns the bytes
 * read; `to` has room for as many. */
static size_t copy_clean(char *to, const char *text, bool lines, size_t *used)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const size_t length = utf8_length(bytes);
    const bool layout = lines && (*text == '\n' || *text == '\t');
    const bool control = (length == 1 && (bytes[0] < 0x20 || bytes[0] == 0x7F) && !layout) ||
                         (length == 2 && bytes[0] == 0xC2 && bytes[1] < 0xA0);
    if (length == 0 || control) {
        to[(*used)++] = length == 0 ? '?' : ' ';
        return length == 0 ? 1 : length;
    }
    memcpy(to + *used, text, length);
    *used += length;
    return length;
}

char *out_clean(cli_pool *pool, const char *text)
{
    char *copy = pool_alloc(pool, strlen(text) + 1);
    size_t used = 0;
    while (copy != NULL && *text != '\0') {
        text += copy_clean(copy, text, false, &used);
    }
    return copy;
}

void out_write(FILE *file, const char *text)
{
    char piece[512] = "";
    while (*text != '\0') {
        size_t used = 0;
        while (*text != '\0' && used + 4 < sizeof(piece)) {
            text += copy_clean(piece, text, true, &used);
        }
        (void)fwrite(piece, 1, used, file);
    }
}

/* Formats into memory of the caller's; NULL: it cannot be formatted, or memory is short. */
static char *format_text(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text != NULL) {
        (void)vsnprintf(text, (size_t)length + 1, format, args);
    }
    return text;
}

static size_t count_char(const char *text, char c)
{
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == c;
    }
    return count;
}

static void replace_char(char *text, char from, char to)
{
    for (; *text != '\0'; text++) {
        *text = *text == from ? to : *text;
    }
}

/* Line breaks of the format are kept, those of the values are not: a path may have one. The
 * format's are another control character meanwhile, one that no value has. */
static char *format_lines(const char *format, va_list args)
{
    char *marked = strdup(format), *text = NULL;
    const size_t lines = count_char(format, '\n');
    char mark = 1;
    for (; marked != NULL && mark < '\t'; mark++) {
        va_list again;
        replace_char(marked, mark == 1 ? '\n' : (char)(mark - 1), mark);
        va_copy(again, args);
        free(text);
        text = format_text(marked, again);
        va_end(again);
        if (text == NULL || count_char(text, mark) == lines) {
            break;
        }
    }
    free(marked);
    if (text != NULL) {
        replace_char(text, '\n', ' ');
        if (mark < '\t') { /* else there is a value that has them all */
            replace_char(text, mark, '\n');
        }
    }
    return text;
}

void out_vprint(FILE *file, const char *format, va_list args)
{
    char *text = format_lines(format, args);
    if (text != NULL) {
        out_write(file, text);
    }
    free(text);
}

void out_print(FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out_vprint(file, format, args);
    va_end(args);
}

json_t *out_json_text(const char *text)
{
    json_t *value = json_string(text);
    if (value == NULL) {
        cli_pool pool = POOL_INIT;
        const char *clean = out_clean(&pool, text);
        value = clean != NULL ? json_string(clean) : NULL;
        pool_deinit(&pool);
    }
    return value;
}

json_t *out_json_u64(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *out_json_ms(uint64_t ns)
{
    return json_real((double)ns / 1e6);
}

json_t *out_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void out_json_set(json_t **object, const char *key, json_t *value)
{
    /* json_object_set_new takes `value` over even when it fails. */
    if (json_object_set_new(*object, key, value) != 0) {
        json_decref(*object);
        *object = NULL;
    }
}

void out_json_append(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value) != 0) {
        json_decref(*array);
        *array = NULL;
    }
}

bool out_json(FILE *file, json_t *root)
{
    bool good =
        root != NULL && json_dumpf(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    if (good) {
        (void)fputc('\n', file); /* main looks at the stream's error flag */
    }
    good = good || (root != NULL && ferror(file) != 0); /* and reports it */
    json_decref(root);
    return good;
}
