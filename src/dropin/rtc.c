/* See rtc.h. The backend is opened without its driver. */
#include "dropin/rtc.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "core/build/build.h"
#include "core/runtime/driver.h"
#include "dropin/rtc_compilers.h"
#include "hal/artifact.h"
#include "hal/registry.h"

/* --- the options ------------------------------------------------------------------------------ */

/* The request's options, with what core handles by itself taken out. */
typedef struct parsed_options {
    char arch[64];
    const char **options, **dirs;
    size_t option_count, dir_count;
} parsed_options;

static kiln_status parse_options(const kn_rtc_kind *kind, const kn_rtc_request *request,
                                 parsed_options *out, kiln_diag *diag)
{
    out->options = (const char **)calloc(request->option_count + 1, sizeof(char *));
    out->dirs = (const char **)calloc(request->option_count + 1, sizeof(char *));
    if (out->options == NULL || out->dirs == NULL) {
        return kn_no_memory(diag, kind->call);
    }
    kn_call_option option;
    for (size_t i = 0; i < request->option_count; i = option.last + 1) {
        kind->read_option(request->options, request->option_count, i, &option);
        if (option.use == KN_OPTION_TARGET && (out->arch[0] == '\0' || !kind->one_target)) {
            kn_text_put(out->arch, sizeof(out->arch), option.value);
        } else if (option.use == KN_OPTION_DIRECTORY) {
            out->dirs[out->dir_count++] = option.value;
        } else {
            for (size_t j = i; j <= option.last; j++) {
                out->options[out->option_count++] = request->options[j];
            }
        }
    }
    return out->arch[0] != '\0' ? KILN_OK
                                : kiln_diag_set(diag, KILN_E_INVALID, kind->no_arch_fix, kind->call,
                                                "%s", kind->no_arch);
}

static kiln_status check_rtc_request(const kn_rtc_kind *kind, const kn_rtc_request *request,
                                     kiln_diag *diag)
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
    return why == NULL ? KILN_OK : kiln_diag_set(diag, KILN_E_INVALID, NULL, kind->call, "%s", why);
}

/* --- result ----------------------------------------------------------------------------------- */

void kn_rtc_result_deinit(kn_rtc_result *result)
{
    free((void *)result->lowered);
    kiln_blob_release(result->blob);
    memset(result, 0, sizeof(*result));
}

static kiln_status take_result(const kn_rtc_kind *kind, const kn_build *build,
                               const kn_rtc_request *request, kn_rtc_result *out, kiln_diag *diag)
{
    const kn_stage_run *run = &build->runs[build->stage_count - 1];
    const kiln_artifact *artifact = &run->artifact.base;
    out->lowered = (const char **)calloc(request->expression_count + 1, sizeof(char *));
    if (out->lowered == NULL) {
        return kn_no_memory(diag, kind->call);
    }
    for (size_t i = 0; i < request->expression_count; i++) {
        char fact[32];
        size_t fact_size = 0;
        kn_text_putf(fact, sizeof(fact), "lowered:%zu", i); /* as the backends name it */
        out->lowered[i] = (const char *)kn_host.artifact_fact(artifact, fact, &fact_size);
        if (out->lowered[i] == NULL) {
            return kiln_diag_set(diag, KILN_E_INTERNAL, "clear the cache", request->expressions[i],
                                 "the cached entry lacks its lowered name");
        }
    }
    out->blob = kiln_blob_retain(run->blob);
    out->binary = (const char *)artifact->data;
    out->size = artifact->size;
    out->language = artifact->language;
    out->log = artifact->log != NULL ? artifact->log : "";
    out->origin = run->origin;
    return KILN_OK;
}

/* --- compile ---------------------------------------------------------------------------------- */

static kiln_source describe_source(const kn_rtc_kind *kind, const kn_rtc_request *request,
                                   const parsed_options *parsed)
{
    kiln_source source = KILN_SOURCE_INIT;
    const char *name = request->name != NULL ? request->name : kind->name;
    const char *slash = strrchr(name, '/');
    source.language = kind->language;
    source.name = slash != NULL ? slash + 1 : name; /* its directory is not searched */
    source.text = request->text;
    source.length = strlen(request->text);
    source.options = parsed->options;
    source.option_count = parsed->option_count;
    source.include_dirs = parsed->dirs;
    source.include_dir_count = parsed->dir_count;
    source.headers = request->headers;
    source.header_count = request->header_count;
    source.entries = request->expressions;
    source.entry_count = request->expression_count;
    return source;
}

static kiln_status compile_source(const kn_rtc_kind *kind, kiln_cache *cache, kn_driver *driver,
                                  const kn_rtc_request *request, const parsed_options *parsed,
                                  kn_rtc_result *out_result, kiln_diag *diag)
{
    const kn_instance *in = &driver->in;
    const kiln_source source = describe_source(kind, request, parsed);
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
        status = take_result(kind, &build, request, out_result, diag);
    }
    kn_build_deinit(&build);
    kn_hal_target_destroy(in, in->handle, &target);
    return status;
}

/* With a driver of its own, so that a toolkit that was exchanged is noticed at each call. */
static kiln_status compile_with(const kn_rtc_kind *kind, const kiln_backend *backend,
                                kiln_cache *cache, const kn_rtc_request *request,
                                const parsed_options *parsed, kn_rtc_result *out_result,
                                kiln_diag *diag)
{
    kiln_probe_report report;
    kn_driver *driver = (kn_driver *)calloc(1, sizeof(*driver));
    if (driver == NULL) {
        return kn_no_memory(diag, kind->call);
    }
    kiln_status status = kn_driver_open_compiler(driver, backend, cache, &report, diag);
    if (status != KILN_OK) {
        free(driver);
        return status;
    }
    status = compile_source(kind, cache, driver, request, parsed, out_result, diag);
    if (status == KILN_OK ? out_result->origin == KILN_ORIGIN_COMPILED : status == KILN_E_COMPILE) {
        kn_rtc_compilers_keep(cache, driver);
    } else {
        kn_rtc_driver_destroy(driver);
    }
    return status;
}

static kiln_status compile_parsed(const kn_rtc_kind *kind, kiln_cache *cache,
                                  const kn_rtc_request *request, const parsed_options *parsed,
                                  kn_rtc_result *out_result, kiln_diag *diag)
{
    kn_drivers_register(NULL, NULL, NULL);
    const kiln_backend *backend = kn_registry_find(kind->backend);
    if (backend == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, kind->call,
                             "this kiln was built without its %s backend", kind->backend);
    }
    kiln_status status = compile_with(kind, backend, cache, request, parsed, out_result, diag);
    /* A compiler that is kept hides the one that was installed in its place. */
    if (status == KILN_E_UNAVAILABLE && kn_rtc_compilers_drop(cache, backend)) {
        kn_rtc_result_deinit(out_result);
        kiln_diag_clear(diag);
        status = compile_with(kind, backend, cache, request, parsed, out_result, diag);
    }
    return status;
}

kiln_status kn_rtc_compile(const kn_rtc_kind *kind, kiln_cache *cache,
                           const kn_rtc_request *request, kn_rtc_result *out_result,
                           kiln_diag *diag)
{
    parsed_options parsed = {{0}, NULL, NULL, 0, 0};
    kiln_cache *own = NULL;
    memset(out_result, 0, sizeof(*out_result));
    kiln_status status = check_rtc_request(kind, request, diag);
    if (status == KILN_OK) {
        status = parse_options(kind, request, &parsed, diag);
    }
    if (status == KILN_OK && cache == NULL) {
        status = kiln_cache_create(NULL, &own, diag);
        cache = own;
    }
    if (status == KILN_OK) {
        status = compile_parsed(kind, cache, request, &parsed, out_result, diag);
    }
    if (status != KILN_OK) {
        kn_rtc_result_deinit(out_result);
    }
    kiln_cache_destroy(own);
    free((void *)parsed.options);
    free((void *)parsed.dirs);
    return status;
}
