/* The compile stage: OpenCL C or SPIR-V to the driver's binary, with everything that a hit must
 * give back as a compile did. Knows nothing of keys or the cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/options.h"
#include "apis/opencl/backend/program.h"
#include "apis/opencl/backend/status.h"
#include "base/checked.h"
#include "base/stages.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"

static const kiln_stage binary_stage = {
    KN_STAGE_AT(opencl_binary), .output = KILN_LANG_NONE, .takes_source = true,
    .portable = false,          .needs_device = true,
};

static const kn_opencl_unit *unit_of(const kn_opencl *cl, const kiln_target *target)
{
    bool listed = target->has_device && target->device_index < cl->unit_count;
    return listed ? &cl->units[target->device_index] : NULL;
}

const kiln_stage *kn_opencl_stages(void *instance, const kiln_target *target,
                                   kiln_language language, size_t *out_count)
{
    const kn_opencl_unit *unit = unit_of((const kn_opencl *)instance, target);
    bool taken = language == KILN_LANG_OPENCL_C ||
                 (language == KILN_LANG_SPIRV && unit != NULL && unit->takes_spirv);
    *out_count = taken ? 1 : 0;
    return taken ? &binary_stage : NULL;
}

kiln_status kn_opencl_target_of_device(void *instance, uint32_t device_index,
                                       kiln_target *out_target, kiln_diag *diag)
{
    const kn_opencl *cl = (const kn_opencl *)instance;
    if (device_index >= cl->unit_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "naming an OpenCL target",
                             "there is no device %u", device_index);
    }
    *out_target = (kiln_target){.has_device = true, .device_index = device_index};
    out_target->searches_current = cl->units[device_index].is_pocl; /* -I. before all others */
    kn_text_put(out_target->name, sizeof(out_target->name), cl->units[device_index].info.target);
    return KILN_OK;
}

void kn_opencl_target_destroy(void *instance, kiln_target *target)
{
    (void)instance;
    (void)target; /* holds nothing */
}

const char *kn_opencl_system_include_dir(void *instance, const kiln_target *target, size_t index)
{
    /* Drivers carry their headers inside, and those are their identity's business. An include that
     * is in no include directory may still be found here by a driver that searches as a host's
     * compiler does: then it is in the key, and where it is in neither, in the key as missing. */
    static const char *const dirs[] = {"/usr/local/include", "/usr/include"};
    (void)instance;
    (void)target;
    return index < sizeof(dirs) / sizeof(dirs[0]) ? dirs[index] : NULL;
}

bool kn_opencl_ships_header(void *instance, const kiln_target *target, const char *name)
{
    (void)instance;
    (void)target;
    return strcmp(name, "opencl-c.h") == 0 || strcmp(name, "opencl-c-base.h") == 0;
}

/* Variables from which drivers take more options; their values are in the key. */
static const char *const variables[] = {
    "POCL_EXTRA_BUILD_FLAGS",      "AMD_OCL_BUILD_OPTIONS", "AMD_OCL_BUILD_OPTIONS_APPEND",
    "CLOVER_EXTRA_BUILD_OPTIONS",  "IGC_ExtraOCLOptions",   "IGC_ExtraOCLInternalOptions",
    "CLOVER_EXTRA_COMPILE_OPTIONS"};

const char *kn_opencl_uncacheable_option(void *instance, const kiln_source *source)
{
    kn_strbuf all; /* as the driver gets them: the value of a "-D" may be the next element */
    (void)instance;
    kn_strbuf_init(&all, 0);
    for (size_t i = 0; i < source->option_count; i++) {
        kn_strbuf_append_text(&all, i > 0 ? " " : "");
        kn_strbuf_append_text(&all, source->options[i]);
    }
    const char *reason = kn_strbuf_ok(&all) ? kn_opencl_options_reason(kn_strbuf_text(&all))
                                            : "an option is too long to be checked";
    for (size_t i = 0; reason == NULL && i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *text = kn_env_get(variables[i]);
        reason = text != NULL ? kn_opencl_options_reason(text) : NULL;
    }
    kn_strbuf_deinit(&all);
    return reason != NULL ? reason : kn_pocl_files_reason();
}

uint32_t kn_opencl_option_effects(void *instance, const kiln_source *source)
{
    (void)instance;
    for (size_t i = 0; i < source->option_count; i++) {
        if (kn_opencl_options_name_files(source->options[i])) {
            return KILN_OPTION_NAMES;
        }
    }
    return 0;
}

const kiln_include_rules kn_opencl_include_rules = {
    .complete = true,
    .option_effects = kn_opencl_option_effects,
};

typedef struct build {
    const kn_opencl *cl;
    const kn_opencl_unit *unit;
    const kiln_source *source;
    kn_opencl_site site;
    kn_opencl_input input;
    cl_program program;
    kn_opencl_kernels kernels;
    char *log;
} build;

/* A driver names its own temporary file in a log. Built again with the source's name in front, the
 * same errors carry the name that the user knows. Only for programs that fail: a name is not part
 * of the key, and must not be part of what is kept. */
static void name_errors(const build *b, kiln_diag *diag)
{
    kiln_diag named = KILN_DIAG_INIT;
    kn_strbuf text;
    cl_program program = NULL;
    char *log = NULL;
    if (diag == NULL || b->source->name == NULL || b->input.file_count > 0 ||
        strpbrk(b->source->name, "\"\\\r\n") != NULL) {
        return;
    }
    kn_strbuf_init(&text, 0);
    kn_strbuf_printf(&text, "#line 1 \"%s\"\n", kn_path_name(b->source->name));
    kn_strbuf_append(&text, b->input.text, b->input.length);
    if (kn_strbuf_ok(&text) &&
        kn_opencl_build_source(&b->site, b->source->language, kn_strbuf_text(&text), text.length,
                               b->input.options, &program, &log, &named) == KILN_E_COMPILE &&
        named.log != NULL) {
        kiln_diag_set_log(diag, named.log, named.log_length);
    }
    if (program != NULL) {
        (void)b->site.api->clReleaseProgram(program);
    }
    free(log);
    kn_strbuf_deinit(&text);
    kiln_diag_clear(&named);
}

static void clean_logs(build *b, kiln_diag *diag)
{
    char *log = kn_opencl_input_clean_log(&b->input, b->log);
    if (log != NULL) {
        free(b->log);
        b->log = log;
    }
    log = diag != NULL ? kn_opencl_input_clean_log(&b->input, diag->log) : NULL;
    if (log != NULL) {
        kiln_diag_set_log(diag, log, strlen(log));
    }
    free(log);
}

static kiln_status run_build(build *b, kiln_diag *diag)
{
    const kiln_source *source = b->source;
    kiln_status status = kn_opencl_input_enter(&b->input, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_opencl_build_source(&b->site, source->language, b->input.text, b->input.length,
                                    b->input.options, &b->program, &b->log, diag);
    if (status == KILN_E_COMPILE && source->language == KILN_LANG_OPENCL_C) {
        name_errors(b, diag);
    }
    kn_opencl_input_leave(&b->input);
    clean_logs(b, diag);
    return status;
}

static kiln_status set_fact(const build *b, kiln_artifact *artifact, const char *name,
                            const char *text)
{
    return b->cl->host->artifact_set_fact(artifact, name, text, strlen(text));
}

/* Making the kernels also makes drivers that defer the work until then do it now: the binary of
 * some is empty before. */
static kiln_status keep_params(build *b, kiln_artifact *artifact, kiln_diag *diag)
{
    kn_strbuf params, entries;
    kiln_status status = kn_opencl_kernels_init(&b->site, b->program, NULL, 0, &b->kernels, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_strbuf_init(&params, 0);
    kn_strbuf_init(&entries, 0);
    kn_opencl_kernels_to_fact(&b->kernels, &params);
    kn_opencl_kernels_to_entries(&b->kernels, &entries);
    status = kn_strbuf_ok(&params) && kn_strbuf_ok(&entries)
                 ? set_fact(b, artifact, KN_OPENCL_FACT_PARAMS, kn_strbuf_text(&params))
                 : KILN_E_NOMEM;
    if (status == KILN_OK) {
        status = set_fact(b, artifact, KILN_FACT_ENTRIES, kn_strbuf_text(&entries));
    }
    kn_strbuf_deinit(&entries);
    kn_strbuf_deinit(&params);
    return status;
}

static kiln_status keep_capture(const build *b, bool read_later, kiln_artifact *artifact)
{
    kiln_status status = KILN_OK;
    if (!b->unit->is_pocl || b->source->language != KILN_LANG_OPENCL_C) {
        return KILN_OK;
    }
    kn_strbuf shapes;
    kn_strbuf_init(&shapes, 0);
    if (!read_later) {
        kn_opencl_shapes_asked_for(&b->kernels, &shapes);
    }
    status = kn_strbuf_ok(&shapes)
                 ? set_fact(b, artifact, KN_OPENCL_FACT_SHAPES, kn_strbuf_text(&shapes))
                 : KILN_E_NOMEM;
    kn_strbuf_deinit(&shapes);
    if (status == KILN_OK) {
        status = set_fact(b, artifact, KN_OPENCL_FACT_OPTIONS, b->input.options);
    }
    if (status == KILN_OK && b->input.dir != NULL) {
        status = set_fact(b, artifact, KN_OPENCL_FACT_DIR, b->input.dir);
    }
    return status;
}

/* The program works without its binary: what keeps it from being read back costs the cache, and not
 * the build that worked. */
static kiln_status do_without_binary(const build *b, bool want_live, const kiln_diag *reason,
                                     kiln_diag *diag)
{
    char line[1024];
    const char *why = reason->why[0] != '\0' ? reason->why : "it is empty";
    kn_text_putf(
        line, sizeof(line),
        "OpenCL: the driver returns no binary of a program that it built (%s); the program "
        "works, but is compiled at every start",
        why);
    b->cl->host->log(KILN_LOG_WARN, line);
    return want_live ? KILN_OK
                     : kiln_diag_set(diag, KILN_E_UNSUPPORTED, "compile where it is used",
                                     "compiling an OpenCL program", "%s gives no binaries: %s",
                                     b->unit->info.name, why);
}

kiln_status kn_opencl_keep_code(const kn_opencl_unit *unit, const kiln_host *host, const char *ptx,
                                kiln_artifact *artifact, kiln_diag *diag)
{
    kn_strbuf code;
    kn_strbuf_init(&code, 0);
    kiln_status status = kn_nvidia_assemble(unit->capability, ptx, &code, diag);
    if (status == KILN_OK) {
        status = host->artifact_set_fact(artifact, KN_OPENCL_FACT_CODE, code.data, code.length);
    }
    kn_strbuf_deinit(&code);
    return status;
}

/* What is compiled for later is finished at once. Where that fails, the PTX is all there is. */
static void finish_binary(const build *b, const char *data, size_t size, kiln_artifact *artifact)
{
    char *options = kn_opencl_input_load_options(b->source);
    if (options != NULL && kn_nvidia_can_assemble(b->unit->capability, data, size, options)) {
        kn_ignore(kn_opencl_keep_code(b->unit, b->cl->host, data, artifact, NULL));
    }
    free(options);
}

static kiln_status keep_binary(const build *b, cl_program program, kiln_artifact *artifact,
                               bool want_live, kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0;
    kiln_diag reason = KILN_DIAG_INIT;
    kiln_status status = kn_pocl_check_linker(b->unit->takes_linker, &reason);
    if (status == KILN_OK && b->unit->is_pocl) {
        status = kn_pocl_check_names(b->site.api, program, &reason);
    }
    if (status == KILN_OK) {
        status = kn_opencl_read_binary(&b->site, program, &data, &size, &reason);
    }
    if (status == KILN_OK && size > 0) {
        status = b->cl->host->artifact_set(artifact, KILN_LANG_NONE, data, size);
        if (status == KILN_OK && !want_live) {
            finish_binary(b, data, size, artifact);
        }
    } else if (want_live || status != KILN_E_NOMEM) {
        status = do_without_binary(b, want_live, &reason, diag);
    }
    kiln_diag_clear(&reason);
    free(data);
    return status;
}

/* PoCL compiles every kernel of a program before it gives the binary, which takes up to fifty times
 * as long as the build. Nobody who wants to launch should wait for that: capture.c reads it later.
 * True when `artifact` is left without bytes for it. */
static bool is_read_later(const build *b, const kiln_compile_request *request)
{
    return request->want_live && request->device != NULL && b->unit->is_pocl &&
           b->source->language == KILN_LANG_OPENCL_C && b->source->text != NULL;
}

static kiln_status keep_artifact(build *b, bool read_later, kiln_artifact *artifact,
                                 kiln_diag *diag)
{
    kiln_status status = keep_params(b, artifact, diag);
    if (status == KILN_OK) {
        status = keep_capture(b, read_later, artifact);
    }
    if (status == KILN_OK && b->log != NULL) {
        status = b->cl->host->artifact_set_log(artifact, b->log, strlen(b->log));
    }
    if (status == KILN_E_NOMEM) {
        (void)kiln_diag_set(diag, status, NULL, "keeping an OpenCL binary", NULL);
    }
    return status;
}

/* The opened device's context, or one for this compile. */
static kiln_status find_context(build *b, void *device, cl_context *out_own, kiln_diag *diag)
{
    cl_int code = CL_SUCCESS;
    b->site.api = &b->cl->api;
    b->site.device = b->unit->device;
    if (device != NULL) {
        b->site.context = ((kn_opencl_device *)device)->context;
        return KILN_OK;
    }
    *out_own = b->cl->api.clCreateContext(NULL, 1, &b->unit->device, NULL, NULL, &code);
    b->site.context = *out_own;
    return *out_own != NULL
               ? KILN_OK
               : kn_opencl_fail(diag, "opening an OpenCL device", "clCreateContext", code);
}

/* NULL, for lack of memory, is not a failure: the artifact can be loaded. */
static kn_opencl_program *hand_over(build *b, const kn_opencl_device *device,
                                    const kiln_artifact *artifact)
{
    kn_opencl_program *live =
        kn_opencl_program_adopt(device, b->program, &b->kernels, b->source, artifact);
    if (live != NULL) {
        b->program = NULL;
        b->kernels = (kn_opencl_kernels){0};
    }
    return live;
}

/* The binary, and the program itself where it is to be launched at once. */
static kiln_status give_artifact(build *b, const kiln_compile_request *request,
                                 kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    const kn_opencl_device *device = (const kn_opencl_device *)request->device;
    cl_program program = b->program;
    kiln_status status = KILN_OK;
    artifact->later = is_read_later(b, request);
    kn_opencl_program *live = artifact->later ? hand_over(b, device, artifact) : NULL;
    if (live == NULL || !live->capture.enabled) {
        artifact->later = false; /* there will be no capture that could read it */
        status = keep_binary(b, program, artifact, request->want_live, diag);
    }
    if (status == KILN_OK && live == NULL && request->want_live && device != NULL) {
        live = hand_over(b, device, artifact);
    }
    if (status != KILN_OK && live != NULL) {
        kn_opencl_program_unload(request->device, live);
        live = NULL;
    }
    if (live != NULL) {
        *out_live = live;
    }
    return status;
}

kiln_status kn_opencl_compile(void *instance, const kiln_compile_request *request,
                              kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    build b = {.cl = (const kn_opencl *)instance, .source = request->source};
    cl_context own = NULL;
    b.unit = unit_of(b.cl, request->target);
    if (b.unit == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "name a device that `kiln devices` lists",
                             "compiling an OpenCL program", "%s is not a device of this machine",
                             request->target->name);
    }
    kiln_status status = find_context(&b, request->device, &own, diag);
    if (status == KILN_OK) {
        status = kn_opencl_input_init(&b.input, b.source, NULL, diag);
    }
    if (status == KILN_OK) {
        status = run_build(&b, diag);
    }
    if (status == KILN_OK) {
        status = keep_artifact(&b, is_read_later(&b, request), artifact, diag);
    }
    if (status == KILN_OK) {
        status = give_artifact(&b, request, artifact, out_live, diag);
    }
    kn_opencl_kernels_deinit(&b.cl->api, &b.kernels);
    if (b.program != NULL) {
        (void)b.cl->api.clReleaseProgram(b.program);
    }
    free(b.log);
    kn_opencl_input_deinit(&b.input);
    if (own != NULL) {
        (void)b.cl->api.clReleaseContext(own);
    }
    return status;
}
