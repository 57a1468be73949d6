/* CUDA C++ -> CUBIN or PTX through NVRTC (NVRTC user guide, "Basic Usage"). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/helper.h"
#include "apis/cuda/backend/locate.h"
#include "apis/cuda/options/nvrtc_options.h"
#include "apis/cuda/options/nvrtc_process.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"
#include "sys/file.h"

/* As NVRTC takes it for the directory that it is: after "-I" it drops blanks and a "=", and in any
 * form blanks at the end; "-" is not a directory to it. */
static void add_include_dir(kn_gpu_options *list, const char *dir)
{
    const size_t length = strlen(dir);
    const bool blank = length > 0 && isspace((unsigned char)dir[length - 1]);
    kn_gpu_options_join(list, "--include-path=", strcmp(dir, "-") == 0 ? "./-" : dir,
                        blank ? "/." : "", "");
}

static void build_options(const kn_cuda *cuda, const kiln_compile_request *request,
                          kn_gpu_options *list)
{
    const kn_cuda_target *target = (const kn_cuda_target *)request->target->handle;
    const kiln_source *source = request->source;
    const char *uncached = kn_nvrtc_options_uncached(cuda->toolkit.major, cuda->toolkit.minor);
    char number[16];
    if (uncached != NULL) {
        kn_gpu_options_add(list, uncached);
    }
    if (target->exact) {
        kn_text_putf(number, sizeof(number), "%d%.1s", target->arch,
                     target->suffix != '\0' ? &target->suffix : "");
        kn_gpu_options_join(list, "--gpu-architecture=", "sm_", number, "");
    } else {
        const int arch = kn_cuda_virtual_arch(&cuda->toolkit, target->arch);
        kn_text_putf(number, sizeof(number), "%d%.1s", arch,
                     arch == target->arch && target->suffix != '\0' ? &target->suffix : "");
        kn_gpu_options_join(list, "--gpu-architecture=", "compute_", number, "");
    }
    for (size_t i = 0; i < source->define_count; i++) {
        const char *value = source->defines[i].value;
        kn_gpu_options_join(list, "-D", source->defines[i].name, "=", value != NULL ? value : "1");
    }
    for (size_t i = 0; i < source->option_count; i++) {
        kn_gpu_options_add(list, source->options[i]);
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
static void clean_log(kn_gpu_answer *answer)
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

static kn_gpu_output output_of(const kn_cuda_nvrtc *nvrtc, char kind)
{
    switch (kind) {
    case 'c':
        return (kn_gpu_output){nvrtc->nvrtcGetCUBINSize, nvrtc->nvrtcGetCUBIN};
    case 'l':
        return (kn_gpu_output){nvrtc->nvrtcGetLTOIRSize, nvrtc->nvrtcGetLTOIR};
    default:
        return (kn_gpu_output){nvrtc->nvrtcGetPTXSize, nvrtc->nvrtcGetPTX};
    }
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

static kiln_status fail_compile(kn_cuda *cuda, const kn_gpu_answer *answer, const kn_gpu_unit *unit,
                                kiln_diag *diag)
{
    char number[24];
    const char *fix =
        answer->result == KN_GPU_RTC_BUILTINS_FAILED
            ? "NVRTC's libnvrtc-builtins is missing or of another version: install both together"
            : NULL;
    return kn_gpu_rtc_fail(unit, answer, "NVRTC", result_text(cuda, answer->result, number), fix,
                           diag);
}

static kiln_status keep_answer(kn_cuda *cuda, const kiln_compile_request *request,
                               const kn_gpu_unit *unit, const kn_gpu_answer *answer,
                               kiln_artifact *artifact, kiln_diag *diag)
{
    if (unit->kind == 'l') {
        const kiln_status status = kn_cuda_lto_link(
            cuda, request, answer->output, answer->output_size, unit->shown, artifact, diag);
        if (status != KILN_OK) {
            return status;
        }
    } else if (cuda->host->artifact_set(artifact,
                                        unit->kind == 'c' ? KILN_LANG_CUBIN : KILN_LANG_PTX,
                                        answer->output, answer->output_size) != KILN_OK) {
        return kn_no_memory(diag, unit->shown);
    }
    return kn_gpu_rtc_keep(unit, answer, cuda->host, artifact, diag);
}

static kiln_status compile_unit(kn_cuda *cuda, const kiln_compile_request *request,
                                const kn_gpu_unit *unit, kiln_artifact *artifact, kiln_diag *diag)
{
    const kn_cuda_nvrtc *nvrtc = NULL;
    void *program = NULL;
    kn_gpu_answer answer;
    kiln_status status = KILN_MISS;
    kn_nvrtc_process_compiling(unit->options.items, unit->options.count);
    if (kn_cuda_helper_wanted(cuda, request)) {
        status = kn_cuda_helper_compile(cuda, unit, request->precompile, &answer);
    }
    if (status == KILN_MISS) {
        status = kn_cuda_nvrtc_get(cuda, &nvrtc, diag);
        if (status != KILN_OK) {
            return status;
        }
        status = kn_gpu_rtc_compile(&nvrtc->rtc, unit, request->source,
                                    output_of(nvrtc, unit->kind), &program, &answer);
    }
    clean_log(&answer);
    if (status != KILN_OK) {
        status = kn_no_memory(diag, unit->shown);
    } else if (answer.result != NVRTC_SUCCESS) {
        status = fail_compile(cuda, &answer, unit, diag);
    } else {
        status = keep_answer(cuda, request, unit, &answer, artifact, diag);
    }
    kn_gpu_answer_deinit(&answer);
    if (program != NULL) {
        (void)nvrtc->rtc.destroy(&program);
    }
    return status;
}

static kiln_status compile_source(kn_cuda *cuda, const kiln_compile_request *request,
                                  kiln_artifact *artifact, kiln_diag *diag)
{
    const kiln_source *source = request->source;
    const kn_cuda_target *target = (const kn_cuda_target *)request->target->handle;
    char *text = kn_text_copy_n((const char *)source->text, source->length); /* wants a NUL */
    char *name = name_nowhere(source);
    kn_gpu_unit unit = {
        .text = text,
        .name = name,
        .shown = name != NULL ? kn_path_name(name) : "kernel",
        .expressions = source->entries,
        .expression_count = source->entry_count,
        .kind = wants_lto(source) ? 'l'
                : target->exact   ? 'c'
                                  : 'p',
    };
    build_options(cuda, request, &unit.options);
    const kiln_status status = unit.options.failed || name == NULL || text == NULL
                                   ? kn_no_memory(diag, unit.shown)
                                   : compile_unit(cuda, request, &unit, artifact, diag);
    kn_gpu_options_deinit(&unit.options);
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
