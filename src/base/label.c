/* See label.h. */
#include "base/label.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define MARK_LENGTH (sizeof KN_LABEL_MARK - 1)
#define FOOT (4 + MARK_LENGTH)
#define SEARCHED ((size_t)1 << 20) /* of a source: more is read by nobody */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool begins_with(kn_span text, const char *word)
{
    const size_t length = strlen(word);
    return text.length >= length && memcmp(text.data, word, length) == 0;
}

static kn_span skip_bytes(kn_span text, size_t count)
{
    return kn_span_of(text.data + count, text.length - count);
}

static size_t measure_word(kn_span text)
{
    size_t length = 0;
    while (length < text.length && is_word(text.data[length])) {
        length++;
    }
    return length;
}

/* Past parentheses and what is in them. */
static kn_span skip_group(kn_span text)
{
    size_t depth = 0;
    while (text.length > 0) {
        depth += *text.data == '(';
        depth -= *text.data == ')';
        text = skip_bytes(text, 1);
        if (depth == 0) {
            break;
        }
    }
    return text;
}

/* What takes arguments of its own between a kernel's mark and its name. */
static bool is_attribute(kn_span word)
{
    return begins_with(word, "__") || kn_span_equal(word, kn_span_of_text("alignas"));
}

/* The word before the next parenthesis that is a declaration's; empty: none is near. */
static kn_span find_name(kn_span text)
{
    kn_span last = kn_span_of(NULL, 0);
    while (text.length > 0 && strchr(";{}=", *text.data) == NULL) {
        const size_t length = measure_word(text);
        if (length > 0) {
            last = kn_span_of(text.data, length);
            text = skip_bytes(text, length);
        } else if (*text.data != '(') {
            text = skip_bytes(text, 1);
        } else if (last.length == 0 || !is_attribute(last)) {
            return last;
        } else {
            text = skip_group(text);
        }
    }
    return kn_span_of(NULL, 0);
}

/* How many bytes of a mark `text` begins with; 0: none. A kernel of OpenCL C may do without the
 * underscores. */
static size_t match_mark(kn_span text)
{
    static const char *const marks[] = {"__global__", "__kernel", ".entry", "kernel void"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t length = strlen(marks[i]);
        if (begins_with(text, marks[i]) && text.length > length && !is_word(text.data[length])) {
            return length;
        }
    }
    return 0;
}

static bool is_listed(const char *list, kn_span name)
{
    for (const char *at = list; *at != '\0';) {
        const size_t length = strcspn(at, ", ");
        if (kn_span_equal(kn_span_of(at, length), name)) {
            return true;
        }
        at += length;
        at += strspn(at, ", ");
    }
    return false;
}

/* False: there is no more room. */
static bool append_name(char out[KN_LABEL_SIZE], size_t kernels_at, kn_span name)
{
    const size_t used = strlen(out);
    const char *between = used > kernels_at ? ", " : kernels_at > 0 ? ": " : "";
    if (is_listed(out + (used > kernels_at ? kernels_at + (kernels_at > 0 ? 2u : 0u) : used),
                  name)) {
        return true;
    }
    if (used + strlen(between) + name.length + 4 >= KN_LABEL_SIZE) {
        kn_text_put(out + used, KN_LABEL_SIZE - used, used > kernels_at ? ", ..." : "");
        return false;
    }
    kn_text_putf(out + used, KN_LABEL_SIZE - used, "%s%.*s", between, (int)name.length, name.data);
    return true;
}

void kn_label_make(char out[KN_LABEL_SIZE], const char *file, kn_span source)
{
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    kn_text_put(out, KN_LABEL_SIZE / 2, file == NULL ? "" : slash != NULL ? slash + 1 : file);
    kn_text_flatten(out);
    const size_t kernels_at = strlen(out);
    kn_span rest = kn_span_of(source.data, source.length < SEARCHED ? source.length : SEARCHED);
    bool in_word = false;
    while (rest.length > 0) {
        const size_t mark = in_word ? 0 : match_mark(rest);
        in_word = is_word(*rest.data);
        rest = skip_bytes(rest, mark > 0 ? mark : 1);
        const kn_span name = mark > 0 ? find_name(rest) : kn_span_of(NULL, 0);
        if (name.length > 0 && !append_name(out, kernels_at, name)) {
            return;
        }
    }
}

void kn_label_append(kn_strbuf *facts, const char *label)
{
    char length[4];
    if (*label != '\0') {
        kn_put_u32(length, (uint32_t)strlen(label));
        kn_strbuf_append(facts, label, strlen(label));
        kn_strbuf_append(facts, length, sizeof length);
        kn_strbuf_append(facts, KN_LABEL_MARK, MARK_LENGTH);
    }
}

bool kn_label_find(kn_span facts, kn_span *out_label)
{
    for (size_t end = facts.length; end >= FOOT; end--) {
        if (memcmp(facts.data + end - MARK_LENGTH, KN_LABEL_MARK, MARK_LENGTH) != 0) {
            continue;
        }
        const size_t length = kn_get_u32(facts.data + end - FOOT);
        const bool whole = length > 0 && length < KN_LABEL_SIZE && length <= end - FOOT;
        *out_label = kn_span_of(facts.data + end - FOOT - (whole ? length : 0), length);
        return whole;
    }
    return false;
}
