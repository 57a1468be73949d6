/* HIP C++ -> code object through hipRTC ("HIP RTC Programming Guide"), with lowered names kept as
 * facts so that a hit gives them back as the compile did. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/code_object.h"
#include "apis/hip/backend/instance.h"
#include "apis/hip/options/hiprtc_options.h"
#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/thread.h"

/* Larger ones are not believed. */
#define LOG_LIMIT ((size_t)64 << 20)
#define OUTPUT_LIMIT ((size_t)1 << 30)

/* hipRTC compiles one program at a time. The lock of ROCm 5 crashes a thread that waits and has not
 * called HIP before. */
static kn_mutex compiling = KN_MUTEX_INIT;

/* --- what is given ---------------------------------------------------------------------------- */

/* One compile: what hipRTC gets. Texts in `owned` are freed, all other ones are borrowed. */
typedef struct unit {
    const char *shown; /* in messages, and the file's name in code */
    char *text;
    const char **options;
    char **owned;
    int option_count;
    size_t owned_count;
} unit;

static const char *base_name(const kiln_source *source)
{
    return source->name != NULL ? kn_path_name(source->name) : "kernel";
}

/* hipRTC 5.2 joins its options with blanks and splits them again. */
static bool survives_splitting(const char *text)
{
    for (; *text != '\0'; text++) {
        if (isspace((unsigned char)*text) || strchr("\"'\\", *text) != NULL) {
            return false;
        }
    }
    return true;
}

static bool is_plain_define(const kiln_define *define)
{
    return survives_splitting(define->name) &&
           (define->value == NULL || survives_splitting(define->value));
}

/* A name in a #line directive. */
static void append_quoted(kn_strbuf *text, const char *name)
{
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\') {
            kn_strbuf_append_char(text, '\\');
        }
        kn_strbuf_append_char(text, *name == '\n' ? ' ' : *name);
    }
}

/* The compiler sees each text under a name in a temporary directory that no two compiles share; a
 * #line gives it its own, in messages and in code. Defines that an option cannot carry stand before
 * it. */
static char *make_text(const kiln_source *source)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* a byte order mark may only stand first */
    const char *text = (const char *)source->text;
    size_t length = source->length;
    kn_strbuf made;
    kn_strbuf_init(&made, (size_t)1 << 30);
    for (size_t i = 0; i < source->define_count; i++) {
        const kiln_define *define = &source->defines[i];
        if (!is_plain_define(define)) {
            kn_strbuf_printf(&made, "#define %s %s\n", define->name,
                             define->value != NULL ? define->value : "1");
        }
    }
    kn_strbuf_append_text(&made, "#line 1 \"");
    append_quoted(&made, base_name(source));
    kn_strbuf_append_text(&made, "\"\n");
    if (length >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        length -= 3;
    }
    kn_strbuf_append(&made, text, length);
    kn_strbuf_append(&made, "", 1); /* hipRTC reads to a NUL */
    return kn_strbuf_detach(&made, NULL);
}

static bool add_owned(unit *to, const char *a, const char *b, const char *c, const char *d)
{
    kn_strbuf made;
    kn_strbuf_init(&made, 0);
    kn_strbuf_append_text(&made, a);
    kn_strbuf_append_text(&made, b);
    kn_strbuf_append_text(&made, c);
    kn_strbuf_append_text(&made, d);
    char *text = kn_strbuf_detach(&made, NULL);
    if (text != NULL) {
        to->owned[to->owned_count++] = text;
        to->options[to->option_count++] = text;
    }
    return text != NULL;
}

static bool fill_unit(unit *to, const kiln_compile_request *request)
{
    const kn_hip_target *target = (const kn_hip_target *)request->target->handle;
    const kiln_source *source = request->source;
    const size_t most = 1 + source->define_count + source->option_count + source->include_dir_count;
    to->shown = base_name(source);
    to->text = make_text(source);
    to->options = (const char **)calloc(most, sizeof(*to->options));
    to->owned = (char **)calloc(most, sizeof(*to->owned));
    bool good = to->text != NULL && to->options != NULL && to->owned != NULL &&
                add_owned(to, "--offload-arch=", target->name, "", "");
    for (size_t i = 0; good && i < source->define_count; i++) {
        const kiln_define *define = &source->defines[i];
        good = !is_plain_define(define) ||
               add_owned(to, "-D", define->name, "=", define->value != NULL ? define->value : "1");
    }
    for (size_t i = 0; good && i < source->option_count; i++) {
        to->options[to->option_count++] = source->options[i];
    }
    for (size_t i = 0; good && i < source->include_dir_count; i++) {
        good = add_owned(to, "-I", source->include_dirs[i], "", "");
    }
    return good;
}

static void unit_deinit(unit *of)
{
    for (size_t i = 0; i < of->owned_count; i++) {
        free(of->owned[i]);
    }
    free(of->owned);
    free((void *)of->options);
    free(of->text);
}

/* What hipRTC cannot be given: it would take half of a name, or end the process. */
static kiln_status check_source(const kiln_source *source, kiln_diag *diag)
{
    kn_hiprtc_option_facts facts;
    kn_hiprtc_options_read(source->options, source->option_count, &facts);
    if (facts.target) {
        return kiln_diag_set(diag, KILN_E_INVALID, "take it out; the target is kiln's to name",
                             base_name(source), "an option names a target");
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        if (!survives_splitting(source->include_dirs[i])) {
            return kiln_diag_set(
                diag, KILN_E_UNSUPPORTED, "give the directory another name, or a link to it",
                source->include_dirs[i], "hipRTC splits its options at blanks and quotes");
        }
    }
    for (size_t i = 0; i < source->define_count; i++) {
        const kiln_define *define = &source->defines[i];
        if (strchr(define->name, '\n') != NULL ||
            (define->value != NULL && strchr(define->value, '\n') != NULL)) {
            return kiln_diag_set(diag, KILN_E_INVALID, "write it on one line", define->name,
                                 "a define holds a line break");
        }
    }
    return KILN_OK;
}

/* --- what comes back -------------------------------------------------------------------------- */

typedef struct answer {
    hiprtcResult result;
    char *log; /* "" if there is none */
    char *output;
    size_t output_size;
    const char **lowered; /* one an entry; the program's */
} answer;

/* Takes the compiler's temporary directory out of a log, which no two logs share. */
static void clean_log(char *log)
{
    static const char *const below[] = {"/input/", "/include/"};
    static const char before[] = " \t\n\"'<(=";
    char *at = log;
    while ((at = strstr(at, "/comgr-")) != NULL) {
        char *rest = at + strlen("/comgr-");
        rest += strspn(rest, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        size_t length = 0;
        for (size_t i = 0; i < 2 && length == 0; i++) {
            length = kn_text_starts(rest, below[i]) ? strlen(below[i]) : 0;
        }
        if (length == 0) {
            at = rest;
            continue;
        }
        while (at > log && strchr(before, at[-1]) == NULL) {
            at--;
        }
        memmove(at, rest + length, strlen(rest + length) + 1);
    }
}

static bool read_log(const kn_hip *hip, hiprtcProgram program, answer *out)
{
    size_t size = 0;
    if (hip->hiprtc.hiprtcGetProgramLogSize(program, &size) != HIPRTC_SUCCESS || size > LOG_LIMIT) {
        size = 0;
    }
    out->log = (char *)calloc(1, size + 1);
    if (out->log == NULL) {
        return false;
    }
    if (size > 0 && hip->hiprtc.hiprtcGetProgramLog(program, out->log) != HIPRTC_SUCCESS) {
        out->log[0] = '\0';
    }
    clean_log(out->log);
    return true;
}

static bool read_output(const kn_hip *hip, hiprtcProgram program, const kiln_source *source,
                        answer *out)
{
    size_t size = 0;
    out->result = hip->hiprtc.hiprtcGetCodeSize(program, &size);
    if (out->result != HIPRTC_SUCCESS || size > OUTPUT_LIMIT) {
        out->result = out->result == HIPRTC_SUCCESS ? HIPRTC_ERROR_OUT_OF_MEMORY : out->result;
        return true;
    }
    out->output = (char *)calloc(1, size + 1);
    out->output_size = size;
    out->lowered = (const char **)calloc(source->entry_count + 1, sizeof(*out->lowered));
    if (out->output == NULL || out->lowered == NULL) {
        return false;
    }
    out->result = hip->hiprtc.hiprtcGetCode(program, out->output);
    for (size_t i = 0; out->result == HIPRTC_SUCCESS && i < source->entry_count; i++) {
        out->result =
            hip->hiprtc.hiprtcGetLoweredName(program, source->entries[i], &out->lowered[i]);
        if (out->result == HIPRTC_SUCCESS && out->lowered[i] == NULL) {
            out->result = HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
        }
    }
    return true;
}

/* Fills `out` from a program that the caller destroys; false without memory. */
static bool run_hiprtc(const kn_hip *hip, const unit *what, const kiln_source *source,
                       hiprtcProgram *out_program, answer *out)
{
    const size_t headers = source->header_count;
    const char **arrays = (const char **)calloc(headers * 2 + 1, sizeof(*arrays));
    char **texts = (char **)calloc(headers + 1, sizeof(*texts));
    bool good = arrays != NULL && texts != NULL;
    for (size_t i = 0; good && i < headers; i++) {
        /* hipRTC reads to a NUL: without a copy, past the header's end, which is all the key has.
         */
        texts[i] = kn_text_copy_n((const char *)source->headers[i].text, source->headers[i].length);
        arrays[i] = texts[i];
        arrays[headers + i] = source->headers[i].name;
        good = texts[i] != NULL;
    }
    if (good) {
        out->result = hip->hiprtc.hiprtcCreateProgram(out_program, what->text, what->shown,
                                                      (int)headers, arrays, arrays + headers);
        for (size_t i = 0; out->result == HIPRTC_SUCCESS && i < source->entry_count; i++) {
            out->result = hip->hiprtc.hiprtcAddNameExpression(*out_program, source->entries[i]);
        }
        if (out->result == HIPRTC_SUCCESS) {
            kn_mutex_lock(&compiling);
            out->result =
                hip->hiprtc.hiprtcCompileProgram(*out_program, what->option_count, what->options);
            kn_mutex_unlock(&compiling);
        }
    }
    if (good && *out_program != NULL) {
        good = read_log(hip, *out_program, out) &&
               (out->result != HIPRTC_SUCCESS || read_output(hip, *out_program, source, out));
    }
    for (size_t i = 0; texts != NULL && i < headers; i++) {
        free(texts[i]);
    }
    free(texts);
    free((void *)arrays);
    return good;
}

static kiln_status fail_compile(const kn_hip *hip, const answer *from, const char *name,
                                kiln_diag *diag)
{
    const hiprtcResult result = from->result;
    const bool kernel = result == HIPRTC_ERROR_COMPILATION ||
                        result == HIPRTC_ERROR_INVALID_OPTION ||
                        result == HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    const char *text = hip->hiprtc.hiprtcGetErrorString(result);
    kiln_status status =
        kiln_diag_set(diag,
                      kernel                                 ? KILN_E_COMPILE
                      : result == HIPRTC_ERROR_OUT_OF_MEMORY ? KILN_E_NOMEM
                                                             : KILN_E_UNAVAILABLE,
                      kernel ? "see the compiler's log" : NULL, name, "hipRTC reports %s (%d)",
                      text != NULL ? text : "an error", result);
    kiln_diag_set_vendor_code(diag, result);
    kiln_diag_set_log(diag, from->log != NULL ? from->log : "",
                      from->log != NULL ? strlen(from->log) : 0);
    return status;
}

/* What hipRTC calls a success is looked at before it is kept: it may be for another target, cut
 * off, or without a kernel that was asked for. */
static kiln_status check_answer(const kiln_compile_request *request, const answer *from,
                                const char *name, kiln_diag *diag)
{
    char why[KN_CODE_OBJECT_WHY];
    if (!kn_code_object_check(from->output, from->output_size,
                              (const kn_hip_target *)request->target->handle, why)) {
        return kiln_diag_set(diag, KILN_E_REJECTED,
                             "install hipRTC and libamd_comgr of one release", name,
                             "what hipRTC made is refused: %s", why);
    }
    for (size_t i = 0; i < request->source->entry_count; i++) {
        if (!kn_code_object_has(from->output, from->output_size, from->lowered[i])) {
            return kiln_diag_set(diag, KILN_E_REJECTED,
                                 "install hipRTC and libamd_comgr of one release", name,
                                 "what hipRTC made has no %s", from->lowered[i]);
        }
    }
    return KILN_OK;
}

void kn_hip_lowered_fact(char out_name[KN_HIP_FACT], size_t entry)
{
    kn_text_putf(out_name, KN_HIP_FACT, "lowered:%zu", entry);
}

static kiln_status keep_answer(const kn_hip *hip, const kiln_compile_request *request,
                               const answer *from, const char *name, kiln_artifact *artifact,
                               kiln_diag *diag)
{
    const kiln_host *host = hip->host;
    kiln_status status =
        host->artifact_set(artifact, KILN_LANG_NONE, from->output, from->output_size);
    for (size_t i = 0; status == KILN_OK && i < request->source->entry_count; i++) {
        char fact[KN_HIP_FACT];
        kn_hip_lowered_fact(fact, i);
        status =
            host->artifact_set_fact(artifact, fact, from->lowered[i], strlen(from->lowered[i]) + 1);
    }
    if (status == KILN_OK && from->log[0] != '\0') {
        status = host->artifact_set_log(artifact, from->log, strlen(from->log));
    }
    return status == KILN_OK ? KILN_OK : kn_no_memory(diag, name);
}

/* With hip->lock held. */
static kiln_status compile_unit(kn_hip *hip, const kiln_compile_request *request, const unit *what,
                                kiln_artifact *artifact, kiln_diag *diag)
{
    hiprtcProgram program = NULL;
    answer made = {.result = HIPRTC_SUCCESS};
    kiln_status status = kn_hip_library_get(hip, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (!run_hiprtc(hip, what, request->source, &program, &made)) {
        status = kn_no_memory(diag, what->shown);
    } else if (made.result != HIPRTC_SUCCESS) {
        status = fail_compile(hip, &made, what->shown, diag);
    } else {
        status = check_answer(request, &made, what->shown, diag);
    }
    if (status == KILN_OK) {
        status = keep_answer(hip, request, &made, what->shown, artifact, diag);
    }
    free((void *)made.lowered);
    free(made.output);
    free(made.log);
    if (program != NULL) {
        (void)hip->hiprtc.hiprtcDestroyProgram(&program);
    }
    return status;
}

kiln_status kn_hip_compile(void *instance, const kiln_compile_request *request,
                           kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    kn_hip *hip = (kn_hip *)instance;
    unit what = {.shown = base_name(request->source)};
    (void)out_live;
    kiln_status status = check_source(request->source, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (!fill_unit(&what, request)) {
        status = kn_no_memory(diag, what.shown);
    } else {
        kn_mutex_lock(&hip->lock);
        status = compile_unit(hip, request, &what, artifact, diag);
        kn_mutex_unlock(&hip->lock);
    }
    unit_deinit(&what);
    return status;
}
