/* HIP C++ -> code object through hipRTC ("HIP RTC Programming Guide"). */
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

/* Of several instances. */
static kn_mutex compiling = KN_MUTEX_INIT;

/* --- what is given ---------------------------------------------------------------------------- */

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

static void build_options(const kiln_compile_request *request, kn_gpu_options *list)
{
    const kn_hip_target *target = (const kn_hip_target *)request->target->handle;
    const kiln_source *source = request->source;
    kn_gpu_options_join(list, "--offload-arch=", target->name, "", "");
    for (size_t i = 0; i < source->define_count; i++) {
        const kiln_define *define = &source->defines[i];
        if (is_plain_define(define)) {
            kn_gpu_options_join(list, "-D", define->name, "=",
                                define->value != NULL ? define->value : "1");
        }
    }
    for (size_t i = 0; i < source->option_count; i++) {
        kn_gpu_options_add(list, source->options[i]);
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        kn_gpu_options_join(list, "-I", source->include_dirs[i], "", "");
    }
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

static kiln_status fail_compile(const kn_hip *hip, const kn_gpu_answer *from,
                                const kn_gpu_unit *what, kiln_diag *diag)
{
    const char *text = hip->hiprtc.hiprtcGetErrorString(from->result);
    char words[128];
    kn_text_putf(words, sizeof(words), "%.100s (%d)", text != NULL ? text : "an error",
                 from->result);
    return kn_gpu_rtc_fail(what, from, "hipRTC", words, NULL, diag);
}

/* What hipRTC calls a success is looked at before it is kept: it may be for another target, cut
 * off, or without a kernel that was asked for. */
static kiln_status check_answer(const kiln_compile_request *request, const kn_gpu_answer *from,
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

static kiln_status compile_unit(kn_hip *hip, const kiln_compile_request *request,
                                const kn_gpu_unit *what, kiln_artifact *artifact, kiln_diag *diag)
{
    void *program = NULL;
    kn_gpu_answer made;
    const kn_gpu_output output = {hip->hiprtc.hiprtcGetCodeSize, hip->hiprtc.hiprtcGetCode};
    kiln_status status =
        kn_gpu_rtc_compile(&hip->hiprtc.rtc, what, request->source, output, &program, &made);
    if (made.log != NULL) {
        clean_log(made.log);
        made.log_length = strlen(made.log);
    }
    if (status != KILN_OK) {
        status = kn_no_memory(diag, what->shown);
    } else if (made.result != 0) {
        status = fail_compile(hip, &made, what, diag);
    } else {
        status = check_answer(request, &made, what->shown, diag);
    }
    if (status == KILN_OK && hip->host->artifact_set(artifact, KILN_LANG_NONE, made.output,
                                                     made.output_size) != KILN_OK) {
        status = kn_no_memory(diag, what->shown);
    }
    if (status == KILN_OK) {
        status = kn_gpu_rtc_keep(what, &made, hip->host, artifact, diag);
    }
    kn_gpu_answer_deinit(&made);
    if (program != NULL) {
        (void)hip->hiprtc.rtc.destroy(&program);
    }
    return status;
}

kiln_status kn_hip_compile(void *instance, const kiln_compile_request *request,
                           kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    kn_hip *hip = (kn_hip *)instance;
    const kiln_source *source = request->source;
    (void)out_live;
    kiln_status status = check_source(source, diag);
    if (status != KILN_OK) {
        return status;
    }
    char *text = make_text(source);
    kn_gpu_unit what = {.text = text,
                        .name = base_name(source),
                        .shown = base_name(source),
                        .expressions = source->entries,
                        .expression_count = source->entry_count,
                        .turn = hip->in_turn ? &compiling : NULL};
    build_options(request, &what.options);
    if (text == NULL || what.options.failed) {
        status = kn_no_memory(diag, what.shown);
        goto cleanup;
    }
    kn_mutex_lock(&hip->lock);
    status = kn_hip_library_get(hip, diag);
    if (!hip->in_turn) {
        kn_mutex_unlock(&hip->lock);
    }
    if (status == KILN_OK) {
        status = compile_unit(hip, request, &what, artifact, diag);
    }
    if (hip->in_turn) {
        kn_mutex_unlock(&hip->lock);
    }
cleanup:
    kn_gpu_options_deinit(&what.options);
    free(text);
    return status;
}
