/* Copying only; what is in the copy is as the caller gave it. */
#include "apis/opencl/dropin/wish.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "sized/sized.h"

#define DEVICES_MAX 64u
#define UNITS_MAX 4096u

static const char building[] = "building an OpenCL program";

static void free_text(kn_opencl_text *text)
{
    for (size_t i = 0; i < text->header_count; i++) {
        free((void *)(uintptr_t)text->headers[i].name);
        free((void *)(uintptr_t)text->headers[i].text);
    }
    free(text->headers);
    free(text->options);
    free(text->text);
}

bool kn_opencl_wish_find(const kn_opencl_wish *wish, const struct _cl_device_id *device,
                         uint32_t *out_index)
{
    for (size_t i = 0; i < wish->device_count; i++) {
        if (wish->devices[i] == device) {
            *out_index = (uint32_t)i;
            return true;
        }
    }
    return false;
}

kn_opencl_wish *kn_opencl_wish_retain(kn_opencl_wish *wish)
{
    (void)atomic_fetch_add_explicit(&wish->references, 1, memory_order_relaxed);
    return wish;
}

void kn_opencl_wish_release(kn_opencl_wish *wish)
{
    if (wish == NULL ||
        atomic_fetch_sub_explicit(&wish->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < wish->text_count; i++) {
        free_text(&wish->texts[i]);
    }
    free(wish->texts);
    free(wish->link_options);
    free(wish->devices);
    free(wish);
}

static bool copy_headers(const kiln_opencl_unit *unit, kn_opencl_text *text)
{
    text->headers = calloc(unit->header_count + 1, sizeof(*text->headers));
    if (text->headers == NULL) {
        return false;
    }
    for (size_t i = 0; i < unit->header_count; i++) {
        kiln_header *header = &text->headers[text->header_count++];
        const kiln_header *from = &unit->headers[i];
        header->name = kn_text_copy(from->name);
        header->text = kn_text_copy_n(from->text, from->length);
        header->length = from->length;
        if (header->name == NULL || header->text == NULL) {
            return false;
        }
    }
    return true;
}

/* A length of 0 means a string that ends with NUL, as in OpenCL. */
static bool join_strings(const kiln_opencl_unit *unit, kn_opencl_text *text)
{
    kn_strbuf whole;
    kn_strbuf_init(&whole, 0);
    for (size_t i = 0; i < unit->string_count; i++) {
        const size_t given = unit->lengths != NULL ? unit->lengths[i] : 0;
        kn_strbuf_append(&whole, unit->strings[i], given > 0 ? given : strlen(unit->strings[i]));
    }
    if (kn_strbuf_ok(&whole)) {
        text->text = kn_text_copy_n(kn_strbuf_text(&whole), whole.length);
        text->length = whole.length;
    }
    kn_strbuf_deinit(&whole);
    return text->text != NULL;
}

static bool is_whole(const kiln_opencl_unit *unit)
{
    bool whole = unit->string_count > 0 && unit->strings != NULL &&
                 (unit->header_count == 0 || unit->headers != NULL);
    for (size_t i = 0; whole && i < unit->string_count; i++) {
        whole = unit->strings[i] != NULL;
    }
    for (size_t i = 0; whole && i < unit->header_count; i++) {
        whole = unit->headers[i].name != NULL && unit->headers[i].name[0] != '\0' &&
                unit->headers[i].text != NULL;
    }
    return whole;
}

static kiln_status copy_unit(const kiln_opencl_unit *unit, kn_opencl_wish *wish, kiln_diag *diag)
{
    kn_opencl_text *text = &wish->texts[wish->text_count];
    if (!is_whole(unit)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give each unit its text", building,
                             "unit %zu lacks a string, or a header its name or text",
                             wish->text_count);
    }
    wish->text_count++;
    text->options = kn_text_copy(unit->options != NULL ? unit->options : "");
    if (text->options == NULL || !copy_headers(unit, text) || !join_strings(unit, text)) {
        return kn_no_memory(diag, building);
    }
    wish->link = wish->link || text->header_count > 0;
    return text->length > 0 ? KILN_OK
                            : kiln_diag_set(diag, KILN_E_INVALID, "give each unit its text",
                                            building, "unit %zu is empty", wish->text_count - 1);
}

static kiln_status check_request(const kiln_opencl_request *request, kiln_diag *diag)
{
    bool devices = request->devices != NULL && request->device_count > 0 &&
                   request->device_count <= DEVICES_MAX;
    for (size_t i = 0; devices && i < request->device_count; i++) {
        devices = request->devices[i] != NULL;
    }
    if (request->context == NULL || !devices) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, building,
                             "it takes a context, and 1 to %u devices", DEVICES_MAX);
    }
    if (request->unit_count == 0 || request->unit_count > UNITS_MAX || request->units == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, building, "it takes 1 to %u units",
                             UNITS_MAX);
    }
    return KILN_OK;
}

/* `units` are this library's structs. */
static kiln_status fill_wish(const kiln_opencl_request *request, const kiln_opencl_unit *units,
                             kn_opencl_wish *wish, kiln_diag *diag)
{
    wish->context = request->context;
    wish->link = request->link || request->unit_count > 1;
    wish->devices = calloc(request->device_count, sizeof(struct _cl_device_id *));
    wish->texts = calloc(request->unit_count, sizeof(*wish->texts));
    wish->link_options = kn_text_copy(request->link_options != NULL ? request->link_options : "");
    if (wish->devices == NULL || wish->texts == NULL || wish->link_options == NULL) {
        return kn_no_memory(diag, building);
    }
    for (size_t i = 0; i < request->device_count; i++) {
        wish->devices[wish->device_count++] = request->devices[i];
    }
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < request->unit_count && status == KILN_OK; i++) {
        status = copy_unit(&units[i], wish, diag);
    }
    if (status == KILN_OK && !wish->link && wish->link_options[0] != '\0') {
        status = kiln_diag_set(diag, KILN_E_INVALID, "set link, or leave link_options NULL",
                               building, "options for the linker are given, and nothing is linked");
    }
    return status;
}

kiln_status kn_opencl_wish_create(const kiln_opencl_request *request, kn_opencl_wish **out_wish,
                                  kiln_diag *diag)
{
    const void *units = NULL;
    void *copy = NULL;
    *out_wish = NULL;
    kiln_status status = check_request(request, diag);
    if (status == KILN_OK) {
        status = kn_sized_list(KN_SIZED(kiln_opencl_unit), request->units, request->unit_count,
                               &units, &copy, diag);
    }
    kn_opencl_wish *wish = status == KILN_OK ? calloc(1, sizeof(*wish)) : NULL;
    if (status == KILN_OK && wish == NULL) {
        status = kn_no_memory(diag, building);
    }
    if (status == KILN_OK) {
        atomic_init(&wish->references, 1);
        status = fill_wish(request, (const kiln_opencl_unit *)units, wish, diag);
    }
    if (status != KILN_OK) {
        kn_opencl_wish_release(wish);
        wish = NULL;
    }
    free(copy);
    *out_wish = wish;
    return status;
}

kiln_status kn_opencl_wish_create_plain(struct _cl_context *context, struct _cl_device_id *device,
                                        const char *text, const char *options,
                                        kn_opencl_wish **out_wish, kiln_diag *diag)
{
    const kiln_opencl_unit unit = {
        .struct_size = sizeof(unit), .strings = &text, .string_count = 1, .options = options};
    const kiln_opencl_request request = {.struct_size = sizeof(request),
                                         .context = context,
                                         .devices = &device,
                                         .device_count = 1,
                                         .units = &unit,
                                         .unit_count = 1};
    *out_wish = NULL;
    if (context == NULL || device == NULL || text == NULL || text[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, building,
                             "context, device and text are required");
    }
    return kn_opencl_wish_create(&request, out_wish, diag);
}
