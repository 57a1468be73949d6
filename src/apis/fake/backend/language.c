/* The toy compiler: lines of words to steps. */
#include "apis/fake/backend/language.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/file.h"

#define LINE_MAX_SIZE 1024
#define WORDS_MAX 64
#define INCLUDE_DEPTH_MAX 16
#define DEFINES_MAX 16
#define FILE_MAX ((size_t)1 << 20)

static const char *const type_names[FAKE_TYPE_COUNT] = {"float", "int", "floats", "ints", "local"};
static const char *const item_names[] = {"i", "gx", "gy", "gz", "nx", "ny", "nz", "lx"};

typedef struct parser {
    const kiln_source *source;
    kn_fake_code *code;
    kn_strbuf *log;
    const char *file;
    unsigned line;
    unsigned depth;
    struct {
        char name[FAKE_NAME_SIZE];
        char value[FAKE_NAME_SIZE];
    } defined[DEFINES_MAX]; /* by #define */
    size_t defined_count;
    bool failed;
    bool no_memory;
} parser;

static void complain_of_word(parser *p, const char *kind, const char *text, const char *word)
{
    kn_strbuf_printf(p->log, "%s:%u: %s: %s%s%s\n", p->file, p->line, kind, text,
                     word[0] != '\0' ? ": " : "", word);
    p->failed = p->failed || strcmp(kind, "error") == 0;
}

static void emit_step(parser *p, kn_fake_step_kind kind, uint32_t index, double value)
{
    kn_fake_code *code = p->code;
    if (code->step_count == FAKE_OPS_MAX || code->kernel_count == 0) {
        complain_of_word(p, "error",
                         code->kernel_count == 0 ? "no kernel is open" : "too many steps", "");
        return;
    }
    if (code->step_count % 64 == 0) {
        kn_fake_step *steps =
            (kn_fake_step *)realloc(code->steps, (code->step_count + 64) * sizeof(kn_fake_step));
        if (steps == NULL) {
            p->no_memory = true;
            p->failed = true;
            return;
        }
        code->steps = steps;
    }
    code->steps[code->step_count++] = (kn_fake_step){(uint32_t)kind, index, value};
    code->kernels[code->kernel_count - 1].count++;
}

/* The number of a parameter of the open kernel, or -1. */
static int find_param(const parser *p, const char *name)
{
    if (p->code->kernel_count > 0) {
        const kn_fake_kernel *kernel = &p->code->kernels[p->code->kernel_count - 1];
        for (uint32_t i = 0; i < kernel->param_count; i++) {
            if (strcmp(kernel->params[i].name, name) == 0) {
                return (int)i;
            }
        }
    }
    return -1;
}

static bool is_buffer(const parser *p, int param)
{
    const kn_fake_kernel *kernel = &p->code->kernels[p->code->kernel_count - 1];
    return param >= 0 &&
           (kernel->params[param].type == FAKE_FLOATS || kernel->params[param].type == FAKE_INTS);
}

static const char *expand_define(const parser *p, const char *word)
{
    for (size_t i = p->source->define_count; i > 0; i--) {
        const kiln_define *define = &p->source->defines[i - 1];
        if (strcmp(define->name, word) == 0) {
            return define->value != NULL ? define->value : "1";
        }
    }
    for (size_t i = p->defined_count; i > 0; i--) {
        if (strcmp(p->defined[i - 1].name, word) == 0) {
            return p->defined[i - 1].value;
        }
    }
    return word;
}

static void parse_define(parser *p, char **words, size_t count)
{
    if (count != 3 || p->defined_count == DEFINES_MAX || strlen(words[1]) >= FAKE_NAME_SIZE ||
        strlen(words[2]) >= FAKE_NAME_SIZE) {
        complain_of_word(p, "error", "cannot define", count > 1 ? words[1] : "");
        return;
    }
    kn_text_put(p->defined[p->defined_count].name, FAKE_NAME_SIZE, words[1]);
    kn_text_put(p->defined[p->defined_count].value, FAKE_NAME_SIZE, words[2]);
    p->defined_count++;
}

static void parse_word(parser *p, const char *word, const char *next, bool *skip_next)
{
    word = expand_define(p, word);
    *skip_next = false;
    if (strlen(word) == 1 && strchr("+-*/%", word[0]) != NULL) {
        emit_step(p, FAKE_OPERATE, (uint32_t)(unsigned char)word[0], 0);
        return;
    }
    int param = find_param(p, word);
    if (param >= 0 && next != NULL && strcmp(next, "@") == 0 && is_buffer(p, param)) {
        emit_step(p, FAKE_PUSH_ELEMENT, (uint32_t)param, 0);
        *skip_next = true;
        return;
    }
    if (param >= 0) {
        emit_step(p, FAKE_PUSH_PARAM, (uint32_t)param, 0);
        return;
    }
    for (uint32_t i = 0; i < sizeof(item_names) / sizeof(item_names[0]); i++) {
        if (strcmp(item_names[i], word) == 0) {
            emit_step(p, FAKE_PUSH_NAME, i, 0);
            return;
        }
    }
    char *end = NULL;
    double number = strtod(word, &end);
    if (end == word || *end != '\0') {
        complain_of_word(p, "error", "unknown word", word);
        return;
    }
    emit_step(p, FAKE_PUSH_NUMBER, 0, number);
}

static void parse_expression(parser *p, char **words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool skip = false;
        parse_word(p, words[i], i + 1 < count ? words[i + 1] : NULL, &skip);
        i += skip;
    }
}

static void parse_store(parser *p, char **words, size_t count)
{
    int target = find_param(p, words[0]);
    size_t equals = 1;
    while (equals < count && strcmp(words[equals], "=") != 0) {
        equals++;
    }
    if (p->code->kernel_count == 0 || !is_buffer(p, target) || equals == count) {
        complain_of_word(p, "error", "not a store", words[0]);
        return;
    }
    bool indexed = equals > 1;
    if (indexed && (strcmp(words[1], "[") != 0 || strcmp(words[equals - 1], "]") != 0)) {
        complain_of_word(p, "error", "an index is written [ INDEX ]", words[1]);
        return;
    }
    if (indexed) {
        parse_expression(p, words + 2, equals - 3);
    }
    parse_expression(p, words + equals + 1, count - equals - 1);
    emit_step(p, indexed ? FAKE_STORE_AT : FAKE_STORE, (uint32_t)target, 0);
}

static void parse_kernel(parser *p, char **words, size_t count)
{
    kn_fake_code *code = p->code;
    if (count < 2 || count - 2 > 16 || code->kernel_count == FAKE_KERNELS_MAX ||
        strlen(words[1]) >= FAKE_NAME_SIZE) {
        complain_of_word(p, "error", "a kernel has a name and up to 16 parameters", "");
        return;
    }
    kn_fake_kernel *kernel = &code->kernels[code->kernel_count++];
    kn_text_put(kernel->name, sizeof(kernel->name), words[1]);
    kernel->first = code->step_count;
    for (size_t i = 2; i < count; i++) {
        char *colon = strchr(words[i], ':');
        uint32_t type = 0;
        while (colon != NULL && type < FAKE_TYPE_COUNT &&
               strcmp(type_names[type], colon + 1) != 0) {
            type++;
        }
        if (colon == NULL || type == FAKE_TYPE_COUNT ||
            (size_t)(colon - words[i]) >= FAKE_NAME_SIZE) {
            complain_of_word(p, "error", "not a parameter", words[i]);
            return;
        }
        *colon = '\0';
        kn_text_put(kernel->params[kernel->param_count].name, FAKE_NAME_SIZE, words[i]);
        kernel->params[kernel->param_count].type = type;
        kernel->param_count++;
    }
}

static void parse_text(parser *p, const char *file, const char *text, size_t length);

static void parse_file(parser *p, const char *dir, const char *name, bool *found)
{
    char *path = kn_path_join(dir, name);
    void *text = NULL;
    size_t size = 0;
    if (path != NULL && kn_file_read(path, FILE_MAX, false, &text, &size, NULL, NULL) == KILN_OK) {
        *found = true;
        parse_text(p, name, (const char *)text, size);
    }
    free(text);
    free(path);
}

static void parse_include(parser *p, const char *word)
{
    char name[256];
    size_t length = strlen(word);
    bool found = false;
    if (length < 3 || length >= sizeof(name) || p->depth == INCLUDE_DEPTH_MAX) {
        complain_of_word(p, "error", "cannot include", word);
        return;
    }
    memcpy(name, word + 1, length - 2);
    name[length - 2] = '\0';
    for (size_t i = 0; !found && i < p->source->header_count; i++) {
        const kiln_header *header = &p->source->headers[i];
        if (strcmp(header->name, name) == 0) {
            found = true;
            parse_text(p, name, header->text, header->length);
        }
    }
    for (size_t i = 0; !found && i < p->source->include_dir_count; i++) {
        parse_file(p, p->source->include_dirs[i], name, &found);
    }
    if (!found) {
        complain_of_word(p, "error", "no such file", name);
    }
}

static void parse_line(parser *p, char *line)
{
    char *words[WORDS_MAX] = {NULL};
    size_t count = 0;
    char *rest = line + strspn(line, " \t\r");
    const char *message = rest + strcspn(rest, " \t\r");
    message += strspn(message, " \t\r");
    if (strncmp(rest, "warn", 4) == 0 || strncmp(rest, "fail", 4) == 0) {
        complain_of_word(p, rest[0] == 'w' ? "warning" : "error", message, "");
        return;
    }
    while (*rest != '\0' && count < WORDS_MAX && strncmp(rest, "//", 2) != 0) {
        size_t length = strcspn(rest, " \t\r");
        words[count++] = rest;
        rest += length;
        if (*rest != '\0') {
            *rest++ = '\0';
        }
        rest += strspn(rest, " \t\r");
    }
    if (count == 0) {
        return;
    }
    if (strcmp(words[0], "#include") == 0 && count == 2) {
        parse_include(p, words[1]);
    } else if (strcmp(words[0], "#define") == 0) {
        parse_define(p, words, count);
    } else if (strcmp(words[0], "kernel") == 0) {
        parse_kernel(p, words, count);
    } else {
        parse_store(p, words, count);
    }
}

static void parse_text(parser *p, const char *file, const char *text, size_t length)
{
    const char *old_file = p->file;
    unsigned old_line = p->line;
    p->depth++;
    p->file = file;
    p->line = 0;
    const char *end = text + length;
    while (text < end) {
        const char *stop = (const char *)memchr(text, '\n', (size_t)(end - text));
        size_t size = (size_t)((stop != NULL ? stop : end) - text);
        char line[LINE_MAX_SIZE];
        p->line++;
        if (size < sizeof(line)) {
            memcpy(line, text, size);
            line[size] = '\0';
            parse_line(p, line);
        } else {
            complain_of_word(p, "error", "the line is too long", "");
        }
        text += size + 1;
    }
    p->depth--;
    p->file = old_file;
    p->line = old_line;
}

kiln_status kn_fake_parse(const kiln_source *source, kn_fake_code *out_code, kn_strbuf *log,
                          kiln_diag *diag)
{
    const char *name = source->name != NULL ? source->name : "source";
    parser p = {.source = source, .code = out_code, .log = log};
    memset(out_code, 0, sizeof(*out_code));
    parse_text(&p, name, (const char *)source->text, source->length);
    if (!p.failed && out_code->kernel_count == 0) {
        p.file = name;
        complain_of_word(&p, "error", "there is no kernel in it", "");
    }
    if (p.no_memory || !kn_strbuf_ok(log)) {
        kn_fake_code_deinit(out_code);
        return kn_no_memory(diag, name);
    }
    if (p.failed) {
        kn_fake_code_deinit(out_code);
        (void)kiln_diag_set(diag, KILN_E_COMPILE, "see the log", name, "%s", kn_strbuf_text(log));
        kiln_diag_set_log(diag, kn_strbuf_text(log), log->length);
        return KILN_E_COMPILE;
    }
    return KILN_OK;
}

void kn_fake_code_deinit(kn_fake_code *code)
{
    free(code->steps);
    memset(code, 0, sizeof(*code));
}

void kn_fake_code_write(const kn_fake_code *code, kn_strbuf *out)
{
    char counts[8];
    kn_put_u32(counts, code->kernel_count);
    kn_put_u32(counts + 4, code->step_count);
    kn_strbuf_append(out, counts, sizeof(counts));
    kn_strbuf_append(out, code->kernels, code->kernel_count * sizeof(kn_fake_kernel));
    kn_strbuf_append(out, code->steps, code->step_count * sizeof(kn_fake_step));
}

/* Everything that the interpreter relies on: bytes from a file are nobody's friend. */
static bool step_is_sound(const kn_fake_step *step, const kn_fake_kernel *kernel)
{
    switch ((kn_fake_step_kind)step->kind) {
    case FAKE_PUSH_PARAM:
        return step->index < kernel->param_count;
    case FAKE_PUSH_ELEMENT:
    case FAKE_STORE:
    case FAKE_STORE_AT:
        return step->index < kernel->param_count &&
               (kernel->params[step->index].type == FAKE_FLOATS ||
                kernel->params[step->index].type == FAKE_INTS);
    case FAKE_PUSH_NAME:
        return step->index < sizeof(item_names) / sizeof(item_names[0]);
    default:
        return step->kind < FAKE_STEP_COUNT;
    }
}

static bool kernel_is_sound(const kn_fake_code *code, const kn_fake_kernel *kernel)
{
    if (memchr(kernel->name, 0, FAKE_NAME_SIZE) == NULL || kernel->param_count > 16 ||
        kernel->first > code->step_count || kernel->count > code->step_count - kernel->first) {
        return false;
    }
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        if (memchr(kernel->params[i].name, 0, FAKE_NAME_SIZE) == NULL ||
            kernel->params[i].type >= FAKE_TYPE_COUNT) {
            return false;
        }
    }
    for (uint32_t i = kernel->first; i < kernel->first + kernel->count; i++) {
        if (!step_is_sound(&code->steps[i], kernel)) {
            return false;
        }
    }
    return true;
}

static bool code_is_sound(const kn_fake_code *code)
{
    for (uint32_t i = 0; i < code->kernel_count; i++) {
        if (!kernel_is_sound(code, &code->kernels[i])) {
            return false;
        }
    }
    return true;
}

bool kn_fake_code_read(const void *data, size_t size, kn_fake_code *out_code)
{
    const char *bytes = (const char *)data;
    memset(out_code, 0, sizeof(*out_code));
    if (size < 8) {
        return false;
    }
    uint32_t kernels = kn_get_u32(bytes);
    uint32_t steps = kn_get_u32(bytes + 4);
    if (kernels > FAKE_KERNELS_MAX || steps > FAKE_OPS_MAX ||
        size != 8 + kernels * sizeof(kn_fake_kernel) + steps * sizeof(kn_fake_step)) {
        return false;
    }
    out_code->steps = (kn_fake_step *)calloc(steps + 1, sizeof(kn_fake_step));
    if (out_code->steps == NULL) {
        return false;
    }
    out_code->kernel_count = kernels;
    out_code->step_count = steps;
    memcpy(out_code->kernels, bytes + 8, kernels * sizeof(kn_fake_kernel));
    memcpy(out_code->steps, bytes + 8 + kernels * sizeof(kn_fake_kernel),
           steps * sizeof(kn_fake_step));
    if (!code_is_sound(out_code)) {
        kn_fake_code_deinit(out_code);
        return false;
    }
    return true;
}
