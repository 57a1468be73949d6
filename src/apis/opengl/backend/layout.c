/* Layout qualifiers of Vulkan's GLSL in the words of OpenGL's. Works on text, knows comments and
 * parentheses and nothing else of the language. */
#include <ctype.h>
#include <string.h>

#include "apis/opengl/backend/flatten.h"
#include "hal/glsl.h"

enum { MAX_ITEMS = 32 };

typedef struct item {
    const char *text;
    size_t length, word; /* of the leading identifier */
} item;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t skip_blank(const char *text, size_t length, size_t at)
{
    for (;;) {
        const size_t start = at;
        while (at < length && isspace((unsigned char)text[at])) {
            at++;
        }
        at = kn_glsl_skip_comment(text, length, at);
        if (at == start) {
            return at;
        }
    }
}

/* Where the parenthesis that opens at `at` closes; `length` if it does not. */
static size_t find_close(const char *text, size_t length, size_t at)
{
    size_t depth = 0;
    while (at < length) {
        const size_t next = kn_glsl_skip_comment(text, length, at);
        if (next != at) {
            at = next;
            continue;
        }
        depth += text[at] == '(';
        if (text[at] == ')' && --depth == 0) {
            return at;
        }
        at++;
    }
    return length;
}

static void add_item(item *items, size_t *count, const char *text, size_t length)
{
    const size_t start = skip_blank(text, length, 0);
    size_t word = start;
    while (word < length && is_word(text[word])) {
        word++;
    }
    while (length > start && isspace((unsigned char)text[length - 1])) {
        length--;
    }
    items[(*count)++] = (item){text + start, length - start, word - start};
}

/* The items between commas; 0 if there are too many to be looked at. */
static size_t split_items(const char *text, size_t length, item *items)
{
    size_t count = 0, depth = 0, start = 0;
    for (size_t at = 0; at <= length; at++) {
        if (at == length || (text[at] == ',' && depth == 0)) {
            if (count == MAX_ITEMS) {
                return 0;
            }
            add_item(items, &count, text + start, at - start);
            start = at + 1;
        } else {
            depth += text[at] == '(';
            depth -= text[at] == ')' && depth > 0;
        }
    }
    return count;
}

static bool item_is_named(const item *it, const char *name)
{
    return it->word == strlen(name) && memcmp(it->text, name, it->word) == 0;
}

/* 0, 1, 2 for local_size_[xyz]<suffix>, else 3. */
static size_t dimension_of(const item *it, const char *suffix)
{
    static const char prefix[] = "local_size_";
    const size_t length = sizeof(prefix) - 1;
    if (it->word != length + 1 + strlen(suffix) || memcmp(it->text, prefix, length) != 0 ||
        memcmp(it->text + length + 1, suffix, strlen(suffix)) != 0 || it->text[length] < 'x' ||
        it->text[length] > 'z') {
        return 3;
    }
    return (size_t)(it->text[length] - 'x');
}

static bool is_set_zero(const item *it)
{
    size_t at = it->word;
    if (!item_is_named(it, "set")) {
        return false;
    }
    at = skip_blank(it->text, it->length, at);
    at = at < it->length && it->text[at] == '=' ? skip_blank(it->text, it->length, at + 1) : at;
    return at + 1 == it->length && it->text[at] == '0';
}

/* Writes the list in parentheses as OpenGL wants it; false if nothing had to change. */
static bool rewrite_list(const char *text, size_t length, kn_strbuf *out, bool local_open[3])
{
    item items[MAX_ITEMS];
    bool open[4] = {false, false, false, false};
    bool changed = false;
    size_t written = 0;
    const size_t count = split_items(text, length, items);
    for (size_t i = 0; i < count; i++) {
        open[dimension_of(&items[i], "_id")] = true;
        changed = changed || dimension_of(&items[i], "_id") < 3 ||
                  item_is_named(&items[i], "constant_id") || is_set_zero(&items[i]);
    }
    if (!changed) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t id = dimension_of(&items[i], "_id");
        const size_t plain = dimension_of(&items[i], "");
        if (item_is_named(&items[i], "constant_id") || is_set_zero(&items[i]) ||
            (plain < 3 && open[plain])) {
            continue;
        }
        kn_strbuf_append_text(out, written++ == 0 ? "layout(" : ", ");
        if (id < 3) {
            local_open[id] = true;
            kn_strbuf_printf(out, "local_size_%c = KILN_LOCAL_SIZE_%c", 'x' + (int)id,
                             'X' + (int)id);
        } else {
            kn_strbuf_append(out, items[i].text, items[i].length);
        }
    }
    if (written > 0) {
        kn_strbuf_append_char(out, ')');
    }
    return true;
}

/* Line breaks between two places, less those that `out` got of them. */
static void keep_lines(const char *text, size_t from, size_t to, kn_strbuf *out, size_t out_from)
{
    size_t lines = 0;
    for (size_t i = from; i < to; i++) {
        lines += text[i] == '\n';
    }
    for (size_t i = out_from; i < out->length; i++) {
        lines -= out->data[i] == '\n' && lines > 0;
    }
    while (lines-- > 0) {
        kn_strbuf_append_char(out, '\n');
    }
}

/* At the word `layout`: what follows it, rewritten; where to go on. */
static size_t take_layout(const char *text, size_t length, size_t at, kn_strbuf *out,
                          bool local_open[3])
{
    const size_t word_end = at + strlen("layout");
    const size_t open = skip_blank(text, length, word_end);
    const size_t close =
        open < length && text[open] == '(' ? find_close(text, length, open) : length;
    const size_t before = out->length;
    if (close == length || !rewrite_list(text + open + 1, close - open - 1, out, local_open)) {
        kn_strbuf_append(out, text + at, word_end - at);
        return word_end;
    }
    keep_lines(text, at, close, out, before);
    return close + 1;
}

void kn_gl_rewrite_layouts(const char *text, size_t length, kn_strbuf *out, bool local_open[3])
{
    size_t at = 0;
    while (at < length) {
        size_t end = kn_glsl_skip_comment(text, length, at);
        if (end != at) {
            kn_strbuf_append(out, text + at, end - at);
            at = end;
            continue;
        }
        while (end < length && is_word(text[end])) {
            end++;
        }
        if (end - at == strlen("layout") && memcmp(text + at, "layout", end - at) == 0) {
            at = take_layout(text, length, at, out, local_open);
            continue;
        }
        end = end == at ? at + 1 : end;
        kn_strbuf_append(out, text + at, end - at);
        at = end;
    }
}
