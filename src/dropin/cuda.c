/* Level 2: NVRTC through the cache: the walk of core/walk/build.c without its load, for a target
 * that the options name, on the cuda backend opened without its driver. */
#include "kiln/cuda.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "core/runtime/driver.h"
#include "core/walk/build.h"
#include "hal/artifact.h"
#include "hal/registry.h"
#include "sized/sized.h"

static const char compiling[] = "kiln_nvrtc_compile"; /* what fails without memory */

/* The request's options, with what core handles by itself taken out. */
typedef struct parsed_options {
    char arch[32];
    const char **options, **folders;
    size_t option_count, folder_count;
} parsed_options;

/* The value of an option that is written "-xVALUE", "--long=VALUE", or in two; NULL if this is
 * another option. *index moves to the last element used. */
static const char *value_of(const kiln_nvrtc_request *request, size_t *index, const char *brief,
                            bool joined, const char *full)
{
    const char *option = request->options[*index];
    const char *next = *index + 1 < request->option_count ? request->options[*index + 1] : NULL;
    const size_t brief_length = strlen(brief);
    const size_t full_length = strlen(full);
    if (strcmp(option, brief) == 0 || strcmp(option, full) == 0) {
        *index += next != NULL;
        return next;
    }
    if (strncmp(option, full, full_length) == 0 && option[full_length] == '=') {
        return option + full_length + 1;
    }
    if (strncmp(option, brief, brief_length) == 0 && (joined || option[brief_length] == '=')) {
        return option + brief_length + (option[brief_length] == '=');
    }
    return NULL;
}

/* NVRTC takes blanks off where kiln would take them for part of a directory's name. */
static bool has_odd_blanks(const char *value)
{
    const size_t length = strlen(value);
    return length == 0 || isspace((unsigned char)value[0]) ||
           isspace((unsigned char)value[length - 1]);
}

static kiln_status parse_options(const kiln_nvrtc_request *request, parsed_options *out,
                                 kiln_diag *diag)
{
    memset(out, 0, sizeof(*out));
    out->options = (const char **)calloc(request->option_count + 1, sizeof(char *));
    out->folders = (const char **)calloc(request->option_count + 1, sizeof(char *));
    if (out->options == NULL || out->folders == NULL) {
        return kn_no_memory(diag, compiling);
    }
    for (size_t i = 0; i < request->option_count; i++) {
        const size_t first = i;
        const char *value = NULL;
        if ((value = value_of(request, &i, "-arch", false, "--gpu-architecture")) != NULL) {
            kn_text_put(out->arch, sizeof(out->arch), value);
        } else if ((value = value_of(request, &i, "-I", true, "--include-path")) != NULL &&
                   !has_odd_blanks(value)) {
            out->folders[out->folder_count++] = value;
        } else {
            for (size_t j = first; j <= i; j++) {
                out->options[out->option_count++] = request->options[j];
            }
        }
    }
    return out->arch[0] != '\0'
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID,
                               "add an option such as --gpu-architecture=sm_90",
                               "kiln_nvrtc_compile", "no --gpu-architecture in the options");
}

static kiln_status check_nvrtc_request(const kiln_nvrtc_request *request, kiln_diag *diag)
{
    const char *why = NULL;
    if (request->text == NULL) {
        why = "there is no text";
    } else if ((request->option_count > 0 && request->options == NULL) ||
               (request->expression_count > 0 && request->expressions == NULL)) {
        why = "a list is NULL";
    }
    for (size_t i = 0; why == NULL && i < request->option_count; i++) {
        why = request->options[i] == NULL ? "an option is NULL" : NULL;
    }
    return why == NULL ? KILN_OK
                       : kiln_diag_set(diag, KILN_E_INVALID, NULL, "kiln_nvrtc_compile", "%s", why);
}

/* --- result ----------------------------------------------------------------------------------- */

typedef struct nvrtc_result {
    kiln_nvrtc_result view; /* first */
    kiln_blob *blob;        /* keeps the binary, the log and the names */
    char *text;             /* PTX without a NUL, copied to give it one */
    const char **lowered;
} nvrtc_result;

void kiln_nvrtc_result_destroy(kiln_nvrtc_result *view)
{
    nvrtc_result *result = (nvrtc_result *)view;
    if (result != NULL) {
        free((void *)result->lowered);
        free(result->text);
        kiln_blob_release(result->blob);
        free(result);
    }
}

/* The bytes as they are in the blob; PTX that ends without a NUL is copied to give it one. */
static kiln_status take_binary(nvrtc_result *result, const kn_artifact *artifact, kiln_diag *diag)
{
    const char *binary = (const char *)artifact->base.data;
    const bool ptx = artifact->base.language == KILN_LANG_PTX;
    size_t size = artifact->base.size;
    if (ptx && (size == 0 || binary[size - 1] != '\0')) {
        binary = result->text = kn_text_copy_n(binary, size);
    }
    if (binary == NULL) {
        return kn_no_memory(diag, compiling);
    }
    while (ptx && size > 0 && binary[size - 1] == '\0') {
        size--;
    }
    result->view.binary = binary;
    result->view.size = size;
    result->view.is_ptx = ptx;
    return KILN_OK;
}

static kiln_status make_result(const kn_build *build, const kiln_nvrtc_request *request,
                               kiln_nvrtc_result **out_result, kiln_diag *diag)
{
    const kn_stage_run *run = &build->runs[build->stage_count - 1];
    const kn_artifact *artifact = &run->artifact;
    nvrtc_result *result = (nvrtc_result *)calloc(1, sizeof(*result));
    if (result == NULL) {
        return kn_no_memory(diag, compiling);
    }
    result->blob = kiln_blob_retain(run->blob);
    result->lowered = (const char **)calloc(request->expression_count + 1, sizeof(char *));
    kiln_status status = result->lowered != NULL ? take_binary(result, artifact, diag)
                                                 : kn_no_memory(diag, compiling);
    for (size_t i = 0; status == KILN_OK && i < request->expression_count; i++) {
        char fact[32];
        size_t fact_size = 0;
        kn_text_putf(fact, sizeof(fact), "lowered:%zu", i); /* as the backend names it */
        result->lowered[i] = (const char *)kn_host.artifact_fact(&artifact->base, fact, &fact_size);
        if (result->lowered[i] == NULL) {
            status =
                kiln_diag_set(diag, KILN_E_INTERNAL, "clear the cache", request->expressions[i],
                              "the cached entry lacks its lowered name");
        }
    }
    if (status != KILN_OK) {
        kiln_nvrtc_result_destroy(&result->view);
        return status;
    }
    result->view.struct_size = sizeof(result->view);
    result->view.log = artifact->base.log != NULL ? artifact->base.log : "";
    result->view.lowered = result->lowered;
    result->view.lowered_count = request->expression_count;
    result->view.origin = run->origin;
    *out_result = &result->view;
    return KILN_OK;
}

/* --- compile ---------------------------------------------------------------------------------- */

static kiln_source describe_source(const kiln_nvrtc_request *request, const parsed_options *parsed)
{
    kiln_source source = KILN_SOURCE_INIT;
    const char *name = request->name != NULL ? request->name : "kernel.cu";
    const char *slash = strrchr(name, '/');
    source.language = KILN_LANG_CUDA;
    source.name = slash != NULL ? slash + 1 : name; /* its directory is not searched */
    source.text = request->text;
    source.length = strlen(request->text);
    source.options = parsed->options;
    source.option_count = parsed->option_count;
    source.include_dirs = parsed->folders;
    source.include_dir_count = parsed->folder_count;
    source.headers = request->headers;
    source.header_count = request->header_count;
    source.entries = request->expressions;
    source.entry_count = request->expression_count;
    return source;
}

static kiln_status compile_nvrtc(kiln_cache *cache, kn_driver *driver,
                                 const kiln_nvrtc_request *request, const parsed_options *parsed,
                                 kiln_nvrtc_result **out_result, kiln_diag *diag)
{
    const kn_instance *in = &driver->in;
    const kiln_source source = describe_source(request, parsed);
    kiln_target target;
    kn_build build;
    memset(&target, 0, sizeof(target));
    kiln_status status = kn_hal_target_parse(in, in->handle, parsed->arch, &target, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_build_init(&build, cache, driver, &target, NULL, &source, NULL, diag);
    build.dropin = true;
    if (status == KILN_OK) {
        status = kn_build_artifacts(&build, diag);
    }
    if (status == KILN_OK) {
        status = make_result(&build, request, out_result, diag);
    }
    kn_build_deinit(&build);
    kn_hal_target_destroy(in, in->handle, &target);
    return status;
}

kiln_status kiln_nvrtc_compile(kiln_cache *cache, const kiln_nvrtc_request *request,
                               kiln_nvrtc_result **out_result, kiln_diag *diag)
{
    kn_driver driver;
    driver.left_out[0] = '\0';
    kiln_probe_report report;
    parsed_options parsed = {0};
    kiln_cache *own = NULL;
    kiln_nvrtc_request room;
    *out_result = NULL;
    if (request == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "kiln_nvrtc_compile",
                             "there is no request");
    }
    request = kn_sized_view(KN_SIZED(kiln_nvrtc_request), request, &room, diag);
    kiln_status status = request != NULL ? check_nvrtc_request(request, diag) : KILN_E_INVALID;
    if (status != KILN_OK) {
        return status;
    }
    status = parse_options(request, &parsed, diag);
    if (status == KILN_OK && cache == NULL) {
        status = kiln_cache_create(NULL, &own, diag);
        cache = own;
    }
    if (status == KILN_OK) {
        kn_drivers_register(NULL, NULL, NULL);
        const kiln_backend *backend = kn_registry_find("cuda");
        status = backend != NULL
                     ? kn_driver_open_compiler(&driver, backend, cache, &report, diag)
                     : kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "kiln_nvrtc_compile",
                                     "this kiln was built without its cuda backend");
        if (status == KILN_OK) {
            status = compile_nvrtc(cache, &driver, request, &parsed, out_result, diag);
            kn_driver_close(&driver);
        }
    }
    kiln_cache_destroy(own);
    free((void *)parsed.options);
    free((void *)parsed.folders);
    return status;
}
