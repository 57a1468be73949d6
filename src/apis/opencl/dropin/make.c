/* See make.h. The bytes of several devices are framed: a count, then each with its length in
 * front. */
#include "apis/opencl/dropin/make.h"

#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/status.h"
#include "apis/opencl/dropin/answers.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/label.h"
#include "base/strbuf.h"
#include "base/text.h"

static const char compiling[] = "compiling an OpenCL program";
static const char linking[] = "linking an OpenCL program";
static const char loading[] = "loading an OpenCL binary";

/* The log of every device, which is all that is known of what failed. */
static void attach_logs(const kn_opencl_request *request, cl_program program, kiln_diag *diag)
{
    kn_strbuf whole;
    kn_strbuf_init(&whole, 0);
    for (size_t i = 0; i < request->wish->device_count; i++) {
        const kn_opencl_site site = {&request->api, request->wish->context,
                                     request->wish->devices[i]};
        char *log = kn_opencl_build_log(&site, program);
        if (log != NULL) {
            kn_strbuf_printf(&whole, "%s%s", whole.length > 0 ? "\n" : "", log);
        }
        free(log);
    }
    if (diag != NULL && whole.length > 0 && kn_strbuf_ok(&whole)) {
        kiln_diag_set_log(diag, kn_strbuf_text(&whole), whole.length);
    }
    kn_strbuf_deinit(&whole);
}

static kiln_status create_from_source(const kn_opencl_api *api, cl_context context,
                                      const char *text, size_t length, cl_program *out_program,
                                      kiln_diag *diag)
{
    cl_int code = CL_SUCCESS;
    *out_program = api->clCreateProgramWithSource(context, 1, &text, &length, &code);
    return *out_program != NULL && code == CL_SUCCESS
               ? KILN_OK
               : kn_opencl_fail(diag, "making an OpenCL program", "clCreateProgramWithSource",
                                code);
}

/* --- one build -------------------------------------------------------------------------------- */

static kiln_status build_plain(const kn_opencl_request *request, cl_program *out_program,
                               kiln_diag *diag)
{
    const kn_opencl_wish *wish = request->wish;
    const kn_opencl_text *text = &wish->texts[0];
    if (wish->device_count == 1) {
        char *log = NULL;
        kiln_status status =
            kn_opencl_build_source(&request->site, KILN_LANG_OPENCL_C, text->text, text->length,
                                   text->options, out_program, &log, diag);
        free(log); /* the caller asks the program for it */
        return status;
    }
    cl_program program = NULL;
    kiln_status status =
        create_from_source(&request->api, wish->context, text->text, text->length, &program, diag);
    if (status == KILN_OK) {
        const cl_int code = request->api.clBuildProgram(program, (cl_uint)wish->device_count,
                                                        wish->devices, text->options, NULL, NULL);
        if (code != CL_SUCCESS) {
            status = kn_opencl_fail(diag, compiling, "clBuildProgram", code);
            attach_logs(request, program, diag);
        }
    }
    if (status != KILN_OK && program != NULL) {
        (void)request->api.clReleaseProgram(program);
        program = NULL;
    }
    *out_program = program;
    return status;
}

/* --- compile and link ------------------------------------------------------------------------- */

static void release_all(const kn_opencl_api *api, cl_program *programs, size_t count)
{
    for (size_t i = 0; programs != NULL && i < count; i++) {
        if (programs[i] != NULL) {
            (void)api->clReleaseProgram(programs[i]);
        }
    }
    free(programs);
}

kiln_status kn_opencl_make_compiled(const kn_opencl_api *api, const kn_opencl_wish *wish,
                                    const kn_opencl_text *text, cl_program program, kiln_diag *diag)
{
    const size_t count = text->header_count;
    cl_program *headers = calloc(count + 1, sizeof(cl_program));
    const char **names = calloc(count + 1, sizeof(*names));
    kiln_status status = headers != NULL && names != NULL ? KILN_OK : kn_no_memory(diag, compiling);
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        names[i] = text->headers[i].name;
        status = create_from_source(api, wish->context, text->headers[i].text,
                                    text->headers[i].length, &headers[i], diag);
    }
    if (status == KILN_OK) {
        const cl_int code = api->clCompileProgram(
            program, (cl_uint)wish->device_count, wish->devices, text->options, (cl_uint)count,
            count > 0 ? headers : NULL, count > 0 ? names : NULL, NULL, NULL);
        status = code == CL_SUCCESS ? KILN_OK
                                    : kn_opencl_fail(diag, compiling, "clCompileProgram", code);
    }
    release_all(api, headers, count);
    free(names);
    return status;
}

static kiln_status compile_unit(const kn_opencl_request *request, const kn_opencl_text *text,
                                cl_program *out_program, kiln_diag *diag)
{
    kiln_status status = create_from_source(&request->api, request->wish->context, text->text,
                                            text->length, out_program, diag);
    if (status == KILN_OK) {
        status = kn_opencl_make_compiled(&request->api, request->wish, text, *out_program, diag);
        if (status != KILN_OK) {
            attach_logs(request, *out_program, diag);
        }
    }
    return status;
}

static kiln_status link_units(const kn_opencl_request *request, const cl_program *units,
                              cl_program *out_program, kiln_diag *diag)
{
    const kn_opencl_wish *wish = request->wish;
    cl_int code = CL_SUCCESS;
    cl_program program = request->api.clLinkProgram(
        wish->context, (cl_uint)wish->device_count, wish->devices, wish->link_options,
        (cl_uint)wish->text_count, units, NULL, NULL, &code);
    if (program != NULL && code == CL_SUCCESS) {
        *out_program = program;
        return KILN_OK;
    }
    kiln_status status = kn_opencl_fail(diag, linking, "clLinkProgram", code);
    if (program != NULL) {
        attach_logs(request, program, diag);
        (void)request->api.clReleaseProgram(program);
    }
    return status;
}

static kiln_status compile_and_link(const kn_opencl_request *request, cl_program *out_program,
                                    kiln_diag *diag)
{
    const kn_opencl_wish *wish = request->wish;
    cl_program *units = calloc(wish->text_count, sizeof(cl_program));
    kiln_status status = units != NULL ? KILN_OK : kn_no_memory(diag, compiling);
    for (size_t i = 0; i < wish->text_count && status == KILN_OK; i++) {
        status = compile_unit(request, &wish->texts[i], &units[i], diag);
    }
    if (status == KILN_OK) {
        status = link_units(request, units, out_program, diag);
    }
    release_all(&request->api, units, wish->text_count);
    return status;
}

static kiln_status compile_first(const kn_opencl_request *request, cl_program *out_program,
                                 kiln_diag *diag)
{
    kiln_status status = compile_unit(request, &request->wish->texts[0], out_program, diag);
    if (status != KILN_OK && *out_program != NULL) {
        (void)request->api.clReleaseProgram(*out_program);
        *out_program = NULL;
    }
    return status;
}

typedef kiln_status make_fn(const kn_opencl_request *request, cl_program *out_program,
                            kiln_diag *diag);

/* As for one build: PoCL may fail without a log while another process works in its cache
 * directory. */
static kiln_status try_twice(const kn_opencl_request *request, make_fn *make,
                             cl_program *out_program, kiln_diag *diag)
{
    if (request->api.clCompileProgram == NULL || request->api.clLinkProgram == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "update the OpenCL library", compiling,
                             "it has no clCompileProgram and clLinkProgram");
    }
    kiln_diag first = KILN_DIAG_INIT;
    kiln_status status = make(request, out_program, &first);
    if (status == KILN_E_COMPILE && first.log == NULL) {
        kiln_diag_clear(&first);
        status = make(request, out_program, &first);
    }
    if (status != KILN_OK) {
        kn_diag_move(diag, &first);
        return status;
    }
    kiln_diag_clear(&first);
    return status;
}

kiln_status kn_opencl_make(const kn_opencl_request *request, cl_program *out_program,
                           kiln_diag *diag)
{
    *out_program = NULL;
    return request->wish->link ? try_twice(request, compile_and_link, out_program, diag)
                               : build_plain(request, out_program, diag);
}

kiln_status kn_opencl_make_unit(const kn_opencl_request *request, cl_program *out_program,
                                kiln_diag *diag)
{
    *out_program = NULL;
    return try_twice(request, compile_first, out_program, diag);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static kiln_status read_one(const kn_opencl_site *site, bool is_pocl, cl_program program,
                            void **out_data, size_t *out_size, kiln_diag *diag)
{
    kiln_status status = is_pocl ? kn_pocl_check_names(site->api, program, diag) : KILN_OK;
    if (status == KILN_OK) {
        status = kn_opencl_read_binary(site, program, out_data, out_size, diag);
    }
    if (status == KILN_OK && *out_size == 0) {
        status = KILN_MISS;
    } else if (status == KILN_OK && is_pocl && !kn_pocl_binary_is_sound(*out_data, *out_size)) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "reading an OpenCL binary",
                               "PoCL gives %zu bytes that are not a binary", *out_size);
    }
    return status;
}

/* For people: the programs come without a file's name. */
static void append_wish_label(const kn_opencl_wish *wish, kn_strbuf *out)
{
    char label[KN_LABEL_SIZE] = "";
    for (size_t i = 0; i < wish->text_count && label[0] == '\0'; i++) {
        kn_label_make(label, NULL, kn_span_of(wish->texts[i].text, wish->texts[i].length));
    }
    kn_label_append(out, label);
}

kiln_status kn_opencl_make_bytes(const kn_opencl_site *site, const kn_opencl_wish *wish,
                                 bool is_pocl, cl_program program, kiln_blob **out_blob,
                                 kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    unsigned char number[8];
    kn_strbuf whole, facts;
    kn_strbuf_init(&whole, 0);
    kn_strbuf_init(&facts, 0);
    append_wish_label(wish, &facts);
    kn_put_u64(number, wish->device_count);
    if (wish->device_count > 1) {
        kn_strbuf_append(&whole, (const char *)number, sizeof(number));
    }
    for (size_t i = 0; i < wish->device_count && status == KILN_OK; i++) {
        const kn_opencl_site one = {site->api, site->context, wish->devices[i]};
        void *data = NULL;
        size_t size = 0;
        status = read_one(&one, is_pocl, program, &data, &size, diag);
        kn_put_u64(number, size);
        if (wish->device_count > 1) {
            kn_strbuf_append(&whole, (const char *)number, sizeof(number));
        }
        kn_strbuf_append(&whole, (const char *)data, status == KILN_OK ? size : 0);
        free(data);
    }
    if (status == KILN_OK) {
        status = kn_strbuf_ok(&whole) ? kiln_blob_create(whole.data, whole.length, facts.data,
                                                         facts.length, out_blob, diag)
                                      : kn_no_memory(diag, "reading an OpenCL binary");
    }
    kn_strbuf_deinit(&facts);
    kn_strbuf_deinit(&whole);
    return status;
}

/* --- what the layer keeps --------------------------------------------------------------------- */

/* `bytes` with what the driver says of the program; NULL for what is only compiled. */
static kiln_status join_answers(const kn_opencl_site *site, const kn_opencl_wish *wish,
                                cl_program program, const kiln_blob *bytes, kiln_blob **out_blob,
                                kiln_diag *diag)
{
    kn_strbuf answers, label;
    kn_strbuf_init(&answers, 0);
    kn_answers_ask(site->api, program, (cl_uint)wish->device_count, wish->devices, bytes != NULL,
                   &answers);
    if (kn_strbuf_ok(&answers) && answers.length > 0) {
        kn_strbuf_init(&label, 0);
        append_wish_label(wish, &label);
        kn_answers_append_note(&answers, kn_span_of(label.data, label.length));
        kn_strbuf_deinit(&label);
    }
    kiln_status status = kn_strbuf_ok(&answers)
                             ? kiln_blob_create(bytes != NULL ? kiln_blob_data(bytes) : "c",
                                                bytes != NULL ? kiln_blob_size(bytes) : 1,
                                                answers.data, answers.length, out_blob, diag)
                             : kn_no_memory(diag, "reading an OpenCL program");
    kn_strbuf_deinit(&answers);
    return status;
}

kiln_status kn_opencl_make_answered(const kn_opencl_site *site, const kn_opencl_wish *wish,
                                    bool is_pocl, cl_program program, kiln_blob **out_blob,
                                    kiln_diag *diag)
{
    kiln_blob *bytes = NULL;
    kiln_status status = kn_opencl_make_bytes(site, wish, is_pocl, program, &bytes, diag);
    if (status == KILN_OK) {
        status = join_answers(site, wish, program, bytes, out_blob, diag);
    }
    kiln_blob_release(bytes);
    return status;
}

kiln_status kn_opencl_make_unit_answers(const kn_opencl_site *site, const kn_opencl_wish *wish,
                                        cl_program program, kiln_blob **out_blob, kiln_diag *diag)
{
    return join_answers(site, wish, program, NULL, out_blob, diag);
}

/* --- loading ---------------------------------------------------------------------------------- */

typedef struct binaries {
    size_t count;
    size_t sizes[64];
    const unsigned char *bytes[64];
    cl_int codes[64];
} binaries;

static bool split_bytes(const kn_opencl_request *request, const kiln_blob *blob, binaries *out)
{
    const unsigned char *at = (const unsigned char *)kiln_blob_data(blob);
    size_t left = kiln_blob_size(blob);
    if (left < 8 || kn_get_u64(at) != request->wish->device_count) {
        return false;
    }
    at += 8;
    left -= 8;
    for (out->count = 0; out->count < request->wish->device_count; out->count++) {
        const uint64_t size = left >= 8 ? kn_get_u64(at) : 0;
        if (size == 0 || size > left - 8 ||
            (request->unit.is_pocl && !kn_pocl_binary_is_sound(at + 8, (size_t)size))) {
            return false;
        }
        out->sizes[out->count] = (size_t)size;
        out->bytes[out->count] = at + 8;
        at += 8 + size;
        left -= 8 + (size_t)size;
    }
    return left == 0;
}

bool kn_opencl_make_is_sound(const kn_opencl_request *request, const kiln_blob *blob)
{
    binaries parts = {0};
    return request->wish->device_count > 1
               ? split_bytes(request, blob, &parts)
               : !request->unit.is_pocl ||
                     kn_pocl_binary_is_sound(kiln_blob_data(blob), kiln_blob_size(blob));
}

static kiln_status load_many(const kn_opencl_request *request, const kiln_blob *blob,
                             const char *options, cl_program *out_program, kiln_diag *diag)
{
    const kn_opencl_wish *wish = request->wish;
    const cl_uint count = (cl_uint)wish->device_count;
    binaries parts = {0};
    cl_int code = CL_SUCCESS;
    if (!split_bytes(request, blob, &parts)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, loading,
                             "the entry does not hold one binary for each of %zu devices",
                             wish->device_count);
    }
    cl_program program = request->api.clCreateProgramWithBinary(
        wish->context, count, wish->devices, parts.sizes, parts.bytes, parts.codes, &code);
    for (size_t i = 0; i < parts.count && code == CL_SUCCESS; i++) {
        code = parts.codes[i];
    }
    const char *call = "clCreateProgramWithBinary";
    if (program != NULL && code == CL_SUCCESS) {
        call = "clBuildProgram";
        code = request->api.clBuildProgram(program, count, wish->devices, options, NULL, NULL);
    }
    if (program == NULL || code != CL_SUCCESS) {
        if (program != NULL) {
            (void)request->api.clReleaseProgram(program);
        }
        return kn_opencl_fail_load(diag, call, code);
    }
    *out_program = program;
    return KILN_OK;
}

static kiln_status load_one(const kn_opencl_request *request, const kiln_blob *blob,
                            const char *options, cl_program *out_program, kiln_diag *diag)
{
    size_t size = kiln_blob_size(blob), code_size = 0;
    const void *code = request->unit.capability > 0
                           ? kn_nvidia_split(kiln_blob_data(blob), &size, &code_size)
                           : NULL;
    if (code != NULL && kn_nvidia_load(&request->site, code, code_size, options, out_program)) {
        return KILN_OK;
    }
    return kn_opencl_build_binary(&request->site, request->unit.is_pocl, kiln_blob_data(blob), size,
                                  options, out_program, diag);
}

/* What a load gets: the options of the build; of a linked program those of the linker, since the
 * units' do not act on what is linked of them. Only the names of arguments come from the units. */
static bool join_wish_options(const kn_opencl_wish *wish, kn_strbuf *options)
{
    static const char names[] = "-cl-kernel-arg-info";
    bool named = false;
    kn_strbuf_append_text(options, wish->link ? wish->link_options : wish->texts[0].options);
    for (size_t i = 0; wish->link && i < wish->text_count; i++) {
        named = named || strstr(wish->texts[i].options, names) != NULL;
    }
    if (named) {
        kn_strbuf_printf(options, "%s%s", options->length > 0 ? " " : "", names);
    }
    return kn_strbuf_ok(options);
}

kiln_status kn_opencl_make_loaded(const kn_opencl_request *request, const kiln_blob *blob,
                                  cl_program *out_program, kiln_diag *diag)
{
    kn_strbuf options;
    kiln_status status = KILN_E_NOMEM;
    kn_strbuf_init(&options, 0);
    if (!join_wish_options(request->wish, &options)) {
        (void)kiln_diag_set(diag, status, NULL, loading, NULL);
    } else if (request->wish->device_count > 1) {
        status = load_many(request, blob, kn_strbuf_text(&options), out_program, diag);
    } else {
        status = load_one(request, blob, kn_strbuf_text(&options), out_program, diag);
    }
    kn_strbuf_deinit(&options);
    return status;
}
