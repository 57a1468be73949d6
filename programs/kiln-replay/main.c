/* kiln-replay: makes recorded calls, one after another, asked on standard input and answered on
 * standard output (replay/call.h). It is a program like any other: what
 * stands under its NVRTC or hipRTC stores what it compiles.
 *
 * A call is u32 length and as many bytes of strings, each with its NUL; an answer u32 length, the
 * code in decimal, NUL, the compiler's log. Ends with its input; exit 0, or 1 where that is not
 * what it must be. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compilers/libraries.h"

enum { CALL_MAX = 512 << 20, LIST_MAX = 1 << 20, NO_LIBRARY = 1000 };

/* NVRTC's calls, or hipRTC's, which are the same. */
typedef struct rtc_table {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*add_expression)(void *, const char *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*destroy)(void **);
} rtc_table;

/* A compiler by the first string of a call: the id of its library. */
typedef struct rtc_kind {
    bool tried, there;
    rtc_table table;
} rtc_kind;

static rtc_kind rtc_kinds[KN_LIBRARIES];

/* --- the library ------------------------------------------------------------------------------ */

static bool find_function(void *library, const char *prefix, const char *name, void *out)
{
    char symbol[64];
    (void)snprintf(symbol, sizeof(symbol), "%s%s", prefix, name);
    void *address = dlsym(library, symbol);
    memcpy(out, &address, sizeof(address));
    return address != NULL;
}

/* The newest. What a program called in HIP's runtime is kiln's library before it: the runtime
 * itself would answer by its own handle. */
static void *open_newest(const kn_library *row)
{
    char name[64];
    void *library = NULL;
    for (int major = row->last; library == NULL && major >= row->first; major--) {
        (void)snprintf(name, sizeof(name), "%s.so.%d", row->shim, major);
        library = dlopen(name, RTLD_NOW);
    }
    return library;
}

/* Where the place that was recorded has no compiler, another one with its calls may have. */
static bool open_library(const kn_library *recorded, rtc_table *out)
{
    const char *prefix = recorded->prefix;
    void *library = open_newest(recorded);
    for (int i = 0; library == NULL && i < KN_LIBRARIES; i++) {
        if (strcmp(kn_libraries[i].api, recorded->api) == 0) {
            library = open_newest(&kn_libraries[i]);
        }
    }
    return library != NULL && find_function(library, prefix, "CreateProgram", &out->create) &&
           find_function(library, prefix, "AddNameExpression", &out->add_expression) &&
           find_function(library, prefix, "CompileProgram", &out->compile) &&
           find_function(library, prefix, "GetProgramLogSize", &out->log_size) &&
           find_function(library, prefix, "GetProgramLog", &out->log) &&
           find_function(library, prefix, "DestroyProgram", &out->destroy);
}

static const rtc_kind *open_kind(const kn_library *row)
{
    rtc_kind *kind = &rtc_kinds[row - kn_libraries];
    kind->there = kind->tried ? kind->there : open_library(row, &kind->table);
    kind->tried = true;
    return kind;
}

/* --- input and output ------------------------------------------------------------------------- */

static bool read_whole(void *to, size_t size)
{
    return fread(to, 1, size, stdin) == size;
}

static uint32_t length_of(const unsigned char b[4])
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool write_answer(int code, const char *log)
{
    char number[16];
    const int digits = snprintf(number, sizeof(number), "%d", code);
    const size_t length = (size_t)digits + 1 + strlen(log);
    const unsigned char head[4] = {(unsigned char)length, (unsigned char)(length >> 8),
                                   (unsigned char)(length >> 16), (unsigned char)(length >> 24)};
    return fwrite(head, 1, 4, stdout) == 4 &&
           fwrite(number, 1, (size_t)digits + 1, stdout) == (size_t)digits + 1 &&
           fwrite(log, 1, strlen(log), stdout) == strlen(log) && fflush(stdout) == 0;
}

/* --- a call ----------------------------------------------------------------------------------- */

typedef struct call_reader {
    char *at, *end;
    bool bad;
} call_reader;

static const char *take_string(call_reader *from)
{
    char *text = from->at;
    char *nul = from->bad ? NULL : memchr(text, '\0', (size_t)(from->end - text));
    if (nul == NULL) {
        from->bad = true;
        return "";
    }
    from->at = nul + 1;
    return text;
}

static size_t take_count(call_reader *from)
{
    char *rest = NULL;
    const unsigned long count = strtoul(take_string(from), &rest, 10);
    from->bad = from->bad || *rest != '\0' || count > LIST_MAX;
    return from->bad ? 0 : count;
}

static const char **take_strings(call_reader *from, size_t each, size_t *out_count)
{
    *out_count = take_count(from);
    const char **list = calloc(*out_count * each + 1, sizeof(*list));
    from->bad = from->bad || list == NULL;
    for (size_t i = 0; list != NULL && i < *out_count * each; i++) {
        list[i] = take_string(from);
    }
    return list;
}

typedef struct rtc_call {
    const char *tree, *folder, *name, *text;
    const char **headers; /* name, text, name, text */
    const char **expressions, **options;
    size_t header_count, expression_count, option_count;
} rtc_call;

/* What the compiler finds by a relative path lies where the program's current directory was. */
static bool enter_folder(const rtc_call *call)
{
    char path[8192];
    const int length = snprintf(path, sizeof(path), "%s%s/", call->tree, call->folder);
    return length > 0 && (size_t)length < sizeof(path) &&
           (chdir(path) == 0 || chdir(call->tree) == 0);
}

static bool answer_with_log(const rtc_table *rtc, void *program, int code)
{
    size_t size = 0;
    char *log = NULL;
    if (code != 0 && rtc->log_size(program, &size) == 0 && size > 0) {
        log = calloc(1, size + 1);
    }
    if (log != NULL && rtc->log(program, log) != 0) {
        log[0] = '\0';
    }
    const bool answered = write_answer(code, log != NULL ? log : "");
    free(log);
    return answered;
}

static bool compile_call(const rtc_table *rtc, const rtc_call *call)
{
    void *program = NULL;
    const size_t count = call->header_count;
    const char **split = calloc(2 * count + 1, sizeof(*split));
    if (split == NULL) {
        return write_answer(NO_LIBRARY, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        split[i] = call->headers[2 * i + 1];
        split[count + i] = call->headers[2 * i];
    }
    int code = rtc->create(&program, call->text, call->name[0] != '\0' ? call->name : NULL,
                           (int)count, split, split + count);
    if (code != 0) {
        free(split);
        return write_answer(code, "the program could not be created");
    }
    for (size_t i = 0; code == 0 && i < call->expression_count; i++) {
        code = rtc->add_expression(program, call->expressions[i]);
    }
    if (code == 0) {
        code = rtc->compile(program, (int)call->option_count, call->options);
    }
    const bool answered = answer_with_log(rtc, program, code);
    (void)rtc->destroy(&program);
    free(split);
    return answered;
}

static bool make_program(const rtc_table *rtc, call_reader *from)
{
    rtc_call call = {.tree = take_string(from)};
    call.folder = take_string(from);
    call.name = take_string(from);
    call.text = take_string(from);
    call.headers = take_strings(from, 2, &call.header_count);
    call.expressions = take_strings(from, 1, &call.expression_count);
    call.options = take_strings(from, 1, &call.option_count);
    bool good = !from->bad;
    if (good && !enter_folder(&call)) {
        good = write_answer(NO_LIBRARY, "its directory cannot be entered");
    } else if (good) {
        good = compile_call(rtc, &call);
    }
    free(call.headers);
    free(call.expressions);
    free(call.options);
    return good;
}

static bool answer_absent(const kn_library *row)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "there is no %s.so.%d to .%d", row->stem, row->first,
                   row->last);
    return write_answer(NO_LIBRARY, text);
}

static bool make_call(char *bytes, size_t size)
{
    call_reader from = {.at = bytes, .end = bytes + size};
    const kn_library *row = kn_library_find(take_string(&from));
    if (row == NULL) {
        return write_answer(NO_LIBRARY, "calls of this kind are not known");
    }
    const rtc_kind *kind = open_kind(row);
    return kind->there ? make_program(&kind->table, &from) : answer_absent(row);
}

int main(void)
{
    unsigned char head[4];
    bool good = true;
    while (good && read_whole(head, sizeof(head))) {
        const size_t size = length_of(head);
        char *bytes = size <= CALL_MAX ? malloc(size + 1) : NULL;
        good = bytes != NULL && read_whole(bytes, size);
        good = good && make_call(bytes, size);
        free(bytes);
    }
    return good ? 0 : 1;
}
