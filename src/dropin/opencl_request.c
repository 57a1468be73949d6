/* Making the key of a program that somebody else's code wants built. */
#include "dropin/opencl_request.h"

#include <stdlib.h>
#include <string.h>

#include "backends/opencl/options.h"
#include "backends/opencl/status.h"
#include "base/text.h"
#include "core/walk/target.h"
#include "headers/include_scan.h"

#define STAGE "opencl.program"
#define STAGE_REVISION 1u
#define SYSTEM_DIRS_MAX 8

static kiln_status out_of_memory(kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "building an OpenCL program", NULL);
}

static kiln_status open_driver(kn_opencl_request *request, cl_device_id device, kiln_diag *diag)
{
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    char path[512];
    cl_platform_id platform = NULL;
    kiln_status status =
        kn_opencl_library_open(&request->lib, &request->api, path, sizeof(path), &outcome, diag);
    if (status != KILN_OK) {
        return status;
    }
    cl_int code = request->api.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id),
                                               &platform, NULL);
    if (code != CL_SUCCESS) {
        return kn_opencl_fail(diag, "asking an OpenCL device", "clGetDeviceInfo", code);
    }
    return kn_opencl_unit_init(&request->api, platform, device, &request->unit, diag);
}

/* --- options -----------------------------------------------------------------------------------
 */

static kiln_status add_folder(kn_opencl_request *request, const char *folder, kiln_diag *diag)
{
    char **grown = realloc(request->folders, (request->folder_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return out_of_memory(diag);
    }
    request->folders = grown;
    grown[request->folder_count] = kn_text_copy(folder);
    if (grown[request->folder_count] == NULL) {
        return out_of_memory(diag);
    }
    request->folder_count++;
    return KILN_OK;
}

/* -I folders go to the list; every other token into the key, in its place. */
static kiln_status read_token(kn_opencl_request *request, const char *before, const char *token,
                              bool *folder_next, kiln_diag *diag)
{
    if (*folder_next || (kn_text_starts(token, "-I") && token[2] != '\0')) {
        const char *folder = *folder_next ? token : token + 2;
        *folder_next = false;
        return add_folder(request, folder, diag);
    }
    if (strcmp(token, "-I") == 0) {
        *folder_next = true;
        return KILN_OK;
    }
    const char *reason = kn_opencl_option_reason(before, token);
    const char *word = kn_include_scan_words(kn_span_of_text(token));
    if (reason != NULL) {
        kn_text_putf(request->bypass, sizeof(request->bypass), "%s: %s", token, reason);
    } else if (word != NULL) { /* -DWHEN=__TIME__ */
        kn_text_putf(request->bypass, sizeof(request->bypass), "%s in an option", word);
    }
    return kiln_recipe_add_text(request->recipe, "option", token, strlen(token), diag);
}

/* A token that has quotes, as it stands in the options: what one driver takes off, another refuses
 * or keeps, so the key must tell it from the same without them. PoCL keeps them in the folder of
 * -I: the headers are not those that are followed here. */
static kiln_status read_quoted(kn_opencl_request *request, const char *raw, size_t length,
                               bool folder, kiln_diag *diag)
{
    if (memchr(raw, '"', length) == NULL) {
        return KILN_OK;
    }
    if (folder && request->unit.is_pocl) {
        kn_text_put(request->bypass, sizeof(request->bypass),
                    "an include folder is in quotes, which PoCL takes for part of its name");
    }
    return kiln_recipe_add_text(request->recipe, "option.quoted", raw, length, diag);
}

static kiln_status read_options(kn_opencl_request *request, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_strbuf before, token;
    bool odd = false, folder_next = false;
    const char *at = request->options;
    /* PoCL looks into the current folder before the others. */
    if (request->unit.is_pocl) {
        status = add_folder(request, ".", diag);
    }
    kn_strbuf_init(&before, 0);
    kn_strbuf_init(&token, 0);
    const char *raw = at;
    while (status == KILN_OK && kn_opencl_option_next(&at, &token, &odd)) {
        const size_t folders = request->folder_count;
        status = kn_strbuf_ok(&token) ? read_token(request, kn_strbuf_text(&before),
                                                   kn_strbuf_text(&token), &folder_next, diag)
                                      : out_of_memory(diag);
        kn_strbuf_clear(&before);
        kn_strbuf_append_text(&before, kn_strbuf_text(&token));
        if (status == KILN_OK) {
            const bool folder = folder_next || request->folder_count != folders;
            raw += strspn(raw, " \t\r\n\v\f");
            status = read_quoted(request, raw, (size_t)(at - raw), folder, diag);
        }
        raw = at;
    }
    kn_strbuf_deinit(&token);
    kn_strbuf_deinit(&before);
    if (odd || folder_next) {
        kn_text_put(request->bypass, sizeof(request->bypass),
                    "the options are quoted in a way that drivers read differently");
    }
    return status;
}

/* --- key ---------------------------------------------------------------------------------------
 */

static kiln_status add_identity(kn_opencl_request *request, kiln_diag *diag)
{
    char *modules = NULL;
    kn_identity_sink sink = {request->recipe, diag, KILN_OK};
    kiln_identity identity = kn_identity_to_recipe(&sink);
    kiln_status status = kn_opencl_modules_find(&request->api, &request->unit, &modules, diag);
    if (status == KILN_OK) {
        kn_opencl_identify_unit(&request->unit, modules, &identity);
        status = sink.status;
    }
    free(modules);
    return status;
}

static bool ships_header(void *user, const char *name)
{
    (void)user;
    return kn_opencl_ships_header(NULL, NULL, name);
}

/* Compilers differ in whether "x.h" in a text without a file is looked for in the current folder
 * first. So both ways are followed: `folder` is "." for the one and NULL for the other. */
static kiln_status follow(kn_opencl_request *request, const char *folder, kn_closure **out_closure,
                          kiln_diag *diag)
{
    const char *system_dirs[SYSTEM_DIRS_MAX];
    size_t count = 0;
    while (count < SYSTEM_DIRS_MAX &&
           (system_dirs[count] = kn_opencl_system_include_dir(NULL, NULL, count)) != NULL) {
        count++;
    }
    kn_closure_request closure = {
        .source = &request->source,
        .folder = folder,
        .system_dirs = system_dirs,
        .system_dir_count = count,
        .search_path_complete = true,
        .ships_header = ships_header,
        .cache = request->cache,
        .first = request->recipe,
    };
    return kn_closure_find(&closure, out_closure, diag);
}

static kiln_status add_headers(kn_opencl_request *request, kiln_diag *diag)
{
    kiln_status status = follow(request, ".", &request->closures[0], diag);
    if (status != KILN_OK || request->closures[0]->headers == 0) {
        if (status == KILN_OK && request->closures[0]->bypass) {
            kn_text_put(request->bypass, sizeof(request->bypass), request->closures[0]->reason);
        }
        return status;
    }
    if (request->closures[0]->bypass) {
        kn_text_put(request->bypass, sizeof(request->bypass), request->closures[0]->reason);
        return KILN_OK;
    }
    if (!request->unit.is_pocl) {
        status = follow(request, NULL, &request->closures[1], diag);
    }
    for (size_t i = 0; i < 2 && status == KILN_OK; i++) {
        kn_closure *closure = request->closures[i];
        if (closure != NULL && !closure->bypass) { /* without ".", one may not be found at all */
            status = kn_closure_add_to(closure, request->recipe, diag);
        }
    }
    return status;
}

static kiln_status make_key(kn_opencl_request *request, kiln_diag *diag)
{
    kiln_status status = kiln_recipe_create(STAGE, STAGE_REVISION, &request->recipe, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(request->recipe, request->unit.info.target, diag);
    }
    if (status == KILN_OK) {
        status = kiln_recipe_add_bytes(request->recipe, "source", request->text,
                                       strlen(request->text), diag);
    }
    if (status == KILN_OK) {
        status = read_options(request, diag);
    }
    if (status == KILN_OK) {
        status = add_identity(request, diag);
    }
    request->source.include_dirs = (const char *const *)request->folders;
    request->source.include_dir_count = request->folder_count;
    /* For the macros that they define: line breaks are blanks between them. */
    char *options = kn_text_copy(request->options);
    if (options == NULL) {
        return status == KILN_OK ? out_of_memory(diag) : status;
    }
    kn_text_flatten(options);
    request->source.options = (const char *const *)&options;
    request->source.option_count = 1;
    if (status == KILN_OK && request->bypass[0] == '\0') {
        status = add_headers(request, diag);
    }
    request->source.options = NULL;
    request->source.option_count = 0;
    free(options);
    return status;
}

kiln_status kn_opencl_request_init(kn_opencl_request *request, kiln_cache *cache,
                                   cl_context context, cl_device_id device, const char *text,
                                   const char *options, kiln_diag *diag)
{
    *request = (kn_opencl_request){.cache = cache, .text = text};
    request->options = options != NULL ? options : "";
    request->source = (kiln_source)KILN_SOURCE_INIT;
    if (context == NULL || device == NULL || text == NULL || text[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "building an OpenCL program",
                             "context, device and text must be there");
    }
    request->source.language = KILN_LANG_OPENCL_C;
    request->source.text = text;
    request->source.length = strlen(text);
    kiln_status status = KILN_OK;
    if (cache == NULL) {
        status = kiln_cache_create(NULL, &request->own_cache, diag);
        request->cache = request->own_cache;
    }
    if (status == KILN_OK) {
        status = open_driver(request, device, diag);
    }
    if (status == KILN_OK) {
        request->site = (kn_opencl_site){&request->api, context, device};
        status = make_key(request, diag);
    }
    if (status != KILN_OK) {
        kn_opencl_request_deinit(request);
    }
    return status;
}

bool kn_opencl_request_still_true(kn_opencl_request *request)
{
    bool holds = true;
    for (size_t i = 0; i < 2; i++) {
        kn_closure *closure = request->closures[i];
        holds = holds && (closure == NULL || closure->bypass || kn_closure_still_true(closure));
    }
    return holds;
}

void kn_opencl_request_deinit(kn_opencl_request *request)
{
    for (size_t i = 0; i < 2; i++) {
        kn_closure_destroy(request->closures[i]);
    }
    kiln_recipe_destroy(request->recipe);
    for (size_t i = 0; i < request->folder_count; i++) {
        free(request->folders[i]);
    }
    free(request->folders);
    kn_dylib_retire(request->lib);
    kiln_cache_destroy(request->own_cache);
    *request = (kn_opencl_request){0};
}
