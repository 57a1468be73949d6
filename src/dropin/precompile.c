/* Filling the cache for the drop-in calls of other processes, from the same sources that
 * kiln_compile takes: where a drop-in's keys are those of a backend's stages that backend compiles;
 * where they are not, what the call itself would store is made here. */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/compile.h>
#include <kiln/unstable/explain.h>

#include "apis/opencl/backend/program.h"
#include "apis/opencl/dropin/assemble.h"
#include "apis/opencl/dropin/frontend.h"
#include "apis/opencl/dropin/make.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"
#include "core/build/plan.h"
#include "core/build/program_kernels.h"
#include "core/runtime/runtime.h"
#include "dropin/precompile.h"
#include "sized/sized.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/fpstate.h"

typedef struct ahead {
    const kiln_source *source;
    kiln_blob *blob;
    kiln_build_info *info;
    kiln_explanation_fn *visit; /* NULL: it is compiled */
    void *user;
} ahead;

static const char *name_of(const kiln_source *source)
{
    return source->name != NULL ? source->name : "a source";
}

/* --- OpenCL: the stage opencl.program --------------------------------------------------------- */

/* "-DNAME=VALUE ... -I directory ... options", as a program would write them. */
static kiln_status join_options(const kiln_source *source, kn_strbuf *out, kiln_diag *diag)
{
    for (size_t i = 0; i < source->define_count; i++) {
        const kiln_define *define = &source->defines[i];
        const char *value = define->value;
        if (strpbrk(define->name, " \t\"'\\") != NULL ||
            (value != NULL && strpbrk(value, " \t\"'\\") != NULL)) {
            return kiln_diag_set(
                diag, KILN_E_INVALID, "give it as an option, quoted as your program does",
                name_of(source), "%s has a value that programs quote in many ways", define->name);
        }
        kn_strbuf_printf(out, "-D%s%s%s ", define->name, value != NULL ? "=" : "",
                         value != NULL ? value : "");
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        kn_strbuf_printf(out, "-I %s ", source->include_dirs[i]);
    }
    for (size_t i = 0; i < source->option_count; i++) {
        kn_strbuf_printf(out, "%s ", source->options[i]);
    }
    return kn_strbuf_ok(out) ? KILN_OK : kn_no_memory(diag, name_of(source));
}

typedef struct compile_call {
    kn_opencl_call base; /* first */
    kn_wish_of of;
} compile_call;

/* Machine code in addition to NVIDIA's PTX; without it the program is as good as before. */
static void finish_program(const kn_opencl_request *request, kiln_blob **blob)
{
    kiln_blob *both = NULL;
    if (kn_opencl_assemble_wanted(request, *blob) &&
        kn_opencl_assemble_blob(request->unit.capability, *blob, &both, NULL) == KILN_OK) {
        kiln_blob_release(*blob);
        *blob = both;
    }
}

static kiln_status read_entry(const compile_call *call, cl_program program, kiln_blob **out_blob,
                              kiln_diag *diag)
{
    const kn_opencl_request *request = call->base.request;
    const bool is_pocl = request->unit.is_pocl;
    switch (call->of) {
    case KN_WISH_OF_LAYER:
        return kn_opencl_make_answered(&request->site, request->wish, is_pocl, program, out_blob,
                                       diag);
    case KN_WISH_OF_LAYER_UNIT:
        return kn_opencl_make_unit_answers(&request->site, request->wish, program, out_blob, diag);
    case KN_WISH_OF_DROPIN:
        break;
    }
    return kn_opencl_make_bytes(&request->site, request->wish, is_pocl, program, out_blob, diag);
}

static kiln_status make_program(const compile_call *call, cl_program *out_program, kiln_diag *diag)
{
    kn_opencl_request *request = call->base.request;
    kn_opencl_kernels kernels = {NULL, 0};
    const bool unit = call->of == KN_WISH_OF_LAYER_UNIT;
    kn_fp_state fp;
    kn_fp_enter(&fp);
    const kiln_status status = unit ? kn_opencl_make_unit(request, out_program, diag)
                                    : kn_opencl_make(request, out_program, diag);
    kn_fp_leave(&fp);
    /* Some drivers compile when a kernel is made, and have no binary before. */
    if (status == KILN_OK && !unit &&
        kn_opencl_kernels_init(&request->site, *out_program, NULL, 0, &kernels, NULL) == KILN_OK) {
        kn_opencl_kernels_deinit(&request->api, &kernels);
    }
    return status;
}

/* Binaries are read at once, also PoCL's: nothing will be launched here. */
static void compile_program(void *user, kn_output *output, kiln_diag *diag)
{
    compile_call *call = (compile_call *)user;
    cl_program program = NULL;
    output->outcome = KN_OUTCOME_FAILED;
    if (make_program(call, &program, diag) != KILN_OK) {
        return;
    }
    const kiln_status status = read_entry(call, program, &output->blob, diag);
    if (status == KILN_OK) {
        output->outcome = KN_OUTCOME_STORED;
        if (call->of != KN_WISH_OF_LAYER_UNIT) {
            finish_program(call->base.request, &output->blob);
        }
    } else if (status != KILN_E_NOMEM) {
        output->outcome = KN_OUTCOME_PRIVATE;
        output->reason = "the driver returns no binary of it";
    }
    (void)call->base.request->api.clReleaseProgram(program);
}

static uint32_t recorded_flags(kn_wish_of of)
{
    return (of != KN_WISH_OF_DROPIN ? KN_RECORDED_LAYER : 0) |
           (of == KN_WISH_OF_LAYER_UNIT ? KN_RECORDED_COMPILE : 0);
}

/* Nothing is loaded. What is not stored is no bypass, but a failure. */
static const kn_frontend programs = {.compile = compile_program, .is_step = true, .retries = 1};

/* The kernels that are asked for are in the binary: it is loaded to see. */
static kiln_status check_entries(const kn_opencl_request *request, const ahead *job,
                                 kiln_diag *diag)
{
    cl_program program = NULL;
    kn_opencl_kernels kernels = {NULL, 0};
    kn_strbuf names;
    if (job->source->entry_count == 0) {
        return KILN_OK;
    }
    kiln_status status = kn_opencl_make_loaded(request, job->blob, &program, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_strbuf_init(&names, 0);
    status = kn_opencl_kernels_init(&request->site, program, NULL, 0, &kernels, diag);
    if (status == KILN_OK) {
        kn_opencl_kernels_to_entries(&kernels, &names);
        status = kn_strbuf_ok(&names)
                     ? kn_kernels_check(kn_span_of(kn_strbuf_text(&names), names.length),
                                        job->source, diag)
                     : kn_no_memory(diag, name_of(job->source));
        kn_opencl_kernels_deinit(&request->api, &kernels);
    }
    kn_strbuf_deinit(&names);
    (void)request->api.clReleaseProgram(program);
    return status;
}

static kiln_status explain_program(const kn_opencl_request *request, const ahead *job,
                                   kiln_diag *diag)
{
    const kiln_explanation bypass = {.struct_size = sizeof(bypass),
                                     .stage = kn_stage_opencl_program,
                                     .why = KILN_WHY_BYPASS,
                                     .detail = request->bypass};
    return request->bypass[0] != '\0'
               ? job->visit(job->user, &bypass)
               : kiln_cache_explain(request->cache, request->recipe, job->visit, job->user, diag);
}

static kiln_status get_program(kn_opencl_request *request, kn_wish_of of, ahead *job,
                               kiln_diag *diag)
{
    compile_call call = {.base = {.request = request, .recorded = recorded_flags(of)}, .of = of};
    if (job->visit != NULL) {
        return explain_program(request, job, diag);
    }
    if (request->bypass[0] != '\0') {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "remove what keeps it from being cached",
                             name_of(job->source), "it bypasses the cache: %s", request->bypass);
    }
    kn_job made;
    const kn_outcome outcome = kn_opencl_run(&made, &programs, &call.base, name_of(job->source));
    job->info->key = made.key;
    job->info->origin = made.origin;
    job->info->compiles = made.ran && outcome != KN_OUTCOME_FAILED ? 1 : 0;
    job->info->compile_ns = made.compile_ns;
    kiln_status status = made.status;
    if (outcome == KN_OUTCOME_PRIVATE) {
        status =
            kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, name_of(job->source), "%s", made.reason);
    } else if (status != KILN_OK) {
        kn_diag_move(diag, &made.why);
    } else {
        job->blob = kiln_blob_retain(made.blob);
        status = check_entries(request, job, diag);
    }
    kn_job_deinit(&made);
    return status;
}

static kiln_status serve_wish(kiln_cache *cache, kn_opencl_wish *wish, kn_wish_of of, ahead *job,
                              kiln_diag *diag)
{
    kn_opencl_request request;
    kiln_status status = kn_opencl_request_init(&request, cache, wish, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (of != KN_WISH_OF_DROPIN && request.bypass[0] == '\0') {
        status = kn_opencl_request_mark_layer(&request, of == KN_WISH_OF_LAYER_UNIT, diag);
    }
    if (status == KILN_OK) {
        status = get_program(&request, of, job, diag);
    }
    kn_opencl_request_deinit(&request);
    return status;
}

kiln_status kn_dropin_compile_wish(kiln_cache *cache, kn_opencl_wish *wish, kn_wish_of of,
                                   const kiln_source *source, kiln_blob **out_blob,
                                   kiln_build_info *info, kiln_diag *diag)
{
    ahead job = {.source = source, .info = info};
    kiln_status status = serve_wish(cache, wish, of, &job, diag);
    *out_blob = job.blob;
    return status;
}

static kiln_status compile_opencl(kiln_runtime *runtime, const kn_plan *plan, ahead *job,
                                  kiln_diag *diag)
{
    const kn_opencl_device *device = (const kn_opencl_device *)plan->build.device;
    const kiln_source *source = job->source;
    kn_strbuf options;
    if (source->language != KILN_LANG_OPENCL_C || source->header_count > 0) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "give OpenCL C, and headers as files",
                             name_of(source), "kiln_opencl_build_program takes text alone");
    }
    char *text = kn_text_copy_n((const char *)source->text, source->length);
    kn_opencl_wish *wish = NULL;
    kn_strbuf_init(&options, 0);
    kiln_status status =
        text != NULL ? join_options(source, &options, diag) : kn_no_memory(diag, name_of(source));
    if (status == KILN_OK) {
        status = kn_opencl_wish_create_plain(device->context, device->unit->device, text,
                                             kn_strbuf_text(&options), &wish, diag);
    }
    if (status == KILN_OK) {
        status = serve_wish(runtime->cache, wish, KN_WISH_OF_DROPIN, job, diag);
    }
    kn_opencl_wish_release(wish);
    kn_strbuf_deinit(&options);
    free(text);
    return status;
}

/* --- CUDA, HIP: the keys of the stages, with every definition an option ----------------------- */

/* A source as kiln_nvrtc_compile and kiln_hiprtc_compile make one of a request. */
typedef struct rtc_source {
    kiln_source source;
    const char **options;
    char **defines;
    size_t define_count;
} rtc_source;

static void rtc_source_deinit(rtc_source *own)
{
    for (size_t i = 0; i < own->define_count; i++) {
        free(own->defines[i]);
    }
    free(own->defines);
    free(own->options);
}

static kiln_status rtc_source_init(rtc_source *own, const kiln_source *source, kiln_diag *diag)
{
    const size_t count = source->define_count + source->option_count;
    own->source = *source;
    own->options = (const char **)calloc(count + 1, sizeof(char *));
    own->defines = (char **)calloc(source->define_count + 1, sizeof(char *));
    if (own->options == NULL || own->defines == NULL) {
        return kn_no_memory(diag, name_of(source));
    }
    for (size_t i = 0; i < source->define_count; i++) {
        const kiln_define *define = &source->defines[i];
        kn_strbuf text;
        kn_strbuf_init(&text, 0);
        kn_strbuf_printf(&text, "-D%s%s%s", define->name, define->value != NULL ? "=" : "",
                         define->value != NULL ? define->value : "");
        own->defines[i] = kn_strbuf_detach(&text, NULL);
        kn_strbuf_deinit(&text);
        if (own->defines[i] == NULL) {
            return kn_no_memory(diag, name_of(source));
        }
        own->options[i] = own->defines[i];
        own->define_count++;
    }
    for (size_t i = 0; i < source->option_count; i++) {
        own->options[source->define_count + i] = source->options[i];
    }
    own->source.options = own->options;
    own->source.option_count = count;
    own->source.define_count = 0;
    own->source.name = source->name != NULL ? kn_path_name(source->name) : NULL;
    return KILN_OK;
}

static kiln_status compile_rtc(kiln_runtime *runtime, const char *target, ahead *job,
                               kiln_diag *diag)
{
    rtc_source own = {0};
    kiln_status status = rtc_source_init(&own, job->source, diag);
    if (status == KILN_OK && job->visit != NULL) {
        status = kiln_explain(runtime, target, &own.source, job->visit, job->user, diag);
    } else if (status == KILN_OK) {
        status = kiln_compile_measured(runtime, target, &own.source, &job->blob, job->info, diag);
    }
    rtc_source_deinit(&own);
    return status;
}

/* --- which ------------------------------------------------------------------------------------ */

static kiln_status compile_for(kiln_runtime *runtime, const char *target, ahead *job,
                               kiln_diag *diag)
{
    const size_t length = strcspn(target, ":");
    if ((length == 4 && kn_text_starts(target, "cuda")) ||
        (length == 3 && kn_text_starts(target, "hip"))) {
        return compile_rtc(runtime, target, job, diag);
    }
    if (length == 6 && kn_text_starts(target, "opencl")) {
        kn_plan plan;
        kiln_status status = kn_plan_open(runtime, target, job->source, NULL, &plan, diag);
        if (status == KILN_OK) {
            status = compile_opencl(runtime, &plan, job, diag);
        }
        kn_plan_close(&plan);
        return status;
    }
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "run the program once, then `kiln pack create`",
                         target,
                         "what its drop-in stores depends on what only the program knows (layouts, "
                         "constants, its context)");
}

static kiln_status serve_source(kiln_runtime *runtime, const char *target,
                                const kiln_source *source, ahead *job, kiln_diag *diag)
{
    kn_resolved resolved;
    kiln_status status = kn_source_resolve(source, &resolved, diag);
    if (status != KILN_OK) {
        return status;
    }
    /* The program's text has no directory of its own: what it includes is found by -I alone. */
    kiln_source given = resolved.source;
    const bool placed = resolved.include_dirs != NULL;
    given.include_dirs += placed ? 1 : 0;
    given.include_dir_count -= placed ? 1 : 0;
    job->source = &given;
    status = compile_for(runtime, target, job, diag);
    job->source = NULL;
    kn_resolved_deinit(&resolved);
    return status;
}

kiln_status kiln_dropin_compile(kiln_runtime *runtime, const char *target,
                                const kiln_source *source, kiln_blob **out_blob,
                                kiln_build_info *out_info, kiln_diag *diag)
{
    const uint64_t start = kn_clock_now();
    kiln_build_info info;
    *out_blob = NULL;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_build_info), out_info, &info, diag);
    if (status != KILN_OK) {
        return status;
    }
    info.stage_count = 1;
    ahead job = {.info = &info};
    status = serve_source(runtime, target, source, &job, diag);
    if (status == KILN_OK) {
        *out_blob = job.blob;
        info.total_ns = kn_clock_now() - start;
    } else {
        kiln_blob_release(job.blob);
        info = (kiln_build_info){.stage_count = 0};
    }
    info.log = "";
    kn_sized_end(KN_SIZED(kiln_build_info), &info, out_info);
    return status;
}

kiln_status kiln_dropin_explain(kiln_runtime *runtime, const char *target,
                                const kiln_source *source, kiln_explanation_fn *visit, void *user,
                                kiln_diag *diag)
{
    kiln_build_info unused = {.struct_size = sizeof(unused)};
    ahead job = {.source = source, .info = &unused, .visit = visit, .user = user};
    return serve_source(runtime, target, source, &job, diag);
}
