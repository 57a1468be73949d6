/* Making the key of a program that another program wants built. */
#include "dropin/opencl_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/options.h"
#include "backends/opencl/status.h"
#include "base/diag.h"
#include "base/text.h"
#include "core/runtime/target.h"
#include "headers/include_scan.h"
#include "sys/file.h"

static const char building[] = "building an OpenCL program"; /* what fails without memory */

#define STAGE "opencl.program"
#define STAGE_MANY "opencl.programs" /* linked of units, or for several devices */
#define STAGE_REVISION 1u
#define SYSTEM_DIRS_MAX 8

static kiln_status describe_device(const kn_opencl_request *request, cl_device_id device,
                                   kn_opencl_unit *unit, kiln_diag *diag)
{
    cl_platform_id platform = NULL;
    cl_int code = request->api.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id),
                                               &platform, NULL);
    if (code != CL_SUCCESS) {
        return kn_opencl_fail(diag, "querying an OpenCL device", "clGetDeviceInfo", code);
    }
    return kn_opencl_unit_init(&request->api, platform, device, unit, diag);
}

/* `api`: functions to call in the place of the library's; NULL: the library's. */
static kiln_status open_driver(kn_opencl_request *request, const kn_opencl_api *api,
                               kiln_diag *diag)
{
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    char path[512];
    kiln_status status = KILN_OK;
    if (api != NULL) {
        request->api = *api;
    } else {
        status = kn_opencl_library_open(&request->lib, &request->api, path, sizeof(path), &outcome,
                                        diag);
    }
    return status == KILN_OK
               ? describe_device(request, request->wish->devices[0], &request->unit, diag)
               : status;
}

/* --- options ---------------------------------------------------------------------------------- */

static kiln_status add_folder(kn_opencl_part *part, const char *folder, kiln_diag *diag)
{
    char **grown = realloc(part->folders, (part->folder_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return kn_no_memory(diag, building);
    }
    part->folders = grown;
    grown[part->folder_count] = kn_text_copy(folder);
    if (grown[part->folder_count] == NULL) {
        return kn_no_memory(diag, building);
    }
    part->folder_count++;
    return KILN_OK;
}

/* -I directories go to the list; every other token into the key, in its place. */
static kiln_status read_token(kn_opencl_request *request, kn_opencl_part *part, const char *before,
                              const char *token, bool *folder_next, kiln_diag *diag)
{
    if (*folder_next || (kn_text_starts(token, "-I") && token[2] != '\0')) {
        const char *folder = *folder_next ? token : token + 2;
        *folder_next = false;
        return add_folder(part, folder, diag);
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
 * or keeps, so the key must distinguish it from the same without them. PoCL keeps them in the
 * directory of -I: the headers are not those that are followed here. */
static kiln_status read_quoted(kn_opencl_request *request, const char *raw, size_t length,
                               bool folder, kiln_diag *diag)
{
    if (memchr(raw, '"', length) == NULL) {
        return KILN_OK;
    }
    if (folder && request->unit.is_pocl) {
        kn_text_put(request->bypass, sizeof(request->bypass),
                    "an include directory is in quotes, which PoCL takes for part of its name");
    }
    return kiln_recipe_add_text(request->recipe, "option.quoted", raw, length, diag);
}

static kiln_status read_options(kn_opencl_request *request, kn_opencl_part *part, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_strbuf before, token;
    bool odd = false, folder_next = false;
    const char *at = part->given->options;
    /* PoCL looks into the current directory before the others. */
    if (request->unit.is_pocl) {
        status = add_folder(part, ".", diag);
    }
    kn_strbuf_init(&before, 0);
    kn_strbuf_init(&token, 0);
    const char *raw = at;
    while (status == KILN_OK && kn_opencl_option_next(&at, &token, &odd)) {
        const size_t folders = part->folder_count;
        status = kn_strbuf_ok(&token) ? read_token(request, part, kn_strbuf_text(&before),
                                                   kn_strbuf_text(&token), &folder_next, diag)
                                      : kn_no_memory(diag, building);
        kn_strbuf_clear(&before);
        kn_strbuf_append_text(&before, kn_strbuf_text(&token));
        if (status == KILN_OK) {
            const bool folder = folder_next || part->folder_count != folders;
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

/* What the linker gets: every token, quotes and all. */
static kiln_status read_link_options(kn_opencl_request *request, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_strbuf token;
    bool odd = false;
    const char *at = request->wish->link_options;
    kn_strbuf_init(&token, 0);
    for (const char *raw = at; status == KILN_OK && kn_opencl_option_next(&at, &token, &odd);
         raw = at) {
        raw += strspn(raw, " \t\r\n\v\f");
        status =
            kiln_recipe_add_text(request->recipe, "link.option", raw, (size_t)(at - raw), diag);
        if (strcmp(kn_strbuf_text(&token), "-create-library") == 0) {
            kn_text_put(request->bypass, sizeof(request->bypass), "it is linked to a library");
        } else if (kn_opencl_option_reason("", kn_strbuf_text(&token)) != NULL) {
            kn_text_put(request->bypass, sizeof(request->bypass),
                        kn_opencl_option_reason("", kn_strbuf_text(&token)));
        }
    }
    kn_strbuf_deinit(&token);
    if (odd) {
        kn_text_put(request->bypass, sizeof(request->bypass),
                    "the linker's options are quoted in a way that drivers read differently");
    }
    return status;
}

/* --- key -------------------------------------------------------------------------------------- */

static kiln_status add_identity(kn_opencl_request *request, const kn_opencl_unit *unit,
                                kiln_diag *diag)
{
    char *modules = NULL;
    kn_identity_sink sink = {request->recipe, diag, KILN_OK};
    kiln_identity identity = kn_identity_to_recipe(&sink);
    kiln_status status = kn_opencl_modules_find(&request->api, unit, &modules, diag);
    if (status == KILN_OK) {
        kn_opencl_identify_unit(unit, modules, &identity);
        status = sink.status;
    }
    free(modules);
    return status;
}

/* All devices, in the order in which their binaries lie. */
static kiln_status add_devices(kn_opencl_request *request, kiln_diag *diag)
{
    kiln_status status = add_identity(request, &request->unit, diag);
    for (size_t i = 1; i < request->wish->device_count && status == KILN_OK; i++) {
        kn_opencl_unit unit;
        status = describe_device(request, request->wish->devices[i], &unit, diag);
        if (status == KILN_OK) {
            status = kiln_recipe_add_text(request->recipe, "device", unit.info.target,
                                          strlen(unit.info.target), diag);
        }
        if (status == KILN_OK) {
            status = add_identity(request, &unit, diag);
        }
    }
    return status;
}

static bool ships_header(void *user, const char *name)
{
    (void)user;
    return kn_opencl_ships_header(NULL, NULL, name);
}

/* Compilers differ in whether "x.h" in a text without a file is looked for in the current directory
 * first. So both ways are followed: `folder` is "." for the one and NULL for the other. */
static kiln_status follow_includes(const kn_opencl_request *request, const kn_opencl_part *part,
                                   const char *folder, kn_closure **out_closure, kiln_diag *diag)
{
    const char *system_dirs[SYSTEM_DIRS_MAX];
    size_t count = 0;
    while (count < SYSTEM_DIRS_MAX &&
           (system_dirs[count] = kn_opencl_system_include_dir(NULL, NULL, count)) != NULL) {
        count++;
    }
    kn_closure_request closure = {
        .source = &part->source,
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

static kiln_status add_closures(kn_opencl_request *request, kn_opencl_part *part, kiln_diag *diag)
{
    kiln_status status = follow_includes(request, part, ".", &part->closures[0], diag);
    if (status != KILN_OK || part->closures[0]->headers == 0) {
        if (status == KILN_OK && part->closures[0]->bypass) {
            kn_text_put(request->bypass, sizeof(request->bypass), part->closures[0]->reason);
        }
        return status;
    }
    if (part->closures[0]->bypass) {
        kn_text_put(request->bypass, sizeof(request->bypass), part->closures[0]->reason);
        return KILN_OK;
    }
    if (!request->unit.is_pocl) {
        status = follow_includes(request, part, NULL, &part->closures[1], diag);
    }
    for (size_t i = 0; i < 2 && status == KILN_OK; i++) {
        kn_closure *closure = part->closures[i];
        if (closure != NULL && !closure->bypass) { /* without ".", one may not be found at all */
            status = kn_closure_add_to(closure, request->recipe, diag);
        }
    }
    return status;
}

/* Headers that the program gives itself, used or not. Drivers need not agree on which comes first
 * where a file has the name of one. */
static kiln_status add_own_headers(kn_opencl_request *request, const kn_opencl_part *part,
                                   kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < part->given->header_count && status == KILN_OK; i++) {
        const kiln_header *header = &part->given->headers[i];
        kn_file_facts facts;
        char path[4096];
        bool clear = kn_file_stat(header->name, true, &facts, NULL) == KILN_MISS;
        for (size_t k = 0; k < part->folder_count && clear; k++) {
            const int length =
                snprintf(path, sizeof(path), "%s/%s", part->folders[k], header->name);
            clear = length > 0 && (size_t)length < sizeof(path) &&
                    kn_file_stat(path, true, &facts, NULL) == KILN_MISS;
        }
        if (!clear) {
            kn_text_putf(request->bypass, sizeof(request->bypass),
                         "a file is called %s, as a header that the program gives", header->name);
        }
        status = kiln_recipe_add_text(request->recipe, "header.name", header->name,
                                      strlen(header->name), diag);
        if (status == KILN_OK) {
            status = kiln_recipe_add_bytes(request->recipe, "header.text", header->text,
                                           header->length, diag);
        }
    }
    return status;
}

/* What the text reaches. For the macros that they define the options are looked at, too: line
 * breaks are blanks between them. */
static kiln_status add_headers(kn_opencl_request *request, kn_opencl_part *part, kiln_diag *diag)
{
    char *options = kn_text_copy(part->given->options);
    if (options == NULL) {
        return kn_no_memory(diag, building);
    }
    kn_text_flatten(options);
    part->source.include_dirs = (const char *const *)part->folders;
    part->source.include_dir_count = part->folder_count;
    part->source.options = (const char *const *)&options;
    part->source.option_count = 1;
    kiln_status status = add_own_headers(request, part, diag);
    if (status == KILN_OK && request->bypass[0] == '\0') {
        status = add_closures(request, part, diag);
    }
    part->source.options = NULL;
    part->source.option_count = 0;
    free(options);
    return status;
}

static kiln_status add_texts(kn_opencl_request *request, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < request->wish->text_count && status == KILN_OK; i++) {
        kn_opencl_part *part = &request->parts[i];
        status = kiln_recipe_add_bytes(request->recipe, "source", part->given->text,
                                       part->given->length, diag);
        if (status == KILN_OK) {
            status = read_options(request, part, diag);
        }
    }
    return status;
}

static kiln_status make_key(kn_opencl_request *request, kiln_diag *diag)
{
    const kn_opencl_wish *wish = request->wish;
    const bool many = wish->link || wish->device_count > 1;
    kiln_status status =
        kiln_recipe_create(many ? STAGE_MANY : STAGE, STAGE_REVISION, &request->recipe, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(request->recipe, request->unit.info.target, diag);
    }
    if (status == KILN_OK && many) {
        status = kiln_recipe_add_u64(request->recipe, "linked", wish->link, diag);
    }
    if (status == KILN_OK) {
        status = add_texts(request, diag);
    }
    if (status == KILN_OK) {
        status = read_link_options(request, diag);
    }
    if (status == KILN_OK) {
        status = add_devices(request, diag);
    }
    for (size_t i = 0; i < wish->text_count && status == KILN_OK && request->bypass[0] == '\0';
         i++) {
        status = add_headers(request, &request->parts[i], diag);
    }
    return status;
}

static kiln_status make_parts(kn_opencl_request *request, kiln_diag *diag)
{
    request->parts = calloc(request->wish->text_count, sizeof(*request->parts));
    if (request->parts == NULL) {
        return kn_no_memory(diag, building);
    }
    for (size_t i = 0; i < request->wish->text_count; i++) {
        kn_opencl_part *part = &request->parts[i];
        part->given = &request->wish->texts[i];
        part->source = (kiln_source)KILN_SOURCE_INIT;
        part->source.language = KILN_LANG_OPENCL_C;
        part->source.text = part->given->text;
        part->source.length = part->given->length;
        part->source.headers = part->given->headers;
        part->source.header_count = part->given->header_count;
    }
    return KILN_OK;
}

kiln_status kn_opencl_request_init(kn_opencl_request *request, kiln_cache *cache,
                                   kn_opencl_wish *wish, kiln_diag *diag)
{
    return kn_opencl_request_init_under(request, cache, wish, NULL, diag);
}

kiln_status kn_opencl_request_init_under(kn_opencl_request *request, kiln_cache *cache,
                                         kn_opencl_wish *wish, const kn_opencl_api *api,
                                         kiln_diag *diag)
{
    *request = (kn_opencl_request){.cache = cache, .wish = kn_opencl_wish_retain(wish)};
    kiln_status status = make_parts(request, diag);
    if (status == KILN_OK && cache == NULL) {
        status = kiln_cache_create(NULL, &request->own_cache, diag);
        request->cache = request->own_cache;
    }
    if (status == KILN_OK) {
        status = open_driver(request, api, diag);
    }
    if (status == KILN_OK) {
        request->site = (kn_opencl_site){&request->api, wish->context, wish->devices[0]};
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
    for (size_t i = 0; i < 2 * request->wish->text_count; i++) {
        kn_closure *closure = request->parts[i / 2].closures[i % 2];
        holds = holds && (closure == NULL || closure->bypass || kn_closure_still_true(closure));
    }
    return holds;
}

void kn_opencl_request_save(kn_opencl_request *request)
{
    for (size_t i = 0; i < 2 * request->wish->text_count; i++) {
        kn_closure *closure = request->parts[i / 2].closures[i % 2];
        if (closure != NULL && !closure->bypass) {
            kn_closure_save(closure);
        }
    }
}

void kn_opencl_request_deinit(kn_opencl_request *request)
{
    for (size_t i = 0; request->parts != NULL && i < request->wish->text_count; i++) {
        kn_opencl_part *part = &request->parts[i];
        kn_closure_destroy(part->closures[0]);
        kn_closure_destroy(part->closures[1]);
        for (size_t k = 0; k < part->folder_count; k++) {
            free(part->folders[k]);
        }
        free(part->folders);
    }
    free(request->parts);
    kiln_recipe_destroy(request->recipe);
    kn_dylib_retire(request->lib);
    kiln_cache_destroy(request->own_cache);
    kn_opencl_wish_release(request->wish);
    *request = (kn_opencl_request){0};
}
