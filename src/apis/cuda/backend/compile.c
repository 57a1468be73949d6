/* CUDA C++ -> CUBIN or PTX through NVRTC (NVRTC user guide, "Basic Usage"), with lowered names kept
 * as facts so that a hit gives them back as the compile did. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/helper.h"
#include "apis/cuda/backend/locate.h"
#include "apis/cuda/options/nvrtc_options.h"
#include "apis/cuda/options/nvrtc_process.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "sys/file.h"

enum { MAX_OPTIONS = 1024 };

/* The option list: borrowed strings, and made ones in `owned`. */
typedef struct option_list {
    const char *items[MAX_OPTIONS];
    char *owned[MAX_OPTIONS];
    int count, owned_count;
    bool failed;
} option_list;

static void add_option(option_list *list, const char *text)
{
    if (list->count == MAX_OPTIONS) {
        list->failed = true;
        return;
    }
    list->items[list->count++] = text;
}

static void add_joined(option_list *list, const char *a, const char *b, const char *c)
{
    kn_strbuf buffer;
    kn_strbuf_init(&buffer, 0);
    kn_strbuf_append_text(&buffer, a);
    kn_strbuf_append_text(&buffer, b);
    kn_strbuf_append_text(&buffer, c);
    char *text = kn_strbuf_detach(&buffer, NULL);
    if (text == NULL || list->owned_count == MAX_OPTIONS) {
        free(text);
        list->failed = true;
        return;
    }
    list->owned[list->owned_count++] = text;
    add_option(list, text);
}

static void list_deinit(option_list *list)
{
    for (int i = 0; i < list->owned_count; i++) {
        free(list->owned[i]);
    }
}

/* As NVRTC takes it for the directory that it is: after "-I" it drops blanks and a "=", and in any
 * form blanks at the end; "-" is not a directory to it. */
static void add_include_dir(option_list *list, const char *dir)
{
    const size_t length = strlen(dir);
    const bool blank = length > 0 && isspace((unsigned char)dir[length - 1]);
    add_joined(list, "--include-path=", strcmp(dir, "-") == 0 ? "./-" : dir, blank ? "/." : "");
}

static void build_options(const kn_cuda *cuda, const kiln_compile_request *request,
                          option_list *list)
{
    const kn_cuda_target *target = (const kn_cuda_target *)request->target->handle;
    const kiln_source *source = request->source;
    const char *uncached = kn_nvrtc_options_uncached(cuda->toolkit.major, cuda->toolkit.minor);
    char number[16];
    if (uncached != NULL) {
        add_option(list, uncached);
    }
    if (target->exact) {
        kn_text_putf(number, sizeof(number), "%d%.1s", target->arch,
                     target->suffix != '\0' ? &target->suffix : "");
        add_joined(list, "--gpu-architecture=", "sm_", number);
    } else {
        const int arch = kn_cuda_virtual_arch(&cuda->toolkit, target->arch);
        kn_text_putf(number, sizeof(number), "%d%.1s", arch,
                     arch == target->arch && target->suffix != '\0' ? &target->suffix : "");
        add_joined(list, "--gpu-architecture=", "compute_", number);
    }
    for (size_t i = 0; i < source->define_count; i++) {
        const char *value = source->defines[i].value;
        kn_strbuf define;
        kn_strbuf_init(&define, 0);
        kn_strbuf_printf(&define, "%s=%s", source->defines[i].name, value != NULL ? value : "1");
        add_joined(list, "-D", kn_strbuf_text(&define), "");
        list->failed = list->failed || !kn_strbuf_ok(&define);
        kn_strbuf_deinit(&define);
    }
    for (size_t i = 0; i < source->option_count; i++) {
        add_option(list, source->options[i]);
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        add_include_dir(list, source->include_dirs[i]);
    }
    const char *dir;
    for (size_t i = 0;
         (dir = kn_cuda_system_include_dir((void *)(uintptr_t)cuda, request->target, i)) != NULL;
         i++) {
        add_include_dir(list, dir);
    }
}

/* NVRTC searches the directory of the source's name by itself: the current one, for a plain name.
 * kiln gives every directory that is meant, so the name it gives lies in a directory that is not
 * there. (--no-source-include would also keep headers from finding those next to them.) */
static char *name_nowhere(const kiln_source *source)
{
    return kn_path_join(kn_cuda_names.nowhere,
                        source->name != NULL ? kn_path_name(source->name) : "kernel");
}

/* Takes that directory out of a log, so that it names the source as its author does. */
static void clean_log(kn_cuda_answer *answer)
{
    const char *nowhere = kn_cuda_names.nowhere;
    const size_t length = strlen(nowhere);
    char *at = answer->log == NULL ? NULL : strstr(answer->log, nowhere);
    if (at == NULL) {
        return;
    }
    for (; at != NULL; at = strstr(at, nowhere)) {
        memmove(at, at + length, strlen(at + length) + 1);
    }
    answer->log_length = strlen(answer->log);
}

static bool wants_lto(const kiln_source *source)
{
    for (size_t i = 0; i < source->option_count; i++) {
        if (strcmp(source->options[i], "-dlto") == 0 ||
            strcmp(source->options[i], "--dlink-time-opt") == 0) {
            return true;
        }
    }
    return false;
}

/* --- in this process -------------------------------------------------------------------------- */

/* Larger ones are not believed. */
#define LOG_LIMIT ((size_t)64 << 20)
#define OUTPUT_LIMIT ((size_t)1 << 30)

typedef nvrtcResult get_size_fn(nvrtcProgram program, size_t *size);
typedef nvrtcResult get_bytes_fn(nvrtcProgram program, char *bytes);

static nvrtcResult size_of_output(const kn_cuda_nvrtc *nvrtc, nvrtcProgram program, char kind,
                                  size_t *out_size, get_bytes_fn **out_get)
{
    get_size_fn *get_size = kind == 'c'   ? nvrtc->nvrtcGetCUBINSize
                            : kind == 'l' ? nvrtc->nvrtcGetLTOIRSize
                                          : nvrtc->nvrtcGetPTXSize;
    *out_get = kind == 'c'   ? nvrtc->nvrtcGetCUBIN
               : kind == 'l' ? nvrtc->nvrtcGetLTOIR
                             : nvrtc->nvrtcGetPTX;
    *out_size = 0;
    return get_size == NULL || *out_get == NULL ? NVRTC_ERROR_INVALID_OPTION
                                                : get_size(program, out_size);
}

/* Copies log, output and lowered names out of a program: answer->bytes holds log and output. */
static kiln_status read_answer(const kn_cuda_nvrtc *nvrtc, nvrtcProgram program,
                               const kn_cuda_unit *unit, kn_cuda_answer *answer)
{
    size_t log_size = 0;
    size_t output_size = 0;
    get_bytes_fn *get_bytes = NULL;
    if (nvrtc->nvrtcGetProgramLogSize(program, &log_size) != NVRTC_SUCCESS ||
        log_size > LOG_LIMIT) {
        log_size = 0;
    }
    if (answer->result == NVRTC_SUCCESS) {
        answer->result = size_of_output(nvrtc, program, unit->kind, &output_size, &get_bytes);
    }
    if (output_size > OUTPUT_LIMIT) {
        answer->result = NVRTC_ERROR_OUT_OF_MEMORY; /* as large as this, it would be */
        output_size = 0;
    }
    answer->bytes = (char *)calloc(1, log_size + output_size + 2);
    if (answer->bytes == NULL) {
        return KILN_E_NOMEM;
    }
    if (log_size > 0 && nvrtc->nvrtcGetProgramLog(program, answer->bytes) != NVRTC_SUCCESS) {
        answer->bytes[0] = '\0';
    }
    answer->log = answer->bytes;
    answer->log_length = strlen(answer->bytes);
    if (answer->result == NVRTC_SUCCESS) {
        answer->output = answer->bytes + log_size + 1;
        answer->output_size = output_size;
        answer->result = get_bytes(program, answer->bytes + log_size + 1);
    }
    for (size_t i = 0; answer->result == NVRTC_SUCCESS && i < unit->expression_count; i++) {
        const char **name = &answer->lowered[answer->lowered_count++];
        answer->result = nvrtc->nvrtcGetLoweredName(program, unit->expressions[i], name);
        if (answer->result == NVRTC_SUCCESS && *name == NULL) {
            answer->result = NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
        }
    }
    return KILN_OK;
}

/* `out_program` keeps the lowered names alive; destroyed by the caller. */
static kiln_status compile_here(const kn_cuda_nvrtc *nvrtc, const kn_cuda_unit *unit,
                                const kiln_source *source, nvrtcProgram *out_program,
                                kn_cuda_answer *answer)
{
    const size_t headers = source->header_count;
    memset(answer, 0, sizeof(*answer));
    answer->lowered = (const char **)calloc(unit->expression_count + 1, sizeof(*answer->lowered));
    const char **arrays = (const char **)calloc(headers * 2 + 1, sizeof(*arrays));
    char **texts = (char **)calloc(headers + 1, sizeof(*texts));
    kiln_status status = KILN_E_NOMEM;
    if (answer->lowered == NULL || arrays == NULL || texts == NULL) {
        goto cleanup;
    }
    for (size_t i = 0; i < headers; i++) {
        /* NVRTC reads to a NUL: without a copy, past the header's end, which is all the key has. */
        const kiln_header *header = &source->headers[i];
        texts[i] = kn_text_copy_n(header->text, header->length);
        if (texts[i] == NULL) {
            goto cleanup;
        }
        arrays[i] = texts[i];
        arrays[headers + i] = header->name;
    }
    answer->result = nvrtc->nvrtcCreateProgram(out_program, unit->text, unit->name, (int)headers,
                                               arrays, arrays + headers);
    for (size_t i = 0; answer->result == NVRTC_SUCCESS && i < unit->expression_count; i++) {
        answer->result = nvrtc->nvrtcAddNameExpression(*out_program, unit->expressions[i]);
    }
    if (answer->result == NVRTC_SUCCESS) {
        answer->result =
            nvrtc->nvrtcCompileProgram(*out_program, unit->option_count, unit->options);
    }
    status = *out_program != NULL ? read_answer(nvrtc, *out_program, unit, answer) : KILN_OK;
cleanup:
    for (size_t i = 0; texts != NULL && i < headers; i++) {
        free(texts[i]);
    }
    free(texts);
    free((void *)arrays);
    return status;
}

/* --- what came of it -------------------------------------------------------------------------- */

static const char *result_text(kn_cuda *cuda, nvrtcResult result, char number[24])
{
    kn_text_putf(number, 24, "result %d", result);
    switch (result) {
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_INVALID_OPTION:
        return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
        return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    default:
        break;
    }
    const kn_cuda_nvrtc *nvrtc = kn_cuda_nvrtc_bound(cuda);
    const char *text = nvrtc != NULL ? nvrtc->nvrtcGetErrorString(result) : NULL;
    return text != NULL ? text : number;
}

static kiln_status fail_compile(kn_cuda *cuda, const kn_cuda_answer *answer, const char *name,
                                kiln_diag *diag)
{
    char number[24];
    const nvrtcResult result = answer->result;
    const bool kernel = result == NVRTC_ERROR_COMPILATION || result == NVRTC_ERROR_INVALID_OPTION ||
                        result == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    const char *fix = kernel ? "see the compiler's log" : NULL;
    if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) {
        fix = "NVRTC's libnvrtc-builtins is missing or of another version: install both together";
    }
    kiln_status code = kernel                                ? KILN_E_COMPILE
                       : result == NVRTC_ERROR_OUT_OF_MEMORY ? KILN_E_NOMEM
                                                             : KILN_E_UNAVAILABLE;
    kiln_status status =
        kiln_diag_set(diag, code, fix, name, "NVRTC reports %s", result_text(cuda, result, number));
    kiln_diag_set_vendor_code(diag, result);
    kiln_diag_set_log(diag, answer->log != NULL ? answer->log : "", answer->log_length);
    return status;
}

void kn_cuda_lowered_fact(char out_name[KN_CUDA_FACT], size_t entry)
{
    kn_text_putf(out_name, KN_CUDA_FACT, "lowered:%zu", entry);
}

/* Output, log and each entry's lowered name, by which C++ entries are found in the loaded code. */
static kiln_status keep_answer(kn_cuda *cuda, const kiln_compile_request *request,
                               const kn_cuda_unit *unit, const kn_cuda_answer *answer,
                               kiln_artifact *artifact, kiln_diag *diag)
{
    const kiln_host *host = cuda->host;
    kiln_status status = KILN_OK;
    if (unit->kind == 'l') {
        status = kn_cuda_lto_link(cuda, request, answer->output, answer->output_size, unit->shown,
                                  artifact, diag);
        if (status != KILN_OK) {
            return status;
        }
    } else {
        status = host->artifact_set(artifact, unit->kind == 'c' ? KILN_LANG_CUBIN : KILN_LANG_PTX,
                                    answer->output, answer->output_size);
    }
    for (size_t i = 0; status == KILN_OK && i < unit->expression_count; i++) {
        char fact[KN_CUDA_FACT];
        kn_cuda_lowered_fact(fact, i);
        status = host->artifact_set_fact(artifact, fact, answer->lowered[i],
                                         strlen(answer->lowered[i]) + 1);
    }
    if (status == KILN_OK && answer->log_length > 0) {
        status = host->artifact_set_log(artifact, answer->log, answer->log_length);
    }
    return status == KILN_OK ? KILN_OK : kn_no_memory(diag, unit->shown);
}

static kiln_status compile_unit(kn_cuda *cuda, const kiln_compile_request *request,
                                const kn_cuda_unit *unit, kiln_artifact *artifact, kiln_diag *diag)
{
    const kn_cuda_nvrtc *nvrtc = NULL;
    nvrtcProgram program = NULL;
    kn_cuda_answer answer;
    kiln_status status = KILN_MISS;
    kn_nvrtc_process_compiling(unit->options, (size_t)unit->option_count);
    if (kn_cuda_helper_wanted(cuda, request)) {
        status = kn_cuda_helper_compile(cuda, unit, request->precompile, &answer);
    }
    if (status == KILN_MISS) {
        status = kn_cuda_nvrtc_get(cuda, &nvrtc, diag);
        if (status != KILN_OK) {
            return status;
        }
        status = compile_here(nvrtc, unit, request->source, &program, &answer);
    }
    clean_log(&answer);
    if (status != KILN_OK) {
        status = kn_no_memory(diag, unit->shown);
    } else if (answer.result != NVRTC_SUCCESS) {
        status = fail_compile(cuda, &answer, unit->shown, diag);
    } else {
        status = keep_answer(cuda, request, unit, &answer, artifact, diag);
    }
    kn_cuda_answer_deinit(&answer);
    if (program != NULL) {
        (void)nvrtc->nvrtcDestroyProgram(&program);
    }
    return status;
}

static kiln_status compile_source(kn_cuda *cuda, const kiln_compile_request *request,
                                  kiln_artifact *artifact, kiln_diag *diag)
{
    const kiln_source *source = request->source;
    const kn_cuda_target *target = (const kn_cuda_target *)request->target->handle;
    option_list *list = (option_list *)calloc(1, sizeof(*list));
    char *text = kn_text_copy_n((const char *)source->text, source->length); /* wants a NUL */
    char *name = name_nowhere(source);
    if (list == NULL || name == NULL || text == NULL) {
        free(name);
        free(text);
        free(list);
        return kn_no_memory(diag, "kernel");
    }
    build_options(cuda, request, list);
    const kn_cuda_unit unit = {
        .text = text,
        .name = name,
        .shown = kn_path_name(name),
        .options = list->items,
        .option_count = list->count,
        .expressions = source->entries,
        .expression_count = source->entry_count,
        .kind = wants_lto(source) ? 'l'
                : target->exact   ? 'c'
                                  : 'p',
    };
    kiln_status status = list->failed ? kiln_diag_set(diag, KILN_E_NOMEM, NULL, name,
                                                      "too many options, or out of memory")
                                      : compile_unit(cuda, request, &unit, artifact, diag);
    list_deinit(list);
    free(list);
    free(text);
    free(name);
    return status;
}

kiln_status kn_cuda_compile(void *instance, const kiln_compile_request *request,
                            kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    kn_cuda *cuda = (kn_cuda *)instance;
    (void)out_live;
    if (strcmp(request->stage->name, kn_stage_cuda_jit) == 0) {
        return kn_cuda_jit(cuda, request, artifact, diag);
    }
    return compile_source(cuda, request, artifact, diag);
}
