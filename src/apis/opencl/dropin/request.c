/* Making the key of a program that another program wants built. */
#include "apis/opencl/dropin/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/probe.h"

#include "apis/opencl/backend/options.h"
#include "apis/opencl/backend/status.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/stages.h"
#include "base/text.h"
#include "core/runtime/memo.h"
#include "core/runtime/target.h"
#include "headers/include_scan.h"
#include "key/recipe.h"
#include "sys/file.h"

static const char building[] = "building an OpenCL program"; /* what fails without memory */

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

static void bypass_for(kn_opencl_request *request, const char *reason)
{
    kn_text_put(request->bypass, sizeof(request->bypass), reason);
}

/* --- options ---------------------------------------------------------------------------------- */

static bool is_quoted(kn_span raw)
{
    return memchr(raw.data, '"', raw.length) != NULL;
}

static bool grow_dirs(kn_opencl_part *part)
{
    for (size_t i = 0; i < KN_OPENCL_READINGS; i++) {
        char **grown = realloc(part->dirs[i], (part->dir_count + 1) * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        part->dirs[i] = grown;
    }
    return true;
}

/* A directory as each reading has it. `raw`: with its quotes. */
static kiln_status add_dir(kn_opencl_part *part, const char *dir, kn_span raw, kiln_diag *diag)
{
    char *names[KN_OPENCL_READINGS] = {kn_text_copy(dir), kn_text_copy_n(raw.data, raw.length),
                                       kn_text_copy_n(raw.data, raw.length)};
    bool whole = grow_dirs(part);
    for (size_t i = 0; i < KN_OPENCL_READINGS; i++) {
        whole = whole && names[i] != NULL;
    }
    for (size_t i = 0; i < KN_OPENCL_READINGS && !whole; i++) {
        free(names[i]);
    }
    if (!whole) {
        return kn_no_memory(diag, building);
    }
    for (char *quote = names[2]; (quote = strchr(quote, '"')) != NULL;) {
        *quote = ' ';
    }
    for (size_t i = 0; i < KN_OPENCL_READINGS; i++) {
        part->dirs[i][part->dir_count] = names[i];
    }
    part->dir_count++;
    part->dirs_quoted = part->dirs_quoted || is_quoted(raw);
    return KILN_OK;
}

/* -I directories go to the list; every other token into the key, in its place. */
static kiln_status read_option(kn_opencl_request *request, kn_opencl_part *part,
                               const kn_opencl_option *option, kiln_diag *diag)
{
    if (option->quoted_before) {
        bypass_for(request,
                   "quotes begin before an include directory, which drivers read differently");
    }
    if (option->dir != NULL) {
        return add_dir(part, option->dir, option->raw_dir, diag);
    }
    const char *token = option->token;
    const char *reason = kn_opencl_option_reason(option->before, token);
    const char *word = kn_include_scan_words(kn_span_of_text(token));
    if (reason != NULL) {
        kn_text_putf(request->bypass, sizeof(request->bypass), "%s: %s", token, reason);
    } else if (word != NULL) { /* -DWHEN=__TIME__ */
        kn_text_putf(request->bypass, sizeof(request->bypass), "%s in an option", word);
    }
    kn_recipe_add_string(request->recipe, "option", token);
    return KILN_OK;
}

/* A token that has quotes is in the key as it stands in the options, too: what one driver takes
 * off, another refuses or keeps, so the key must distinguish it from the same without them. */
static kiln_status take_option(kn_opencl_request *request, kn_opencl_part *part,
                               const kn_opencl_option *option, kiln_diag *diag)
{
    const kiln_status status = read_option(request, part, option, diag);
    if (is_quoted(option->raw)) {
        kiln_recipe_add_text(request->recipe, "option.quoted", option->raw.data,
                             option->raw.length);
    }
    return status;
}

static kiln_status read_options(kn_opencl_request *request, kn_opencl_part *part, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_opencl_option option;
    kn_opencl_option_reader reader;
    /* PoCL looks into the current directory before the others. */
    if (request->unit.is_pocl) {
        status = add_dir(part, ".", kn_span_of_text("."), diag);
    }
    kn_opencl_option_reader_init(&reader, part->given->options);
    while (status == KILN_OK && kn_opencl_option_read(&reader, &option)) {
        status = take_option(request, part, &option, diag);
    }
    if (status == KILN_OK && !kn_opencl_option_reader_ok(&reader)) {
        status = kn_no_memory(diag, building);
    }
    if (reader.odd) {
        bypass_for(request, "the options are quoted in a way that drivers read differently");
    }
    kn_opencl_option_reader_deinit(&reader);
    return status;
}

/* What the linker gets: every token, quotes and all. */
static void read_link_options(kn_opencl_request *request)
{
    kn_strbuf token;
    bool odd = false;
    const char *at = request->wish->link_options;
    kn_strbuf_init(&token, 0);
    for (const char *raw = at; kn_opencl_option_next(&at, &token, &odd); raw = at) {
        const char *reason = kn_opencl_option_reason("", kn_strbuf_text(&token));
        raw += strspn(raw, " \t\r\n\v\f");
        kiln_recipe_add_text(request->recipe, "link.option", raw, (size_t)(at - raw));
        if (strcmp(kn_strbuf_text(&token), "-create-library") == 0) {
            bypass_for(request, "it is linked to a library");
        } else if (reason != NULL) {
            bypass_for(request, reason);
        }
    }
    kn_strbuf_deinit(&token);
    if (odd) {
        bypass_for(request,
                   "the linker's options are quoted in a way that drivers read differently");
    }
}

/* --- key -------------------------------------------------------------------------------------- */

static kiln_status add_identity(kn_opencl_request *request, const kn_opencl_unit *unit,
                                kiln_diag *diag)
{
    char *modules = NULL;
    kiln_host host;
    kn_memo_host(request->cache, &host);
    const kiln_identity identity = kn_identity_to_recipe(request->recipe);
    const kiln_status status = kn_opencl_modules_find(&request->api, unit, &modules, diag);
    if (status == KILN_OK) {
        kn_opencl_identify_unit(&request->api, unit, modules, &host, &identity);
    }
    free(modules);
    if (unit->is_pocl && kn_pocl_files_reason() != NULL) {
        bypass_for(request, kn_pocl_files_reason());
    }
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
            kn_recipe_add_string(request->recipe, "device", unit.info.target);
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
 * first, and in what quotes around a directory mean. So all ways are followed: `dir` is "."
 * for the one and NULL for the other. One that cannot be followed may be the driver's. */
static kiln_status follow_includes(kn_opencl_request *request, kn_opencl_part *part, size_t reading,
                                   const char *dir, kiln_diag *diag)
{
    const char *system_dirs[SYSTEM_DIRS_MAX];
    size_t count = 0;
    while (count < SYSTEM_DIRS_MAX &&
           (system_dirs[count] = kn_opencl_system_include_dir(NULL, NULL, count)) != NULL) {
        count++;
    }
    kn_closure_request closure = {
        .source = &part->sources[reading],
        .dir = dir,
        .rules = &kn_opencl_include_rules,
        .system_dirs = system_dirs,
        .system_dir_count = count,
        .ships_header = ships_header,
        .cache = request->cache,
        .first = request->recipe,
    };
    kn_closure **found = &part->closures[2 * reading + (dir == NULL)];
    kiln_status status = kn_closure_find(&closure, found, diag);
    if (status == KILN_OK && (*found)->bypass) {
        bypass_for(request, (*found)->reason);
    }
    return status;
}

static kiln_status add_closures(kn_opencl_request *request, kn_opencl_part *part, kiln_diag *diag)
{
    const size_t readings = part->dirs_quoted ? KN_OPENCL_READINGS : 1;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < readings && status == KILN_OK && request->bypass[0] == '\0'; i++) {
        status = follow_includes(request, part, i, ".", diag);
        if (status == KILN_OK && readings == 1 && part->closures[0]->headers == 0) {
            return status;
        }
        if (status == KILN_OK && !request->unit.is_pocl) {
            status = follow_includes(request, part, i, NULL, diag);
        }
    }
    for (size_t i = 0; i < KN_OPENCL_CLOSURES && status == KILN_OK && request->bypass[0] == '\0';
         i++) {
        if (part->closures[i] != NULL) {
            status = kn_closure_add_to(part->closures[i], request->recipe, diag);
        }
    }
    return status;
}

/* No file has the name of a header that the program gives. */
static bool is_only_in_memory(const kn_opencl_part *part, const char *name)
{
    kn_file_facts facts;
    char path[4096];
    bool clear = kn_file_stat(name, true, &facts, NULL) == KILN_MISS;
    for (size_t i = 0; i < KN_OPENCL_READINGS * part->dir_count && clear; i++) {
        const char *dir = part->dirs[i / part->dir_count][i % part->dir_count];
        const int length = snprintf(path, sizeof(path), "%s/%s", dir, name);
        clear = length > 0 && (size_t)length < sizeof(path) &&
                kn_file_stat(path, true, &facts, NULL) == KILN_MISS;
    }
    return clear;
}

/* Headers that the program gives itself, used or not. Drivers need not agree on which comes first
 * where a file has the name of one. */
static void add_own_headers(kn_opencl_request *request, const kn_opencl_part *part)
{
    for (size_t i = 0; i < part->given->header_count; i++) {
        const kiln_header *header = &part->given->headers[i];
        if (!is_only_in_memory(part, header->name)) {
            kn_text_putf(request->bypass, sizeof(request->bypass),
                         "a file is called %s, as a header that the program gives", header->name);
        }
        kn_recipe_add_string(request->recipe, "header.name", header->name);
        kiln_recipe_add_bytes(request->recipe, "header.text", header->text, header->length);
    }
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
    for (size_t i = 0; i < KN_OPENCL_READINGS; i++) {
        part->sources[i].include_dirs = (const char *const *)part->dirs[i];
        part->sources[i].include_dir_count = part->dir_count;
        part->sources[i].options = (const char *const *)&options;
        part->sources[i].option_count = 1;
    }
    add_own_headers(request, part);
    const kiln_status status =
        request->bypass[0] == '\0' ? add_closures(request, part, diag) : KILN_OK;
    for (size_t i = 0; i < KN_OPENCL_READINGS; i++) {
        part->sources[i].options = NULL;
        part->sources[i].option_count = 0;
    }
    free(options);
    return status;
}

static kiln_status add_texts(kn_opencl_request *request, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < request->wish->text_count && status == KILN_OK; i++) {
        kn_opencl_part *part = &request->parts[i];
        kiln_recipe_add_bytes(request->recipe, "source", part->given->text, part->given->length);
        status = read_options(request, part, diag);
    }
    return status;
}

static kiln_status make_key(kn_opencl_request *request, kiln_diag *diag)
{
    const kn_opencl_wish *wish = request->wish;
    const bool many = wish->link || wish->device_count > 1;
    kiln_status status =
        kiln_recipe_create(many ? kn_stage_opencl_programs : kn_stage_opencl_program,
                           KN_REVISION_opencl_program, &request->recipe, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_recipe_set_target(request->recipe, request->unit.info.target);
    if (many) {
        kiln_recipe_add_u64(request->recipe, "linked", wish->link);
    }
    status = add_texts(request, diag);
    if (status == KILN_OK) {
        read_link_options(request);
        status = add_devices(request, diag);
    }
    for (size_t i = 0; i < wish->text_count && status == KILN_OK && request->bypass[0] == '\0';
         i++) {
        status = add_headers(request, &request->parts[i], diag);
    }
    return status == KILN_OK ? kiln_recipe_status(request->recipe, diag) : status;
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
        part->sources[0] = (kiln_source)KILN_SOURCE_INIT;
        part->sources[0].language = KILN_LANG_OPENCL_C;
        part->sources[0].text = part->given->text;
        part->sources[0].length = part->given->length;
        part->sources[0].headers = part->given->headers;
        part->sources[0].header_count = part->given->header_count;
        part->sources[1] = part->sources[0];
        part->sources[2] = part->sources[0];
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

kiln_status kn_opencl_request_mark_layer(kn_opencl_request *request, bool compile_only,
                                         kiln_diag *diag)
{
    const char *form = compile_only ? "compiled" : "built";
    kn_recipe_add_string(request->recipe, "layer", form);
    return kiln_recipe_status(request->recipe, diag);
}

/* The next closure that counts, after `*at` of all places; NULL: there is none. */
static kn_closure *next_closure(const kn_opencl_request *request, size_t *at)
{
    kn_closure *closure = NULL;
    while (closure == NULL && *at < KN_OPENCL_CLOSURES * request->wish->text_count) {
        closure = request->parts[*at / KN_OPENCL_CLOSURES].closures[*at % KN_OPENCL_CLOSURES];
        closure = closure != NULL && !closure->bypass ? closure : NULL;
        (*at)++;
    }
    return closure;
}

bool kn_opencl_request_still_true(kn_opencl_request *request)
{
    size_t at = 0;
    kn_closure *closure = next_closure(request, &at);
    while (closure != NULL && kn_closure_still_true(closure)) {
        closure = next_closure(request, &at);
    }
    return closure == NULL;
}

void kn_opencl_request_save(kn_opencl_request *request)
{
    size_t at = 0;
    for (kn_closure *closure; (closure = next_closure(request, &at)) != NULL;) {
        kn_closure_save(closure);
    }
}

void kn_opencl_request_deinit(kn_opencl_request *request)
{
    for (size_t i = 0; request->parts != NULL && i < request->wish->text_count; i++) {
        kn_opencl_part *part = &request->parts[i];
        for (size_t k = 0; k < KN_OPENCL_CLOSURES; k++) {
            kn_closure_destroy(part->closures[k]);
        }
        for (size_t k = 0; k < KN_OPENCL_READINGS; k++) {
            for (size_t n = 0; n < part->dir_count; n++) {
                free(part->dirs[k][n]);
            }
            free(part->dirs[k]);
        }
    }
    free(request->parts);
    kiln_recipe_destroy(request->recipe);
    kn_dylib_retire(request->lib);
    kiln_cache_destroy(request->own_cache);
    kn_opencl_wish_release(request->wish);
    *request = (kn_opencl_request){0};
}
