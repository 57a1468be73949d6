/* CUDA C++ -> CUBIN or PTX through NVRTC (NVRTC user guide, "Basic Usage"), with lowered names kept
 * as facts so that a hit gives them back as the compile did. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/instance.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "sys/file.h"

enum { MAX_OPTIONS = 1024, FACT_NAME = 600 };

/* The option list: borrowed strings, and made ones in `owned`. */
typedef struct option_list {
    const char *items[MAX_OPTIONS];
    char *owned[MAX_OPTIONS];
    int count, owned_count;
    bool failed;
} option_list;

static void add(option_list *list, const char *text)
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
    add(list, text);
}

static void list_deinit(option_list *list)
{
    for (int i = 0; i < list->owned_count; i++) {
        free(list->owned[i]);
    }
}

/* The highest virtual architecture that NVRTC has and the device is not below: what PTX is made
 * for. */
static int virtual_arch(const kn_cuda_nvrtc *nvrtc, int wanted)
{
    int archs[128];
    int count = 0;
    int best = 0;
    if (nvrtc->nvrtcGetNumSupportedArchs == NULL || nvrtc->nvrtcGetSupportedArchs == NULL ||
        nvrtc->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0 || count > 128 ||
        nvrtc->nvrtcGetSupportedArchs(archs) != NVRTC_SUCCESS) {
        return wanted;
    }
    for (int i = 0; i < count; i++) {
        if (archs[i] <= wanted && archs[i] > best) {
            best = archs[i];
        }
    }
    return best > 0 ? best : wanted;
}

static void build_options(const kn_cuda *cuda, const kn_cuda_nvrtc *nvrtc,
                          const kiln_compile_request *request, option_list *list)
{
    const kn_cuda_target *target = (const kn_cuda_target *)request->target->handle;
    const kiln_source *source = request->source;
    char number[16];
    if (target->exact) {
        kn_text_putf(number, sizeof(number), "%d%.1s", target->arch,
                     target->suffix != '\0' ? &target->suffix : "");
        add_joined(list, "--gpu-architecture=", "sm_", number);
    } else {
        kn_text_putf(number, sizeof(number), "%d", virtual_arch(nvrtc, target->arch));
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
        add(list, source->options[i]);
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        add_joined(list, "-I", source->include_dirs[i], "");
    }
    const char *dir;
    for (size_t i = 0;
         (dir = kn_cuda_system_include_dir((void *)(uintptr_t)cuda, request->target, i)) != NULL;
         i++) {
        add_joined(list, "-I", dir, "");
    }
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

static char *read_log(const kn_cuda_nvrtc *nvrtc, nvrtcProgram program, size_t *out_length)
{
    size_t size = 0;
    *out_length = 0;
    if (nvrtc->nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size <= 1) {
        return NULL;
    }
    char *log = (char *)malloc(size);
    if (log == NULL || nvrtc->nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) {
        free(log);
        return NULL;
    }
    *out_length = size - 1;
    return log;
}

static kiln_status fail(const kn_cuda_nvrtc *nvrtc, nvrtcResult result, const char *name,
                        const char *log, size_t log_length, kiln_diag *diag)
{
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
        kiln_diag_set(diag, code, fix, name, "NVRTC says %s", nvrtc->nvrtcGetErrorString(result));
    kiln_diag_set_vendor_code(diag, result);
    kiln_diag_set_log(diag, log != NULL ? log : "", log_length);
    return status;
}

/* Keeps each entry's lowered name: C++ entries are looked up by it in the loaded module. */
static kiln_status keep_lowered_names(const kn_cuda *cuda, const kn_cuda_nvrtc *nvrtc,
                                      nvrtcProgram program, const kiln_source *source,
                                      kiln_artifact *artifact, kiln_diag *diag)
{
    for (size_t i = 0; i < source->entry_count; i++) {
        const char *lowered = NULL;
        nvrtcResult result = nvrtc->nvrtcGetLoweredName(program, source->entries[i], &lowered);
        if (result != NVRTC_SUCCESS || lowered == NULL) {
            return fail(nvrtc, result, source->entries[i], NULL, 0, diag);
        }
        char fact[FACT_NAME];
        kn_text_putf(fact, sizeof(fact), "lowered:%s", source->entries[i]);
        if (cuda->host->artifact_set_fact(artifact, fact, lowered, strlen(lowered) + 1) !=
            KILN_OK) {
            return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "lowered names", "out of memory");
        }
    }
    return KILN_OK;
}

typedef nvrtcResult get_size_fn(nvrtcProgram program, size_t *size);
typedef nvrtcResult get_bytes_fn(nvrtcProgram program, char *bytes);

static kiln_status read_output(kn_cuda *cuda, const kn_cuda_nvrtc *nvrtc, nvrtcProgram program,
                               const kiln_compile_request *request, kiln_artifact *artifact,
                               kiln_diag *diag)
{
    const kn_cuda_target *target = (const kn_cuda_target *)request->target->handle;
    const char *name = request->source->name != NULL ? request->source->name : "kernel";
    const bool lto = wants_lto(request->source);
    get_size_fn *get_size = target->exact ? nvrtc->nvrtcGetCUBINSize : nvrtc->nvrtcGetPTXSize;
    get_bytes_fn *get_bytes = target->exact ? nvrtc->nvrtcGetCUBIN : nvrtc->nvrtcGetPTX;
    if (lto) {
        get_size = nvrtc->nvrtcGetLTOIRSize;
        get_bytes = nvrtc->nvrtcGetLTOIR;
    }
    if (get_size == NULL || get_bytes == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "use a newer CUDA toolkit", name,
                             "this NVRTC cannot give the output that was asked for");
    }
    size_t size = 0;
    nvrtcResult result = get_size(program, &size);
    if (result != NVRTC_SUCCESS || size == 0) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, name, "NVRTC gave no output (%d)",
                             result);
    }
    char *bytes = (char *)malloc(size);
    if (bytes == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "out of memory");
    }
    kiln_status status = KILN_OK;
    result = get_bytes(program, bytes);
    if (result != NVRTC_SUCCESS) {
        status = fail(nvrtc, result, name, NULL, 0, diag);
    } else if (lto) {
        status = kn_cuda_lto_link(cuda, target, bytes, size, name, artifact, diag);
    } else if (cuda->host->artifact_set(artifact, target->exact ? KILN_LANG_CUBIN : KILN_LANG_PTX,
                                        bytes, size) != KILN_OK) {
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "out of memory");
    }
    free(bytes);
    return status;
}

static kiln_status compile_program(kn_cuda *cuda, const kn_cuda_nvrtc *nvrtc, nvrtcProgram program,
                                   const kiln_compile_request *request, kiln_artifact *artifact,
                                   kiln_diag *diag)
{
    const kiln_source *source = request->source;
    const char *name = source->name != NULL ? source->name : "kernel";
    option_list *list = (option_list *)calloc(1, sizeof(*list));
    if (list == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "out of memory");
    }
    build_options(cuda, nvrtc, request, list);
    kiln_status status = KILN_OK;
    char *log = NULL;
    size_t log_length = 0;
    if (list->failed) {
        status =
            kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "too many options, or out of memory");
        goto cleanup;
    }
    for (size_t i = 0; i < source->entry_count; i++) {
        nvrtcResult result = nvrtc->nvrtcAddNameExpression(program, source->entries[i]);
        if (result != NVRTC_SUCCESS) {
            status = fail(nvrtc, result, source->entries[i], NULL, 0, diag);
            goto cleanup;
        }
    }
    nvrtcResult result = nvrtc->nvrtcCompileProgram(program, list->count, list->items);
    log = read_log(nvrtc, program, &log_length);
    if (result != NVRTC_SUCCESS) {
        status = fail(nvrtc, result, name, log, log_length, diag);
        goto cleanup;
    }
    status = read_output(cuda, nvrtc, program, request, artifact, diag);
    if (status == KILN_OK) {
        status = keep_lowered_names(cuda, nvrtc, program, source, artifact, diag);
    }
    if (status == KILN_OK && log != NULL &&
        cuda->host->artifact_set_log(artifact, log, log_length) != KILN_OK) {
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "out of memory");
    }
cleanup:
    free(log);
    list_deinit(list);
    free(list);
    return status;
}

static kiln_status compile_source(kn_cuda *cuda, const kiln_compile_request *request,
                                  kiln_artifact *artifact, kiln_diag *diag)
{
    const kiln_source *source = request->source;
    const char *name = source->name != NULL ? source->name : "kernel";
    const kn_cuda_nvrtc *nvrtc = NULL;
    kiln_status status = kn_cuda_nvrtc_get(cuda, &nvrtc, diag);
    if (status != KILN_OK) {
        return status;
    }
    /* NVRTC wants a NUL after the text; headers come as two parallel arrays. */
    nvrtcProgram program = NULL;
    char *text = kn_text_copy_n((const char *)source->text, source->length);
    const char **arrays = (const char **)calloc(source->header_count * 2 + 1, sizeof(*arrays));
    if (text == NULL || arrays == NULL) {
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, name, "out of memory");
        goto cleanup;
    }
    const char **names = arrays + source->header_count;
    for (size_t i = 0; i < source->header_count; i++) {
        arrays[i] = source->headers[i].text;
        names[i] = source->headers[i].name;
    }
    nvrtcResult result = nvrtc->nvrtcCreateProgram(&program, text, kn_path_name(name),
                                                   (int)source->header_count, arrays, names);
    if (result != NVRTC_SUCCESS) {
        status = fail(nvrtc, result, name, NULL, 0, diag);
        goto cleanup;
    }
    status = compile_program(cuda, nvrtc, program, request, artifact, diag);
cleanup:
    if (program != NULL) {
        (void)nvrtc->nvrtcDestroyProgram(&program);
    }
    free(arrays);
    free(text);
    return status;
}

kiln_status kn_cuda_compile(void *instance, const kiln_compile_request *request,
                            kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    kn_cuda *cuda = (kn_cuda *)instance;
    (void)out_live;
    if (strcmp(request->stage->name, "cuda.jit") == 0) {
        return kn_cuda_jit(cuda, request, artifact, diag);
    }
    return compile_source(cuda, request, artifact, diag);
}
