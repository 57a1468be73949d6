/* NVRTC itself: opened, asked, and its results written out (NVRTC user guide). */
#include "request.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct _nvrtcProgram *nvrtcProgram;

/* The PCH heap is reserved address space until it is used; Thrust's headers need 190 MB of it. */
#define PCH_HEAP ((size_t)768 << 20)

#define NVRTC_FUNCTIONS(X)                                                                         \
    X(CreateProgram,                                                                               \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(CompileProgram, (nvrtcProgram, int, const char *const *))                                    \
    X(AddNameExpression, (nvrtcProgram, const char *))                                             \
    X(GetLoweredName, (nvrtcProgram, const char *, const char **))                                 \
    X(GetProgramLogSize, (nvrtcProgram, size_t *))                                                 \
    X(GetProgramLog, (nvrtcProgram, char *))                                                       \
    X(GetPTXSize, (nvrtcProgram, size_t *))                                                        \
    X(GetPTX, (nvrtcProgram, char *))                                                              \
    X(GetCUBINSize, (nvrtcProgram, size_t *))                                                      \
    X(GetCUBIN, (nvrtcProgram, char *))                                                            \
    X(GetLTOIRSize, (nvrtcProgram, size_t *))                                                      \
    X(GetLTOIR, (nvrtcProgram, char *))                                                            \
    X(GetPCHCreateStatus, (nvrtcProgram))                                                          \
    X(SetPCHHeapSize, (size_t))

typedef struct nvrtc {
#define FIELD(name, args) int(*name) args;
    NVRTC_FUNCTIONS(FIELD)
#undef FIELD
} nvrtc;

static bool open_nvrtc(const request *asked, nvrtc *out)
{
    static const char *const names[] = {
#define NAME(name, args) "nvrtc" #name,
        NVRTC_FUNCTIONS(NAME)
#undef NAME
    };
    /* NVRTC opens its builtins by bare name: once mapped, that name finds them. */
    if (dlopen(asked->builtins, RTLD_NOW | RTLD_GLOBAL) == NULL) {
        return false;
    }
    void *library = dlopen(asked->nvrtc, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *symbol = library != NULL ? dlsym(library, names[i]) : NULL;
        if (symbol == NULL) {
            return false;
        }
        memcpy((char *)out + i * sizeof(symbol), &symbol, sizeof(symbol));
    }
    return true;
}

/* --- answer ----------------------------------------------------------------------------------- */

static bool write_reply(const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t wrote = write(STDOUT_FILENO, p, size);
        if (wrote <= 0) {
            return false;
        }
        p += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

static bool put_frame(char letter, const void *data, size_t size)
{
    const char head[5] = {letter, (char)(size & 0xff), (char)(size >> 8 & 0xff),
                          (char)(size >> 16 & 0xff), (char)(size >> 24 & 0xff)};
    return size < UINT32_MAX && write_reply(head, sizeof(head)) && write_reply(data, size) &&
           write_reply("", 1);
}

static bool put_text(char letter, const char *text)
{
    return put_frame(letter, text, strlen(text));
}

/* Takes NVRTC's remark that a precompiled header was used out of the log: a hit, and a compile
 * without one, must show the same log. True if it was there. */
static bool drop_remark(char *log)
{
    static const char mark[] = "\": using precompiled header file \"";
    char *at = strstr(log, mark);
    if (at == NULL) {
        return false;
    }
    char *start = at;
    while (start > log && start[-1] != '\n') {
        start--;
    }
    char *end = strchr(at, '\n');
    end = end != NULL ? end + 1 : at + strlen(at);
    memmove(start, end, strlen(end) + 1);
    return true;
}

#define OUTPUT_LIMIT ((size_t)1 << 30) /* larger ones are not believed */

static char *read_log(const nvrtc *n, nvrtcProgram program)
{
    size_t size = 0;
    const bool said = n->GetProgramLogSize(program, &size) == 0 && size <= OUTPUT_LIMIT;
    char *log = said ? calloc(1, size + 1) : NULL;
    if (log != NULL && size > 0 && n->GetProgramLog(program, log) != 0) {
        log[0] = '\0';
    }
    return log;
}

static bool put_output(const nvrtc *n, nvrtcProgram program, const request *asked)
{
    size_t size = 0;
    const bool ptx = asked->kind == 'p';
    const bool lto = asked->kind == 'l';
    int result = ptx   ? n->GetPTXSize(program, &size)
                 : lto ? n->GetLTOIRSize(program, &size)
                       : n->GetCUBINSize(program, &size);
    char *output = result == 0 && size > 0 && size <= OUTPUT_LIMIT ? malloc(size) : NULL;
    if (output == NULL) {
        return false;
    }
    result = ptx   ? n->GetPTX(program, output)
             : lto ? n->GetLTOIR(program, output)
                   : n->GetCUBIN(program, output);
    bool good = result == 0 && put_frame('B', output, size);
    free(output);
    for (size_t i = 0; good && i < asked->expression_count; i++) {
        const char *lowered = NULL;
        good = n->GetLoweredName(program, asked->expressions[i], &lowered) == 0 &&
               lowered != NULL && put_text('W', lowered);
    }
    return good;
}

static bool put_answer(const nvrtc *n, nvrtcProgram program, const request *asked, int result,
                       bool wanted_pch, bool *out_refused)
{
    char number[16];
    char *log = read_log(n, program);
    if (log == NULL) {
        return false;
    }
    const bool used = wanted_pch && drop_remark(log);
    *out_refused = wanted_pch && !used && result == 0;
    (void)snprintf(number, sizeof(number), "%d", result);
    /* With a header that was refused the log holds NVRTC's complaint: the caller compiles again. */
    bool good = put_text('R', number) && put_text('G', log) &&
                put_text('Q', *out_refused ? "r"
                              : used       ? "u"
                                           : "n");
    free(log);
    return good && (result != 0 || put_output(n, program, asked));
}

/* --- compile ---------------------------------------------------------------------------------- */

bool compile(request *asked, pch_use use, const char *path, bool answer, bool *out_refused)
{
    static char option[4200];
    nvrtc n;
    nvrtcProgram program = NULL;
    *out_refused = false;
    if (!open_nvrtc(asked, &n) || (use != PCH_NONE && n.SetPCHHeapSize(PCH_HEAP) != 0) ||
        n.CreateProgram(&program, asked->source, asked->name, 0, NULL, NULL) != 0) {
        return false;
    }
    for (size_t i = 0; use != PCH_CREATE && i < asked->expression_count; i++) {
        if (n.AddNameExpression(program, asked->expressions[i]) != 0) {
            return false;
        }
    }
    int count = asked->option_count;
    if (use != PCH_NONE) {
        (void)snprintf(option, sizeof(option), "--%s-pch=%s", use == PCH_USE ? "use" : "create",
                       path);
        asked->options[count++] = option;
    }
    const int result = n.CompileProgram(program, count, asked->options);
    if (answer) {
        return put_answer(&n, program, asked, result, use == PCH_USE, out_refused);
    }
    return result == 0 && (use != PCH_CREATE || n.GetPCHCreateStatus(program) == 0);
}
