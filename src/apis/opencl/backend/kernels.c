/* The kernels of a program and what they take. A driver reports it for a program from source and
 * often not for one from a binary, so the answer is written down once and kept with the binary. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/program.h"
#include "apis/opencl/backend/status.h"
#include "base/diag.h"
#include "base/text.h"

#define MAX_PARAMS 1024u
#define NAME_LIMIT 65536u

static kiln_status fail_reflection(kiln_diag *diag, const char *call, cl_int code)
{
    return kn_opencl_fail(diag, "listing OpenCL kernels", call, code);
}

/* "float4" -> 16; 0 for what is not a number type of OpenCL C (structs, images, typedefs). */
static size_t size_of_type(const char *type)
{
    static const struct {
        const char *name;
        size_t size;
    } rows[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"int", 4},   {"uint", 4},
                {"long", 8}, {"ulong", 8}, {"half", 2},  {"float", 4},  {"double", 8}};
    size_t letters = strcspn(type, "0123456789");
    uint64_t lanes = 1;
    if (type[letters] != '\0' && !kn_text_to_u64(type + letters, &lanes)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strlen(rows[i].name) == letters && strncmp(rows[i].name, type, letters) == 0) {
            return lanes <= 16 ? rows[i].size * (size_t)(lanes == 3 ? 4 : lanes) : 0;
        }
    }
    return 0;
}

static bool is_opaque(const char *type)
{
    return kn_text_starts(type, "image") || strcmp(type, "sampler_t") == 0 ||
           strcmp(type, "queue_t") == 0 || strstr(type, "pipe") != NULL;
}

static void ask_text(const kn_opencl_api *api, cl_kernel kernel, cl_uint index,
                     cl_kernel_arg_info name, char *text, size_t size)
{
    size_t needed = 0;
    text[0] = '\0';
    if (api->clGetKernelArgInfo(kernel, index, name, 0, NULL, &needed) != CL_SUCCESS ||
        needed == 0 || needed >= NAME_LIMIT) {
        return;
    }
    char *whole = calloc(1, needed + 1);
    if (whole != NULL &&
        api->clGetKernelArgInfo(kernel, index, name, needed, whole, NULL) == CL_SUCCESS) {
        kn_text_put(text, size, whole);
    }
    free(whole);
}

static void ask_param(const kn_opencl_api *api, cl_kernel kernel, cl_uint index, kiln_param *param)
{
    cl_kernel_arg_address_qualifier space = 0;
    ask_text(api, kernel, index, CL_KERNEL_ARG_NAME, param->name, sizeof(param->name));
    ask_text(api, kernel, index, CL_KERNEL_ARG_TYPE_NAME, param->type, sizeof(param->type));
    if (api->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(space),
                                &space, NULL) != CL_SUCCESS) {
        return; /* KILN_ARG_UNKNOWN */
    }
    if (space == CL_KERNEL_ARG_ADDRESS_LOCAL) {
        param->kind = KILN_ARG_LOCAL;
    } else if (space == CL_KERNEL_ARG_ADDRESS_PRIVATE && !is_opaque(param->type)) {
        param->kind = KILN_ARG_VALUE;
        param->size = size_of_type(param->type);
    } else if (!is_opaque(param->type)) {
        param->kind = KILN_ARG_BUFFER;
    }
}

static char *kernel_text(const kn_opencl_api *api, cl_kernel kernel, cl_kernel_info what,
                         cl_int *out_code)
{
    size_t size = 0;
    *out_code = api->clGetKernelInfo(kernel, what, 0, NULL, &size);
    if (*out_code == CL_SUCCESS && size >= NAME_LIMIT) {
        *out_code = CL_INVALID_VALUE; /* a name that no compiler takes */
    }
    char *text = *out_code == CL_SUCCESS ? calloc(1, size + 1) : NULL;
    if (text != NULL) {
        *out_code = api->clGetKernelInfo(kernel, what, size, text, NULL);
    }
    return text;
}

/* One line, as the fact holds them. */
static void ask_attributes(const kn_opencl_api *api, kn_opencl_kernel *kernel)
{
    cl_int code = CL_SUCCESS;
    kernel->attributes = kernel_text(api, kernel->handle, CL_KERNEL_ATTRIBUTES, &code);
    if (code != CL_SUCCESS) {
        free(kernel->attributes);
        kernel->attributes = NULL;
    }
    for (char *at = kernel->attributes; at != NULL && *at != '\0'; at++) {
        *at = strchr("\t\r\n", *at) != NULL ? ' ' : *at;
    }
}

/* "\tglobal const": false where the driver does not tell. */
static bool put_qualifiers(const kn_opencl_api *api, cl_kernel kernel, cl_uint index,
                           kn_strbuf *words)
{
    static const char *const spaces[] = {"global", "local", "constant", "private"};
    static const char *const accesses[] = {" read_only", " write_only", " read_write", ""};
    cl_kernel_arg_address_qualifier space = 0;
    cl_kernel_arg_access_qualifier access = 0;
    cl_kernel_arg_type_qualifier type = 0;
    if (api->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(space),
                                &space, NULL) != CL_SUCCESS ||
        api->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access),
                                &access, NULL) != CL_SUCCESS ||
        api->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(type), &type,
                                NULL) != CL_SUCCESS ||
        space < CL_KERNEL_ARG_ADDRESS_GLOBAL || space > CL_KERNEL_ARG_ADDRESS_PRIVATE ||
        access < CL_KERNEL_ARG_ACCESS_READ_ONLY || access > CL_KERNEL_ARG_ACCESS_NONE) {
        return false;
    }
    kn_strbuf_printf(words, "\t%s%s%s%s%s%s", spaces[space - CL_KERNEL_ARG_ADDRESS_GLOBAL],
                     accesses[access - CL_KERNEL_ARG_ACCESS_READ_ONLY],
                     (type & CL_KERNEL_ARG_TYPE_CONST) != 0 ? " const" : "",
                     (type & CL_KERNEL_ARG_TYPE_RESTRICT) != 0 ? " restrict" : "",
                     (type & CL_KERNEL_ARG_TYPE_VOLATILE) != 0 ? " volatile" : "",
                     (type & CL_KERNEL_ARG_TYPE_PIPE) != 0 ? " pipe" : "");
    return true;
}

/* Of all parameters, or of none. */
static void ask_qualifiers(const kn_opencl_api *api, kn_opencl_kernel *kernel)
{
    kn_strbuf words;
    bool told = kernel->param_count > 0;
    kn_strbuf_init(&words, 0);
    for (size_t i = 0; i < kernel->param_count && told; i++) {
        told = put_qualifiers(api, kernel->handle, (cl_uint)i, &words);
    }
    kernel->qualifiers = told && kn_strbuf_ok(&words) ? kn_strbuf_detach(&words, NULL) : NULL;
    kn_strbuf_deinit(&words);
}

static void ask_groups(const kn_opencl_site *site, kn_opencl_kernel *kernel)
{
    (void)site->api->clGetKernelWorkGroupInfo(kernel->handle, site->device,
                                              CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                              sizeof(kernel->fixed), kernel->fixed, NULL);
    if (site->api->clGetKernelWorkGroupInfo(kernel->handle, site->device, CL_KERNEL_WORK_GROUP_SIZE,
                                            sizeof(kernel->max_group), &kernel->max_group,
                                            NULL) != CL_SUCCESS ||
        kernel->max_group == 0) {
        kernel->max_group = 1;
    }
    /* No argument is set yet: what it says is what the kernel itself declares. */
    if (site->api->clGetKernelWorkGroupInfo(kernel->handle, site->device, CL_KERNEL_LOCAL_MEM_SIZE,
                                            sizeof(kernel->fixed_local), &kernel->fixed_local,
                                            NULL) != CL_SUCCESS) {
        kernel->fixed_local = 0;
    }
}

static kiln_status describe_kernel(const kn_opencl_site *site, kn_opencl_kernel *kernel,
                                   kiln_diag *diag)
{
    const kn_opencl_api *api = site->api;
    cl_uint count = 0;
    cl_int code = CL_SUCCESS;
    kernel->name = kernel_text(api, kernel->handle, CL_KERNEL_FUNCTION_NAME, &code);
    if (code != CL_SUCCESS || kernel->name == NULL) {
        return code != CL_SUCCESS ? fail_reflection(diag, "clGetKernelInfo", code)
                                  : kn_no_memory(diag, "listing OpenCL kernels");
    }
    code = api->clGetKernelInfo(kernel->handle, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL);
    if (code != CL_SUCCESS) {
        return fail_reflection(diag, "clGetKernelInfo", code);
    }
    if (count > MAX_PARAMS) {
        return kiln_diag_set(diag, KILN_E_INTERNAL, "update the OpenCL driver",
                             "listing OpenCL kernels", "the driver counts %u parameters of %s",
                             (unsigned)count, kernel->name);
    }
    kernel->params = calloc(count + 1u, sizeof(*kernel->params));
    if (kernel->params == NULL) {
        return kn_no_memory(diag, "listing OpenCL kernels");
    }
    kernel->param_count = count;
    ask_groups(site, kernel);
    return KILN_OK;
}

/* --- the fact: "kernel<TAB>count", then a line a parameter: kind, size, type, name ------------ */

void kn_opencl_kernels_to_fact(const kn_opencl_kernels *kernels, kn_strbuf *fact)
{
    for (size_t i = 0; i < kernels->count; i++) {
        const kn_opencl_kernel *kernel = &kernels->items[i];
        kn_strbuf_printf(fact, "%s\t%zu\n", kernel->name, kernel->param_count);
        for (size_t k = 0; k < kernel->param_count; k++) {
            const kiln_param *param = &kernel->params[k];
            kn_strbuf_printf(fact, "%d\t%zu\t%s\t%s\n", (int)param->kind, param->size, param->type,
                             param->name);
        }
    }
}

void kn_opencl_kernels_to_entries(const kn_opencl_kernels *kernels, kn_strbuf *fact)
{
    for (size_t i = 0; i < kernels->count; i++) {
        const char *attributes = kernels->items[i].attributes;
        const char *qualifiers = kernels->items[i].qualifiers;
        bool any = attributes != NULL && attributes[0] != '\0';
        kn_strbuf_printf(fact, "%s%s%s%s\n", kernels->items[i].name,
                         any || qualifiers != NULL ? "\t" : "", any ? attributes : "",
                         qualifiers != NULL ? qualifiers : "");
    }
}

typedef struct reader {
    const char *at, *end;
} reader;

/* The text up to `stop`, which is passed over; false if it does not come or the field is short. */
static bool read_field(reader *in, char stop, char *text, size_t size)
{
    const char *found = memchr(in->at, stop, (size_t)(in->end - in->at));
    if (found == NULL || (size_t)(found - in->at) >= size) {
        return false;
    }
    memcpy(text, in->at, (size_t)(found - in->at));
    text[found - in->at] = '\0';
    in->at = found + 1;
    return true;
}

static bool read_number(reader *in, char stop, uint64_t limit, uint64_t *out_value)
{
    char text[24];
    return read_field(in, stop, text, sizeof(text)) && kn_text_to_u64(text, out_value) &&
           *out_value <= limit;
}

static bool read_param(reader *in, kiln_param *param)
{
    uint64_t kind = 0, size = 0;
    if (!read_number(in, '\t', KILN_ARG_LOCAL, &kind) ||
        !read_number(in, '\t', UINT32_MAX, &size) ||
        !read_field(in, '\t', param->type, sizeof(param->type)) ||
        !read_field(in, '\n', param->name, sizeof(param->name))) {
        return false;
    }
    param->kind = (kiln_arg_kind)kind;
    param->size = (size_t)size;
    return true;
}

static bool skip_name(reader *in, const char *name)
{
    const size_t length = strlen(name);
    if ((size_t)(in->end - in->at) <= length || memcmp(in->at, name, length) != 0 ||
        in->at[length] != '\t') {
        return false;
    }
    in->at += length + 1;
    return true;
}

static bool read_fact(const kn_opencl_kernels *kernels, const char *fact, size_t size)
{
    reader in = {fact, fact + size};
    for (size_t i = 0; i < kernels->count; i++) {
        kn_opencl_kernel *kernel = &kernels->items[i];
        uint64_t count = 0;
        if (!skip_name(&in, kernel->name) || !read_number(&in, '\n', MAX_PARAMS, &count) ||
            count != kernel->param_count) {
            return false;
        }
        for (size_t k = 0; k < kernel->param_count; k++) {
            if (!read_param(&in, &kernel->params[k])) {
                return false;
            }
        }
    }
    return in.at == in.end;
}

/* --- the list --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const kn_opencl_kernel *)a)->name, ((const kn_opencl_kernel *)b)->name);
}

/* The names that a fact says, with ';' between them. */
static void list_names(const char *fact, size_t size, kn_strbuf *names)
{
    reader in = {fact, fact + size};
    uint64_t params = 0;
    while (in.at < in.end) {
        const char *tab = memchr(in.at, '\t', (size_t)(in.end - in.at));
        if (tab == NULL) {
            break;
        }
        kn_strbuf_append_text(names, names->length > 0 ? ";" : "");
        kn_strbuf_append(names, in.at, (size_t)(tab - in.at));
        in.at = tab + 1;
        if (!read_number(&in, '\n', MAX_PARAMS, &params)) {
            break;
        }
        for (; params > 0 && in.at < in.end; params--) {
            const char *line = memchr(in.at, '\n', (size_t)(in.end - in.at));
            in.at = line != NULL ? line + 1 : in.end;
        }
    }
}

static kiln_status create_all(const kn_opencl_site *site, cl_program program, const char *fact,
                              size_t fact_size, kn_opencl_kernels *kernels, kiln_diag *diag)
{
    kn_strbuf names;
    cl_kernel *handles = NULL;
    size_t count = 0;
    kn_strbuf_init(&names, 0);
    if (fact != NULL) {
        list_names(fact, fact_size, &names);
    }
    const bool known = fact != NULL && kn_strbuf_ok(&names);
    kiln_status status = kn_opencl_handles_create(
        site, program, known ? kn_strbuf_text(&names) : NULL, names.length, &handles, &count, diag);
    kn_strbuf_deinit(&names);
    kernels->items = calloc(count + 1u, sizeof(*kernels->items));
    if (status == KILN_OK && kernels->items == NULL) {
        kn_opencl_handles_release(site->api, handles, count);
        return kn_no_memory(diag, "listing OpenCL kernels");
    }
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        kernels->items[i].handle = handles[i];
        kernels->count = i + 1;
    }
    free(handles);
    return status;
}

static void release_kernels(const kn_opencl_api *api, kn_opencl_kernels *kernels)
{
    for (size_t i = 0; i < kernels->count; i++) {
        kn_opencl_kernel *kernel = &kernels->items[i];
        (void)api->clReleaseKernel(kernel->handle);
        free(kernel->qualifiers);
        free(kernel->attributes);
        free(kernel->name);
        free(kernel->params);
    }
    free(kernels->items);
    *kernels = (kn_opencl_kernels){0};
}

kiln_status kn_opencl_kernels_init(const kn_opencl_site *site, cl_program program, const char *fact,
                                   size_t fact_size, kn_opencl_kernels *kernels, kiln_diag *diag)
{
    *kernels = (kn_opencl_kernels){0};
    kiln_status status = create_all(site, program, fact, fact_size, kernels, diag);
    for (size_t i = 0; i < kernels->count && status == KILN_OK; i++) {
        status = describe_kernel(site, &kernels->items[i], diag);
    }
    if (status != KILN_OK) {
        release_kernels(site->api, kernels);
        return status;
    }
    /* Drivers list them as they please; a mutex is made only when nothing moves any more. */
    if (kernels->count > 1) {
        qsort(kernels->items, kernels->count, sizeof(*kernels->items), by_name);
    }
    for (size_t i = 0; i < kernels->count; i++) {
        kn_mutex_init(&kernels->items[i].lock);
    }
    if (fact != NULL && !read_fact(kernels, fact, fact_size)) {
        kn_opencl_kernels_deinit(site->api, kernels);
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "loading an OpenCL binary",
                             "its kernels are not those it was made with");
    }
    for (size_t i = 0; i < kernels->count && fact == NULL; i++) {
        ask_attributes(site->api, &kernels->items[i]);
        ask_qualifiers(site->api, &kernels->items[i]);
        for (size_t k = 0; k < kernels->items[i].param_count; k++) {
            ask_param(site->api, kernels->items[i].handle, (cl_uint)k,
                      &kernels->items[i].params[k]);
        }
    }
    return KILN_OK;
}

void kn_opencl_kernels_deinit(const kn_opencl_api *api, kn_opencl_kernels *kernels)
{
    for (size_t i = 0; i < kernels->count; i++) {
        kn_mutex_deinit(&kernels->items[i].lock);
    }
    release_kernels(api, kernels);
}

kn_opencl_kernel *kn_opencl_kernel_find(const kn_opencl_kernels *kernels, const char *name)
{
    for (size_t i = 0; i < kernels->count; i++) {
        if (strcmp(kernels->items[i].name, name) == 0) {
            return &kernels->items[i];
        }
    }
    return NULL;
}
