/* Putting a GLSL source and what it includes into one text. Conditionals are not evaluated: what an
 * untaken branch includes is put in as well, and the driver's preprocessor skips it. A file that is
 * already being put in is left out, for only a guard can end such a circle. */
#include "apis/opengl/backend/flatten.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hal/glsl.h"
#include "sys/file.h"

enum { TEXT_LIMIT = 16 << 20 };

/* A file being put in; `id` distinguishes files: a path, or ":name" for one in memory. */
typedef struct frame {
    const struct frame *parent;
    const char *id;
    size_t depth, number;
} frame;

typedef struct flattener {
    const kiln_source *source;
    kn_strbuf body, names, once; /* once: ids, each with its NUL */
    size_t files;
    char *version; /* the #version line, malloc'ed */
    bool too_deep;
} flattener;

static bool list_holds(const kn_strbuf *list, const char *id)
{
    for (size_t at = 0; at < list->length; at += strlen(list->data + at) + 1) {
        if (strcmp(list->data + at, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_file_open(const frame *from, const char *id)
{
    while (from != NULL && strcmp(from->id, id) != 0) {
        from = from->parent;
    }
    return from != NULL;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The end of the line at `at`, past its '\n'; a backslash before a line break joins lines. */
static size_t line_end(const char *text, size_t size, size_t at, size_t *out_lines)
{
    *out_lines = 0;
    while (at < size) {
        if (text[at++] != '\n') {
            continue;
        }
        (*out_lines)++;
        const size_t back = at >= 3 && text[at - 2] == '\r' ? 3 : 2;
        if (at < back || text[at - back] != '\\') {
            break;
        }
    }
    return at;
}

/* Whether a comment is open after these bytes. */
static bool comment_after(const char *text, size_t size, bool inside)
{
    for (size_t i = 0; i + 1 < size; i++) {
        if (inside && text[i] == '*' && text[i + 1] == '/') {
            inside = false;
            i++;
        } else if (!inside && text[i] == '/' && text[i + 1] == '/') {
            return false; /* to the end of the line, splices and all */
        } else if (!inside && text[i] == '/' && text[i + 1] == '*') {
            inside = true;
            i++;
        }
    }
    return inside;
}

typedef enum directive {
    NO_DIRECTIVE,
    DIRECTIVE_INCLUDE,
    DIRECTIVE_VERSION,
    DIRECTIVE_ONCE,
    DIRECTIVE_DROPPED, /* extensions that are kiln's work here */
} directive;

static size_t skip_space(const char *line, size_t size, size_t at)
{
    while (at < size && (line[at] == ' ' || line[at] == '\t')) {
        at++;
    }
    return at;
}

static bool takes_word(const char *line, size_t size, size_t *at, const char *word)
{
    const size_t length = strlen(word);
    const size_t start = skip_space(line, size, *at);
    if (size - start < length || memcmp(line + start, word, length) != 0 ||
        (start + length < size &&
         (isalnum((unsigned char)line[start + length]) != 0 || line[start + length] == '_'))) {
        return false;
    }
    *at = start + length;
    return true;
}

static directive directive_of(const char *line, size_t size, size_t *out_rest)
{
    size_t at = skip_space(line, size, 0);
    if (at == size || line[at] != '#') {
        return NO_DIRECTIVE;
    }
    at++;
    *out_rest = at;
    if (takes_word(line, size, out_rest, "include")) {
        return DIRECTIVE_INCLUDE;
    }
    if (takes_word(line, size, out_rest, "version")) {
        return DIRECTIVE_VERSION;
    }
    if (takes_word(line, size, out_rest, "pragma")) {
        return takes_word(line, size, out_rest, "once") ? DIRECTIVE_ONCE : NO_DIRECTIVE;
    }
    if (takes_word(line, size, out_rest, "extension") &&
        (takes_word(line, size, out_rest, "GL_GOOGLE_include_directive") ||
         takes_word(line, size, out_rest, "GL_GOOGLE_cpp_style_line_directive"))) {
        return DIRECTIVE_DROPPED;
    }
    return NO_DIRECTIVE;
}

/* The name between quotes or brackets, malloc'ed; NULL where there is none (a macro, say). */
static char *include_name(const char *line, size_t size, size_t at, bool *out_quoted)
{
    at = skip_space(line, size, at);
    if (at == size || (line[at] != '"' && line[at] != '<')) {
        return NULL;
    }
    *out_quoted = line[at] == '"';
    const char *end = (const char *)memchr(line + at + 1, *out_quoted ? '"' : '>', size - at - 1);
    return end != NULL ? kn_text_copy_n(line + at + 1, (size_t)(end - line) - at - 1) : NULL;
}

/* --- putting together ------------------------------------------------------------------------- */

static void put_file(flattener *f, const frame *parent, const char *id, const char *name,
                     const char *text, size_t size);

static void put_include(flattener *f, const frame *from, const char *name, bool quoted)
{
    kn_glsl_file file;
    const char *includer = quoted && from->id[0] != ':' ? from->id : NULL;
    if (!kn_glsl_find(f->source, includer, name, &file)) {
        kn_strbuf_printf(&f->body, "#error file not found in the include directories: %s\n", name);
        return;
    }
    kn_strbuf id;
    kn_strbuf_init(&id, 0);
    kn_strbuf_printf(&id, "%s%s", file.in_memory ? ":" : "", file.name);
    if (from->depth == KN_GLSL_DEPTH) {
        f->too_deep = true;
    } else if (!is_file_open(from, kn_strbuf_text(&id)) &&
               !list_holds(&f->once, kn_strbuf_text(&id))) {
        put_file(f, from, kn_strbuf_text(&id), name, file.text, file.length);
    }
    kn_strbuf_deinit(&id);
    kn_glsl_file_deinit(&file);
}

static void put_blank(flattener *f, size_t lines)
{
    while (lines-- > 0) {
        kn_strbuf_append_char(&f->body, '\n');
    }
}

static void keep_version(flattener *f, const frame *at, const char *line, size_t size)
{
    while (size > 0 && isspace((unsigned char)line[size - 1])) {
        size--;
    }
    if (at->parent == NULL && f->version == NULL) {
        f->version = kn_text_copy_n(line, size);
    }
}

/* Handles one logical line; true if it was one of ours, and was replaced. */
static bool put_directive(flattener *f, const frame *at, const char *line, size_t size,
                          size_t next_line, size_t lines)
{
    size_t rest = 0;
    bool quoted = false;
    const directive kind = directive_of(line, size, &rest);
    if (kind == NO_DIRECTIVE) {
        return false;
    }
    if (kind == DIRECTIVE_VERSION) {
        keep_version(f, at, line, size);
    } else if (kind == DIRECTIVE_ONCE) {
        kn_strbuf_append(&f->once, at->id, strlen(at->id) + 1);
    }
    if (kind != DIRECTIVE_INCLUDE) {
        put_blank(f, lines);
        return true;
    }
    char *name = include_name(line, size, rest, &quoted);
    if (name == NULL) {
        kn_strbuf_append_text(&f->body, "#error kiln cannot follow a computed #include\n");
    } else {
        put_include(f, at, name, quoted);
        free(name);
    }
    kn_strbuf_printf(&f->body, "#line %zu %zu\n", next_line, at->number);
    return true;
}

static void put_file(flattener *f, const frame *parent, const char *id, const char *name,
                     const char *text, size_t size)
{
    const frame self = {parent, id, parent != NULL ? parent->depth + 1 : 0, f->files++};
    bool comment = false;
    size_t line = 1;
    kn_strbuf_append(&f->names, name, strlen(name) + 1);
    kn_strbuf_printf(&f->body, "#line 1 %zu\n", self.number);
    for (size_t at = 0; at < size && !f->too_deep && kn_strbuf_ok(&f->body);) {
        size_t lines = 0;
        const size_t end = line_end(text, size, at, &lines);
        const bool after = comment_after(text + at, end - at, comment);
        if (comment || !put_directive(f, &self, text + at, end - at, line + lines, lines)) {
            kn_strbuf_append(&f->body, text + at, end - at);
        } else if (after) {
            kn_strbuf_append_text(&f->body, "/*"); /* the comment that began after it */
        }
        comment = after;
        line += lines;
        at = end;
    }
    kn_strbuf_append_char(&f->body, '\n');
}

static void put_defines(const kiln_source *source, kn_strbuf *out)
{
    for (size_t i = 0; i < source->define_count; i++) {
        const char *value = source->defines[i].value;
        kn_strbuf_printf(out, "#define %s %s\n", source->defines[i].name,
                         value != NULL ? value : "1");
    }
}

void kn_gl_text_init(kn_gl_text *text)
{
    memset(text, 0, sizeof(*text));
    kn_strbuf_init(&text->text, TEXT_LIMIT);
    kn_strbuf_init(&text->names, TEXT_LIMIT);
}

void kn_gl_text_deinit(kn_gl_text *text)
{
    kn_strbuf_deinit(&text->text);
    kn_strbuf_deinit(&text->names);
}

kiln_status kn_gl_flatten(const kiln_source *source, kn_gl_text *out_text, kiln_diag *diag)
{
    const char *name = source->name != NULL ? source->name : "kernel.comp";
    flattener f = {.source = source};
    kiln_status status = KILN_OK;
    kn_strbuf_init(&f.body, TEXT_LIMIT);
    kn_strbuf_init(&f.names, TEXT_LIMIT);
    kn_strbuf_init(&f.once, TEXT_LIMIT);
    /* Its own directory is already the first include dir. */
    put_file(&f, NULL, ":", kn_path_name(name), (const char *)source->text, source->length);
    kn_strbuf_printf(&out_text->text, "%s\n", f.version != NULL ? f.version : "#version 430 core");
    out_text->head = out_text->text.length;
    put_defines(source, &out_text->text);
    kn_gl_rewrite_layouts(kn_strbuf_text(&f.body), f.body.length, &out_text->text,
                          out_text->local_open);
    kn_strbuf_append(&out_text->names, kn_strbuf_text(&f.names), f.names.length);
    if (f.too_deep) {
        status = kiln_diag_set(diag, KILN_E_INVALID, "look for a file that includes itself", name,
                               "includes are nested more than %d deep", KN_GLSL_DEPTH);
    } else if (!kn_strbuf_ok(&f.body) || !kn_strbuf_ok(&f.once) || !kn_strbuf_ok(&f.names) ||
               !kn_strbuf_ok(&out_text->text) || !kn_strbuf_ok(&out_text->names)) {
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, name,
                               "out of memory, or more than %d MiB of source", TEXT_LIMIT >> 20);
    }
    free(f.version);
    kn_strbuf_deinit(&f.once);
    kn_strbuf_deinit(&f.names);
    kn_strbuf_deinit(&f.body);
    return status;
}
